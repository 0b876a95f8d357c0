"""Operations that are several nodes, written in functions of JAX, which is there where modules are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidu_cli.adapters.stablehlo.reading.recording import Recording, inlined
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.rules.terms import Term


def by_jax(recording: Recording, function: Callable[..., Any], operands: Sequence[Term]) -> list[Term]:
    """The results of a function of JAX, whose equations are recorded. Raises TiduError where these are not read."""
    import jax
    import numpy as np

    from tidu_cli.adapters.jax.functions.function import from_jax

    with jax.enable_x64(True):
        given = [jax.ShapeDtypeStruct(x.type.shape, numpy_dtype(np, x.type.dtype)) for x in operands]
        document = from_jax(function, *given, names=[f"x{k}" for k in range(len(given))])
    return inlined(recording, ClosedGraph.of(document.head), operands)
