"""Every primitive of tidu as a function of JAX: the one table, which evaluation by JAX and modules of StableHLO are made from.

Op and attr names are lax's, so that most need no word of translation; the others are in `primitives`, a file a family, and in
`matrices`. What JAX has no function for is computed by its definition. Values are arrays of JAX, those of times their counts (i64
of datetimes, f64 of durations); records are dicts of their fields and tuples are tuples, without holes: what is structurally zero
is zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

from tidu_cli.adapters.jax.lowering.graphs import graph_function
from tidu_cli.errors import MissingRuleError
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import Case, Graph
from tidu_cli.graph.sizes.open import are_there_open_sizes
from tidu_cli.lax.vocabulary import BUILTIN, vocabulary
from tidu_cli.rules.recording.trace import expanded
from tidu_cli.rules.vocabulary import PrimitiveSet

Function = Callable[..., tuple[Any, ...]]
"""From values to the tuple of results."""

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
    from tidu_cli.adapters.jax.lowering import derivatives

    own = case.op in _special() or derivatives.needs_rules(case) or by_jax is None
    return derivatives.with_rules(case, function, document_function) if own else function


def computed(case: Case, primitives: PrimitiveSet = BUILTIN, *, precise: bool = False) -> Function:
    """Likewise, of a primitive, with the derivatives that JAX has of what computes it. Raises MissingRuleError."""
    return _by_jax(case, precise) or _by_definition(case, primitives, precise)


def takes(case: Case, primitives: PrimitiveSet, *, precise: bool) -> str:
    """By what a node of a case is computed. Raises MissingRuleError, which says why it is not."""
    import jax

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
    import jax

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
    from tidu_cli.adapters.jax.lowering import records

    function = records.function(case)
    return None if function is None else lambda *values: (function(*values),)  # which may be a tuple itself


def _of_graphs(case: Case, precise: bool) -> Function | None:
    from tidu_cli.adapters.jax.lowering.graphs import FUNCTIONS

    def of_graph(graph: ClosedGraph) -> Function:
        return document_function(graph.graph, precise=precise)

    made = FUNCTIONS.get(case.op)
    return None if made is None else made(case.attrs, of_graph)


def _of_times(case: Case) -> Function | None:
    from tidu_cli.adapters.jax.lowering import times

    function = times.function(case)
    return None if function is None else lambda *xs: _tuple(function(*xs))


def _of_attrs(case: Case, precise: bool) -> Function | None:
    """The function of what is told by its attrs, of arrays of numbers."""
    from jax import lax

    if precise and case.op in _LOSING and case.results[0].dtype == "f64":  # type: ignore[union-attr]
        return None
    attrs = _attrs(case)
    called = (_precise().get(case.op) if precise else None) or _families().get(case.op) or _special().get(case.op)
    if called is not None:
        return lambda *xs: _tuple(called(attrs, *xs))
    name = _ALIASES.get(case.op, case.op).replace("-", "_")
    function = getattr(lax, name, None) if case.op in BUILTIN.primitives and case.op != "igamma_grad_a" else None  # without order
    return None if function is None else lambda *xs: _tuple(function(*xs, **attrs))


def _attrs(case: Case) -> dict[str, Any]:
    """The attrs of a case, with symbolic dimensions for open sizes."""
    attrs = dict(cast(Any, case.attrs))
    if not are_there_open_sizes():
        return attrs
    from tidu_cli.adapters.jax.lowering.dims import dim_of  # which functions of fixed sizes do without

    return {name: dim_of(value) for name, value in attrs.items()}


@cache
def _families() -> dict[str, Callable[..., Any]]:
    """The functions of attrs, a dict, and of arrays, by op: those that are made of lax's."""
    from tidu_cli.adapters.jax.lowering import arrays

    return arrays.FUNCTIONS


@cache
def _special() -> dict[str, Callable[..., Any]]:
    """Likewise, those of matrices that JAX does not have; their derivatives are tidu's."""
    from tidu_cli.adapters.jax.lowering.matrices import FUNCTIONS

    return FUNCTIONS


@cache
def _precise() -> dict[str, Callable[..., Any]]:
    """Likewise, those that have more digits than lax's of the same names."""
    from tidu_cli.adapters.jax.lowering.precise import FUNCTIONS

    return FUNCTIONS


def _tuple(results: Any) -> tuple[Any, ...]:
    return tuple(results) if isinstance(results, tuple | list) else (results,)
