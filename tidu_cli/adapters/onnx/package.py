"""The package `onnx`, which only models of ONNX need: an extra, imported here and nowhere else."""

from __future__ import annotations

from types import ModuleType

from tidu_cli.errors import DocumentError


def package() -> ModuleType:
    """The package. Raises DocumentError, which says what to install, where it is missing."""
    try:
        import onnx
        import onnx.defs
        import onnx.external_data_helper
        import onnx.numpy_helper
    except ImportError as error:
        missing = "" if getattr(error, "name", "") in ("onnx", None) else f" ({error})"
        raise DocumentError(f"models of ONNX need the package onnx{missing}: pip install 'tidu[onnx]'") from None
    return onnx
