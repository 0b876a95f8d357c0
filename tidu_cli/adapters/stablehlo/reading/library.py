"""Functions of JAX: those of its own that define a derivative, which modules have lost, and several nodes written as one.

The former are known by their name and by all that they compute. JAX lowers each as a function of the module, with a number behind
its name from the second on. Users' functions that are alike in both are taken for JAX's: nothing in a module tells them apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from tidu_cli.adapters.stablehlo.module import Block, Function
from tidu_cli.adapters.stablehlo.reading.recording import Recording, inlined
from tidu_cli.adapters.stablehlo.reading.site import array_of
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.types import FLOATS
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.rules.terms import Term

Bounds = tuple[tuple[str, str], ...]
"""Operations with constants that stand one within the next, the inmost first."""

_KINKS: dict[str, Bounds] = {
    "relu": (("stablehlo.maximum", "0.0"),),
    "relu6": (("stablehlo.maximum", "0.0"), ("stablehlo.minimum", "6.0")),
}
_CHOOSES = {"stablehlo.maximum": "le", "stablehlo.minimum": "ge"}


def bounds_of(function: Function) -> Bounds | None:
    """The bounds of a function of JAX's which has the derivative of the one it chooses, the constant in ties; None for others."""
    name = re.fullmatch(r"(relu6?)(_\d+)?", function.name)
    if name is None or function.public or len(function.results) != 1 or function.body.arguments != function.results:
        return None
    return bounds if (bounds := _computed(function.body)) == _KINKS[name[1]] else None


def bounded(recording: Recording, x: Term, bounds: Bounds) -> Term:
    """The number or the bound, by choice: the same bits, also of -0.0 and NaN."""
    for op, bound in bounds:
        limit = recording.full(float(bound), x.type)
        x = recording.emit("select_n", recording.emit(_CHOOSES[op], x, limit), x, limit)
    return x


def _computed(body: Block) -> Any:
    """What a block computes of its argument, if that is bounds alone; constants have their digits, as -0.0 is another bound."""
    found: dict[int, Any] = {body.first: ()}
    for o in body.operations:
        match o.name, [found.get(v) for v in o.operands]:
            case "stablehlo.constant", []:
                array, type_ = array_of(o.attributes["value"])
                found[o.first] = repr(float(array.item())) if array.size == 1 and type_.dtype in FLOATS else None
            case "stablehlo.broadcast_in_dim", [str() as constant]:
                found[o.first] = constant
            case ("stablehlo.maximum" | "stablehlo.minimum") as op, [tuple() as within, str() as constant]:
                found[o.first] = (*within, (op, constant))
    return found.get(body.results[0])


def by_jax(recording: Recording, function: Callable[..., Any], operands: Sequence[Term]) -> list[Term]:
    """The results of a function of JAX, whose equations are recorded. Raises TiduError where these are not read."""
    import jax
    import numpy as np

    from tidu_cli.adapters.jax.functions.function import from_jax

    with jax.enable_x64(True):
        given = [jax.ShapeDtypeStruct(x.type.shape, numpy_dtype(np, x.type.dtype)) for x in operands]
        document = from_jax(function, *given, names=[f"x{k}" for k in range(len(given))])
    return inlined(recording, ClosedGraph.of(document.head), operands)
