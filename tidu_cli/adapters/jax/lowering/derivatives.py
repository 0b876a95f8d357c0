"""Derivatives by tidu's own rules, of the primitives that JAX computes but does not differentiate, or not as they are defined.

JAX has no derivatives of most special functions in their parameters; it has none of matrices that are factorized where only a
triangle is read, or phases are chosen. A rule is recorded once for each choice of operands that have tangents, as nodes, which are
evaluated by JAX; what they compute may be differentiated again, and transposed by JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

import jax
import numpy as np
from jax import numpy as jnp
from jax.custom_derivatives import SymbolicZero

from tidu_cli.adapters.jax.lowering.arrays import is_plain
from tidu_cli.graph.graph import Case, CaseTable, Graph, Input, Output, column
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType, tangent_type
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.recording.templates import jvp_template

Function = Callable[..., tuple[Any, ...]]

_OPS = frozenset({
    "zeta", "igamma", "igammac", "regularized_incomplete_beta", "cholesky", "qr", "svd", "eigh", "eig", "strong_mul", "strong_div",
})  # fmt: skip
"""The primitives that lax has without these derivatives, or with others."""


def needs_rules(case: Case) -> bool:
    """Whether the derivatives of a case are tidu's. JAX has none in bounds of rank 0, nor in reverse mode of all windows."""
    if case.op == "clamp":
        return case.operands[0] != case.operands[1]
    if case.op in ("reduce_window_max", "reduce_window_min"):
        return not is_plain(dict(cast(Any, case.attrs)))
    return case.op in _OPS


def with_rules(case: Case, function: Function, function_of: Callable[[Graph], Function]) -> Function:
    """The function of a case with the derivatives that tidu has; `function_of` a graph computes what a rule emits."""
    computed = jax.custom_jvp(function)

    @cache
    def tangents_of(active: tuple[bool, ...]) -> Function:
        return function_of(_jvp_graph(case, active))

    def rule(operands: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        results = computed(*operands)
        active = tuple(not isinstance(t, SymbolicZero) for t in tangents)
        out_tangents = tangents_of(active)(*operands, *results, *[t for t, a in zip(tangents, active, strict=True) if a])
        return results, tuple([_tangent(y, t) for y, t in zip(results, out_tangents, strict=True)])

    computed.defjvp(rule, symbolic_zeros=True)
    return computed


def _jvp_graph(case: Case, active: tuple[bool, ...]) -> Graph:
    """What the JVP rule of a case emits: a graph of the operands, the results, and the tangents of the active operands."""
    cases = CaseTable()
    template = jvp_template(BUILTIN, cases, cases.intern(case), active)
    types = [*case.operands, *case.results, *[tangent_type(t) for t in case.operands if t is not None]]
    n_values = len(case.operands) + len(case.results)
    sources = [*range(n_values), *[n_values + k for k, a in enumerate(active) if a]]
    number = dict(zip(sources, range(len(sources)), strict=True))
    nodes = [*template.closed, *template.nodes]
    slot = template.n_sources
    for node in nodes:
        for k in range(slot, slot + node.n_results):
            number[k] = len(number)
        slot += node.n_results
    reads = column([number[k] for node in nodes for k in node.reads])
    inputs = [Input(Key(f"x{k}"), types[k] or TensorType("f64")) for k in sources]
    outputs = [
        Output(Key(f"y{k}"), None if value is None else number[value], tangent_type(t))
        for k, (value, t) in enumerate(zip(template.results, case.results, strict=True))
    ]
    return Graph(f"JVP of {case.op}", tuple(inputs), tuple(outputs), cases, column([node.code for node in nodes]), reads)


def _tangent(y: Any, t: Any) -> Any:
    """The tangent of a result as JAX has it: of an integer it has none but a zero of its own dtype."""
    if not jnp.issubdtype(y.dtype, jnp.inexact):
        return np.zeros(y.shape, jax.dtypes.float0)
    return jnp.zeros_like(y) if t is None else t
