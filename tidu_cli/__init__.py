"""tidu: automatic differentiation for computation graphs that live in files."""

__version__ = "0.1.0"
