"""Prompts for the agents: from the ConfigMaps that a cluster names into its pods."""
