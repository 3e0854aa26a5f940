"""Starts SMG, the router before SGLang engines: gives it its keys, and lists its workers."""
