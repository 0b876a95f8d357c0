"""Engines held to the plain interpreter, node by node: what an engine gives for a node is what NumPy's kernel gives of the engine's
own operands, but for roundings of that one node. So no tolerance need allow for what later nodes make of a rounding.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Case, Graph, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.runtime.choosing import engine_named
from tidu_cli.runtime.plans.interpreter import each

ULPS = 4
"""Elementwise results, in units in the last place of themselves."""

SUMS = frozenset({"add", "sub"})

TERMS = 2
"""Sums and products: for each term so many units of the greatest partial result."""


def with_every_value(graph: Graph) -> Graph:
    """The graph with all its values as outputs, named by their numbers."""
    return replace(graph, outputs=tuple(Output(Key(f"v{k}"), k, graph.type_of(k)) for k in range(graph.n_values)))


def require_agreement(engine: str, graph: Graph, inputs: dict[Key, Any], *, fused: bool = False) -> None:
    """Raises AssertionError unless each node's results are NumPy's of the same operands, to a rounding.

    Where products and sums are `fused`, a sum may have been made of a product that was not rounded: it is then off by units of its
    greatest operand. Such engines may also make zeros of subnormal numbers.
    """
    whole, primitives = with_every_value(graph), vocabulary(graph.cases)
    values = engine_named(engine).program(whole, primitives, None, None).run(inputs)
    for node, (code, reads, first, end) in enumerate(forwards(graph, graph.args)):
        case = graph.cases[code]
        kernel = primitives[case.op].evaluation.kernel(np, case.attrs, case.operands, case.results)
        operands = [each(lambda x: np.asarray(x)[()], values[k]) for k in reads]
        with np.errstate(all="ignore"):
            due = kernel(*operands)
        for value, expected, type_ in zip(values[first:end], [due] if end == first + 1 else due, case.results, strict=True):
            if isinstance(type_, TensorType):
                require_near(value, np.asarray(expected), case, operands, f"{graph.describe(node)} of {operands}", fused=fused)


ELEMENTWISE = frozenset(
    """abs acos acosh add and asin asinh atan atan2 atanh cbrt ceil clamp clz complex conj convert_element_type cos cosh div eq exp
    exp2 expm1 floor ge gt imag integer_pow is_finite le log log1p logistic lt max min mul ne neg nextafter not or population_count
    pow real reduce_precision rem round rsqrt select_n shift_left shift_right_arithmetic shift_right_logical sign sin sinh sqrt
    square strong_div strong_mul sub tan tanh xor broadcast_in_dim reshape transpose squeeze slice concatenate rev pad gather
    iota""".split()  # noqa: SIM905
)
"""What computes each element by itself, or only moves elements."""


def require_near(array: Any, due: Any, case: Case, operands: list[Any], what: str, *, fused: bool) -> None:
    """Raises AssertionError unless an array is what is due, to the rounding of one node."""
    assert (array.dtype, array.shape) == (due.dtype, due.shape), what
    if due.dtype.kind not in "fcV":
        np.testing.assert_array_equal(array, due, err_msg=what)
        return
    wide = "c16" if due.dtype.kind == "c" else "f8"
    a, b = array.astype(wide), due.astype(wide)
    eps = float(ml_dtypes.finfo(due.dtype).eps)
    limits = ml_dtypes.finfo(due.dtype)
    tiny = float(limits.smallest_normal if fused else limits.smallest_subnormal)
    with np.errstate(all="ignore"):
        size = np.abs(b)
        if case.op not in ELEMENTWISE:
            terms = max([x.size for x in operands if isinstance(x, np.ndarray)], default=1)
            allowed = TERMS * eps * (terms + ULPS) * np.abs(b[np.isfinite(b)]).max(initial=scale_of(operands))
        elif (fused and case.op in SUMS) or due.dtype.kind == "c":
            allowed = ULPS * (
                eps * np.maximum(size, np.max([np.abs(x).astype("f8") for x in operands if np.ndim(x) == 0] or [0])) + tiny
            )
        else:
            allowed = ULPS * np.maximum(eps * size, tiny)
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= allowed)
    assert np.all(same), f"{what}: {array[~same] if same.ndim else array} where {due[~same] if same.ndim else due} is due"


def scale_of(operands: list[Any]) -> float:
    """The greatest finite number among operands, parts of records included."""
    parts: list[Any] = []
    for operand in operands:
        each(parts.append, operand)
    greatest = [np.abs(x[np.isfinite(x)]).max(initial=0.0) for x in map(np.atleast_1d, parts) if x.dtype.kind in "fc"]
    return float(max(greatest, default=0.0))
