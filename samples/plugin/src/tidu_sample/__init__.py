"""Primitives for tidu. Each is found by its entry point in pyproject.toml, and imported only where it occurs."""
