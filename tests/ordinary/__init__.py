"""Ordinary functions of science, as people write them."""
