"""Every primitive of tidu as a function of JAX: the one table, which evaluation by JAX and modules of StableHLO are made from.

Op and attr names are lax's, so that most need no word of translation; the others are in `primitives`, `structured` and `matrices`.
What JAX has no function for is computed by its definition. Values are arrays of JAX, those of times their counts (i64 of datetimes,
f64 of durations); records are dicts of their fields and tuples are tuples, without holes: what is structurally zero is zeros.

Derivatives are by tidu's own rules where JAX has none, or not those of the definition: of most special functions in their
parameters, and of matrices that are factorized where only a triangle is read, or phases are chosen. A rule is recorded once for
each choice of operands that have tangents, as nodes, which are evaluated by JAX; what they compute may be differentiated again, and
transposed by JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp
from jax.custom_derivatives import SymbolicZero

from tidu_cli.adapters.jax.lowering.matrices import MATRICES
from tidu_cli.adapters.jax.lowering.primitives import FUNCTIONS, PRECISE, is_plain
from tidu_cli.adapters.jax.lowering.structured import LOOPS_AND_BRANCHES, graph_function, record_function, time_function
from tidu_cli.errors import MissingRuleError
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import Case, CaseTable, Graph, Input, Output, column
from tidu_cli.graph.keys import Key
from tidu_cli.graph.sizes.open import are_there_open_sizes
from tidu_cli.graph.types import TensorType, tangent_type
from tidu_cli.lax.vocabulary import BUILTIN, vocabulary
from tidu_cli.rules.recording.templates import jvp_template
from tidu_cli.rules.recording.trace import expanded
from tidu_cli.rules.vocabulary import PrimitiveSet

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


_ALIASES = {"not": "bitwise_not", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}
"""What lax calls the functions of primitives that have Python's words for names."""

_LOSING = ("erfc", "erf_inv", "lgamma", "digamma")
"""Functions of lax that lose digits of f64, where recipes have all but a few units in the last place."""


def jax_function(case: Case, primitives: PrimitiveSet = BUILTIN, *, precise: bool = False) -> Function:
    """From JAX arrays to the tuple of results. Attrs are looked at once, here.

    Custom operations of `primitives` are what they stand for. Derivatives are JAX's, or tidu's where JAX has none. For graphs that
    are only run there are `precise` functions: many have more digits than JAX's, and none need have derivatives.
    Raises MissingRuleError for operations that only NumPy computes.
    """
    if primitives[case.op].rules.inlined is not None:
        return graph_function(expanded(primitives, case), lambda inner: jax_function(inner, primitives, precise=precise))
    by_jax = _by_jax(case, precise)  # once: graphs within graphs are looked at here
    function = by_jax or _by_definition(case, primitives, precise)
    if precise or case.op not in BUILTIN.primitives:
        return function
    own = case.op in MATRICES or needs_rules(case) or by_jax is None
    return with_rules(case, function, document_function) if own else function


def computed(case: Case, primitives: PrimitiveSet = BUILTIN, *, precise: bool = False) -> Function:
    """Likewise, of a primitive, with the derivatives that JAX has of what computes it. Raises MissingRuleError."""
    return _by_jax(case, precise) or _by_definition(case, primitives, precise)


def takes(case: Case, primitives: PrimitiveSet, *, precise: bool) -> str:
    """By what a node of a case is computed. Raises MissingRuleError, which says why it is not."""
    with jax.enable_x64(True):
        if _by_jax(case, precise) is not None:
            return "functions of JAX"
        _by_definition(case, primitives, precise)
    return "its definition"


def _by_jax(case: Case, precise: bool) -> Function | None:
    """A primitive by functions of JAX, and what is made of these."""
    return _of_records(case) or _of_graphs(case, precise) or _of_times(case) or _of_attrs(case, precise)


def _by_definition(case: Case, primitives: PrimitiveSet, precise: bool) -> Function:
    """An operation as the graph of others that it is defined as: recipes compute in f64, also where JAX is not to have it.

    Raises MissingRuleError where it has no definition.
    """
    if primitives[case.op].evaluation.definition is None:
        raise MissingRuleError("no function of JAX computes it; evaluate the document with tidu instead")
    function = graph_function(expanded(primitives, case), lambda inner: jax_function(inner, primitives, precise=precise))

    def call(*values: Any) -> tuple[Any, ...]:
        with jax.enable_x64(True):
            return function(*values)

    return call


def document_function(graph: Graph, *, precise: bool = False) -> Function:
    """The function of a self-contained graph, from its inputs in order to its outputs."""
    primitives = vocabulary(graph.cases)
    return graph_function(graph, lambda case: jax_function(case, primitives, precise=precise))


def _of_records(case: Case) -> Function | None:
    function = record_function(case)
    return None if function is None else lambda *values: (function(*values),)  # which may be a tuple itself


def _of_graphs(case: Case, precise: bool) -> Function | None:
    def of_graph(graph: ClosedGraph) -> Function:
        return document_function(graph.graph, precise=precise)

    made = LOOPS_AND_BRANCHES.get(case.op)
    return None if made is None else made(case.attrs, of_graph)


def _of_times(case: Case) -> Function | None:
    function = time_function(case)
    return None if function is None else lambda *xs: _tuple(function(*xs))


def _of_attrs(case: Case, precise: bool) -> Function | None:
    """The function of what is told by its attrs, of arrays of numbers."""
    if precise and case.op in _LOSING and case.results[0].dtype == "f64":  # type: ignore[union-attr]
        return None
    attrs = _attrs(case)
    called = (PRECISE.get(case.op) if precise else None) or FUNCTIONS.get(case.op) or MATRICES.get(case.op)
    if called is not None:
        return lambda *xs: _tuple(called(attrs, *xs))
    if case.op not in BUILTIN.primitives or case.op == "igamma_grad_a":  # lax's is without order
        return None
    name = _ALIASES.get(case.op, case.op).replace("-", "_")
    function = getattr(lax, name, None) or getattr(lax.linalg, name, None)
    return None if function is None else lambda *xs: _tuple(function(*xs, **attrs))


def _attrs(case: Case) -> dict[str, Any]:
    """The attrs of a case, with symbolic dimensions for open sizes."""
    attrs = dict(cast(Any, case.attrs))
    if not are_there_open_sizes():
        return attrs
    from tidu_cli.adapters.jax.dims import dim_of  # which functions of fixed sizes do without

    return {name: dim_of(value) for name, value in attrs.items()}


def _tuple(results: Any) -> tuple[Any, ...]:
    return tuple(results) if isinstance(results, tuple | list) else (results,)
