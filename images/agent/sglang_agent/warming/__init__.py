"""Keeps the engine's cache warm: with what users name, and with what its peers find hot."""
