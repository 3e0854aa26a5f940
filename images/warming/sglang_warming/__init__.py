"""Prompt files, and the loop that prefills them while an SGLang engine is idle."""
