"""Custom operations: whether the graphs that say how an op is differentiated fit the one that says what it computes.

Each op is judged at the types and attrs with which it occurs, or, in a library, at small ones that fit. Reading has checked what
can be said of a definition whatever its types; here its graphs are typed, found to be linear in tangents or cotangents, and held
against the forward graph: the laws of `tidu_cli.checking.numeric.laws`, of a document of one node.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

from tidu_cli.checking.numeric.trials import Drawing, one_node_document, shown
from tidu_cli.checking.static import Finding, dead_nodes, used_values
from tidu_cli.custom.definitions import KINDS, CustomAttrs, OpDefinition
from tidu_cli.custom.graphs import typed_graph
from tidu_cli.custom.patterns import ANY_AXES, ANY_DTYPE, instance, variables_of
from tidu_cli.errors import TiduError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Case, Document, Graph
from tidu_cli.graph.link import link
from tidu_cli.graph.types import Type
from tidu_cli.rules.contract import ValueTypes
from tidu_cli.rules.vocabulary import PrimitiveSet

if TYPE_CHECKING:
    from tidu_cli.checking.numeric.laws import Verdict

_AXES = ((2, 3), ())
"""What `...` is in trials."""

_DTYPES = ("f64", "c128")
"""What T is in trials."""


class Use(Frozen, slots=False):
    """A custom operation with attrs, at operand types."""

    definition: OpDefinition
    attrs: CustomAttrs
    types: ValueTypes

    def __str__(self) -> str:
        """As messages name it: `softplus(f64[3])`."""
        values = [f"{k}={v}" for k, v in self.attrs.values.items()]
        return f"{self.definition.name}({', '.join([*map(str, self.types), *values])})"

    def graph(self, kind: str, primitives: PrimitiveSet) -> Graph:
        """A graph of the definition. Raises TypeRuleError."""
        return typed_graph(self.definition, kind, primitives, self.attrs, self.types)


def uses_in(document: Document, primitives: PrimitiveSet) -> list[Use]:
    """The custom operations of a document, each as it occurs: in its graphs, and in the definitions of those."""
    codes = dict.fromkeys(code for graph in document.graphs for code in graph.code)
    cases = (document.cases[code] for code in codes)
    return _closed((use for case in cases if (use := _use(primitives, case.op, case.attrs, case.operands))), primitives)


def trial_uses(primitives: PrimitiveSet) -> tuple[list[Use], list[Finding]]:
    """The custom operations of a library at small types that fit; and what is wrong with those that fit none."""
    uses: list[Use] = []
    findings = []
    for definition in primitives.definitions:
        trials = list(_trials(definition, primitives))
        good = [use for use, error in trials if error is None]
        uses += good
        if not good:
            findings.append(Finding(True, trials[0][1] or "") if trials else _untried(definition))
    return _closed(uses, primitives), findings


def unused(document: Document, primitives: PrimitiveSet) -> Iterator[Finding]:
    """The definitions that no graph of the document needs."""
    reached = {d.name for d in primitives.reached_from(document.cases[c].op for graph in document.graphs for c in set(graph.code))}
    for d in primitives.definitions:
        if d.name not in reached and not d.origin:
            yield Finding(False, f"op '{d.name}': no graph uses it")


def findings(use: Use, primitives: PrimitiveSet) -> Iterator[Finding]:
    """What is wrong with a definition at these types, or useless."""
    for kind in KINDS:
        if kind not in use.definition.graphs:
            continue
        try:
            graph = use.graph(kind, primitives)
        except TiduError as error:
            yield Finding(True, f"op {use}: {error}")
            continue
        logical = link(Document((graph,), graph.cases))
        for number in dead_nodes(logical, 0, used_values(logical)):
            yield Finding(False, f"op {use}: its {kind}, node {number} ({graph.case(number).op}): no output depends on it")


def judged(use: Use, primitives: PrimitiveSet, seed: int) -> list[Verdict]:
    """The verdicts on an op at these types; none where there is nothing to differentiate. Raises what the transforms raise.

    Of an op with `transpose`, tangents go only to the inputs that it is linear in: for the others `forward` is what is
    differentiated. Besides the laws of documents there is *zero*: where tangents, or cotangents, are zero, the graph that the
    definition gives is zero, too, to the last bit.
    """
    from tidu_cli.checking.numeric.laws import check_numerically  # it needs NumPy

    linear = use.definition.linear_in
    fixed = {k for k, is_linear in zip(use.definition.inputs, linear, strict=True) if any(linear) and not is_linear}
    verdicts = check_numerically(one_use_document(use, primitives), primitives, fixed=fixed, seed=seed)
    kind = next((kind for kind in KINDS[1:] if kind in use.definition.graphs), None)
    return [*verdicts, _zero(use, kind, primitives, seed)] if verdicts and kind else verdicts


def one_use_document(use: Use, primitives: PrimitiveSet) -> Document:
    """A document of one node, the op, with its names for inputs and outputs."""
    return one_node_document(case_of(use, primitives), primitives, [*use.definition.inputs], [*use.definition.outputs])


def _zero(use: Use, kind: str, primitives: PrimitiveSet, seed: int) -> Verdict:
    import numpy as np

    from tidu_cli.checking.numeric.laws import Verdict
    from tidu_cli.checking.numeric.quotients import Map
    from tidu_cli.runtime.plans.program import compile_graph

    graph = one_use_document(use, primitives).head
    f = Map(compile_graph(graph, primitives))
    x = Drawing(graph.inputs, {}, {}, {}, seed).finite_point(f, np.random.default_rng([seed, 0]))
    if x is None:
        return Verdict("zero", None, 0.0)
    derivative = Map(compile_graph(use.graph(kind, primitives), primitives))
    greatest = max(float(np.abs(a).max(initial=0)) for a in derivative(x | f(x)).values())
    return Verdict("zero", greatest, 0.0, at=shown(x, graph.inputs) if greatest else None)


def _use(primitives: PrimitiveSet, op: str, attrs: Any, operands: Iterable[Type | None]) -> Use | None:
    """The use of an custom operation that a node is, or of the one whose derivative it is; None for any other."""
    definition = primitives.definition_of(op)
    types = tuple(operands)[: len(definition.inputs)] if definition else ()
    if definition is None or None in types:
        return None
    if op != definition.name:
        attrs = CustomAttrs.of({k: v for k, v in attrs.values.items() if k != "active"})
    return Use(definition, attrs, types)  # type: ignore[arg-type]


def _closed(uses: Iterable[Use], primitives: PrimitiveSet) -> list[Use]:
    """These and what their graphs use, each once."""
    waiting = deque(uses)
    by_identity: dict[tuple[str, CustomAttrs, ValueTypes], Use] = {}
    while waiting:
        use = waiting.popleft()
        identity = use.definition.name, use.attrs, use.types
        if identity in by_identity:
            continue
        by_identity[identity] = use
        for kind in use.definition.graphs:
            try:
                graph = use.graph(kind, primitives)
            except TiduError:
                continue  # said by `findings`
            cases = map(graph.cases.__getitem__, dict.fromkeys(graph.code))
            waiting.extend(inner for case in cases if (inner := _use(primitives, case.op, case.attrs, case.operands)))
    return list(by_identity.values())


def _trials(definition: OpDefinition, primitives: PrimitiveSet) -> Iterator[tuple[Use, str | None]]:
    """Uses at small types, with what is wrong with the forward graph there, if anything."""
    try:
        attrs = primitives.parse_attrs(definition.name, {})
    except TiduError:
        return
    assert isinstance(attrs, CustomAttrs)
    patterns = definition.inputs.values()
    variables = {name for p in patterns for name in variables_of(p)}
    sizes = {name: 2 + k for k, name in enumerate(sorted(variables - {ANY_AXES, ANY_DTYPE}))}
    axes = _AXES if ANY_AXES in variables else _AXES[:1]
    dtypes = _DTYPES if ANY_DTYPE in variables else _DTYPES[:1]
    for shape, dtype in product(axes, dtypes):
        use = Use(definition, attrs, tuple(instance(p, {**sizes, ANY_AXES: shape, ANY_DTYPE: dtype}) for p in patterns))
        try:
            use.graph("forward", primitives)
            yield use, None
        except TiduError as error:
            yield use, f"op {use}: {error}"


def _untried(definition: OpDefinition) -> Finding:
    return Finding(False, f"op '{definition.name}': not tried, since an attr has no default; check a document that uses it")


def case_of(use: Use, primitives: PrimitiveSet) -> Case:
    """The primary case of a use, from which the closure of a library starts."""
    return primitives.case(use.definition.name, use.attrs, None, use.types)
