"""Stands in for IPython, whose display module sglang.utils imports and only notebooks use."""
