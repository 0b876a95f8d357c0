"""tidu: automatic differentiation for computation graphs that live in files."""

__version__ = "0.1.0"

TYPE_CHECKING = False  # That of typing, which takes longer to import than all that a program does before it minds its signals.

if TYPE_CHECKING:
    from typing import Any

    from tidu_cli.api import (
        Compiled,
        compile,
        compose,
        cond,
        derivative,
        evaluate,
        fori_loop,
        from_jax,
        grad,
        hessian,
        hvp,
        jacobian,
        jvp,
        linearize,
        load,
        load_onnx,
        materialize,
        matrix,
        renumber,
        resolve,
        save,
        scan,
        static,
        switch,
        to_dot,
        to_jax,
        trace,
        transpose,
        vjp,
        while_loop,
    )

__all__ = [
    "Compiled",
    "compile",
    "compose",
    "cond",
    "derivative",
    "evaluate",
    "fori_loop",
    "from_jax",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "linearize",
    "load",
    "load_onnx",
    "materialize",
    "matrix",
    "renumber",
    "resolve",
    "save",
    "scan",
    "static",
    "switch",
    "to_dot",
    "to_jax",
    "trace",
    "transpose",
    "vjp",
    "while_loop",
]


def __getattr__(name: str) -> "Any":
    # The functions of tidu_cli.api, imported when first asked for: `tidu --version` imports nothing but click.
    if name in __all__:
        import importlib

        return getattr(importlib.import_module("tidu_cli.api"), name)
    raise AttributeError(f"module 'tidu_cli' has no attribute '{name}'")
