"""The graphs of a definition at types and attrs: typed, and found to be what they should.

Each is a closed graph whose inputs are all that a graph of its kind may take, and is differentiated as any other.

How many nodes an op stands for is counted on the graphs alone, before anything is written out: each op that applies the one before
twice doubles what it stands for: thirty of them, in seven kilobytes, are a billion nodes. To differentiate, batch or run an op
takes time as its size, and is refused where that is far beyond what is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, ParamSpec, TypeVar

from tidu_cli.custom.definitions import PASS, AttrsReader, AttrValues, CustomAttrs, OpDefinition, SourceGraph, substituted
from tidu_cli.custom.patterns import Pattern, Variables, fits, match_all
from tidu_cli.errors import EvaluationError, LimitError, MissingRuleError, TiduError, TypeRuleError, UnknownNameError, placed
from tidu_cli.graph.closed import graphs_within
from tidu_cli.graph.graph import Case, CaseTable, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.large import no_collection
from tidu_cli.graph.types import Type, storage_dtype, tangent_type
from tidu_cli.lax.arrays.structural import dtype_name
from tidu_cli.limits import limits, more_than, require
from tidu_cli.rules.contract import Kernel, Primitive, Types, ValueTypes
from tidu_cli.rules.families import changed
from tidu_cli.rules.recording.conversion import converted, converted_cotangent
from tidu_cli.rules.recording.linearity import require_linear
from tidu_cli.rules.recording.trace import Trace, recorded
from tidu_cli.rules.tangents import admits
from tidu_cli.rules.terms import Term
from tidu_cli.rules.vocabulary import PrimitiveSet


def typed_graph(definition: OpDefinition, kind: str, primitives: PrimitiveSet, attrs: CustomAttrs, operands: ValueTypes) -> Graph:
    """A graph of a definition where the op has operands of these types.

    Raises TypeRuleError naming the graph and its node where types do not fit, and where a graph that says how to differentiate
    is not linear in tangents or cotangents.
    """
    identity = kind, attrs, operands
    if identity not in definition.typed:
        definition.typed[identity] = _typed(definition, kind, primitives, attrs, operands)
    return definition.typed[identity]


@no_collection()
def _typed(definition: OpDefinition, kind: str, primitives: PrimitiveSet, attrs: CustomAttrs, operands: ValueTypes) -> Graph:
    variables = match_all(definition.inputs, operands)
    types: dict[Key, Type] = dict(zip(definition.inputs, operands, strict=True))
    if kind != "forward":
        forward = typed_graph(definition, "forward", primitives, attrs, operands)
        types |= {o.key: o.type for o in forward.outputs}
        for key, type_ in list(types.items()):
            types[key.tangent(PASS)] = types[key.cotangent(PASS)] = tangent_type(type_)
    taken, due = definition.ports_of(kind)
    trace = Trace(primitives, CaseTable())
    inputs = [Input(key, types[key]) for key in taken]
    sources = {i.key: trace.source(i.type, linear=False) for i in inputs}
    try:
        terms = _emitted(trace, definition.graphs[kind], definition.read_attrs, attrs.values, sources)
    except TiduError as error:
        raise TypeRuleError(f"its {kind}: {error}") from None
    if kind == "forward":
        outputs = [_output(key, pattern, terms[key], variables) for key, pattern in definition.outputs.items()]
    else:
        outputs = [_natural_output(kind, key, terms[key], types) for key in due]
    graph = recorded(trace, f"{kind} of {definition.name}", inputs, outputs)
    if kind != "forward":
        n_moving = len(definition.inputs if kind == "jvp" else definition.outputs)
        active = [k >= len(taken) - n_moving for k in range(len(taken))]
        _check_linear(kind, primitives, graph, active, "tangents" if kind == "jvp" else "cotangents")
    if kind == "transpose":
        names = [key.name for key, is_linear in zip(definition.inputs, definition.linear_in, strict=True) if is_linear]
        _check_linear("forward", primitives, forward, definition.linear_in, f"input{'s' * (len(names) > 1)} {', '.join(names)}")
    return graph


def _emitted(
    trace: Trace, source: SourceGraph, read_attrs: AttrsReader, attrs: AttrValues, sources: Mapping[Key, Term]
) -> dict[Key, Term | None]:
    """The outputs of a graph, whose nodes are recorded. Raises TiduError naming the node."""
    values = [sources[key] for key in source.inputs]
    plain: dict[tuple[object, ...], int] = {}  # the cases of nodes without attrs
    for number, node in enumerate(source.nodes):
        try:
            check_references("it", node.inputs, len(values))
            operands = [values[k] for k in node.inputs]
            kind = (node.op, *[t.known_type for t in operands])
            if kind in plain and not node.attrs:
                values += trace.append(plain[kind], operands)
                continue
            values += trace.apply(node.op, read_attrs(trace.primitives, node.op, substituted(node.attrs, attrs)), operands)
            if not node.attrs:
                plain[kind] = trace.nodes[-1].code
        except TiduError as error:
            raise TypeRuleError(placed(f"node {number} ({node.op})", error)) from None
    for key, value in source.outputs:
        check_references(f"output '{key}'", [] if value is None else [value], len(values))
    return {key: None if value is None else values[value] for key, value in source.outputs}


def _output(key: Key, pattern: Pattern, term: Term | None, variables: Variables) -> Output:
    """An output of `forward`. Raises TypeRuleError for one that is zero, or of a type that does not fit."""
    if term is None:
        raise TypeRuleError(f"its forward gives null for the output '{key.name}'; write the zeros as a value")
    if not fits(pattern, term.value_type, variables):
        raise TypeRuleError(f"its forward gives '{key.name}' the type {term.value_type}, which does not fit {pattern}")
    return Output(key, term.slot, term.value_type)


def _natural_output(kind: str, key: Key, term: Term | None, types: Mapping[Key, Type]) -> Output:
    """A tangent or cotangent of its natural type, made of any that is admitted. Raises TypeRuleError for others."""
    if term is not None and term.value_type != types[key]:
        if not admits(types[Key(key.name)], term.value_type):
            raise TypeRuleError(f"its {kind} gives '{key}' the type {term.value_type}, which must be {types[key]}")
        term = (converted if kind == "jvp" else converted_cotangent)(term, types[key])
    return Output(key, None if term is None else term.slot, types[key])


def _check_linear(kind: str, primitives: PrimitiveSet, graph: Graph, active: Sequence[bool], what: str) -> None:
    try:
        require_linear(primitives, graph, active, what)
    except MissingRuleError as error:
        raise TypeRuleError(f"its {kind}: {error}") from None


def check_references(place: str, references: Sequence[int], n_values: int) -> None:
    """Raises UnknownNameError for a local id that is not there."""
    for k in references:
        if not 0 <= k < n_values:
            raise UnknownNameError(f"{place}: refers to value {k}, but only {n_values} values come before it")


# Primitives of other packages, guarded: what goes wrong within their rules is told as theirs, and passes for no bug in tidu.


P = ParamSpec("P")
R = TypeVar("R")


def guarded(primitive: Primitive, package: str) -> Primitive:
    """The primitive with rules that raise TiduErrors only, which name it and the package where the rule itself has failed.

    Its evaluation is held to what its type rule says.
    """

    broken = f"in package {package} is broken"

    def guard(rule: Callable[P, R], what: str, kind: type[TiduError] = MissingRuleError) -> Callable[P, R]:
        def run(*args: P.args, **options: P.kwargs) -> R:
            try:
                return rule(*args, **options)
            except (TiduError, MemoryError):
                raise
            except Exception as error:
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                raise kind(f"op '{primitive.name}': its {what} {broken} ({reason})") from None

        return run

    def kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
        make = guard(primitive.evaluation.kernel, "evaluation", EvaluationError)
        compute = guard(make(np, attrs, operands, results), "evaluation", EvaluationError)

        def run(*arrays: Any) -> Any:
            computed = compute(*arrays)
            for array, due in zip(computed if len(results) > 1 else (computed,), results, strict=True):
                given = _shown(array)
                held = str(due.with_dtype(storage_dtype(due.dtype)))
                if given != held:
                    raise EvaluationError(f"op '{primitive.name}': its evaluation {broken} (it gives {given} where {held} is due)")
            return computed

        return run

    work = primitive.evaluation.work
    given: dict[str, Any] = {name: rule for name in _RULES if (rule := getattr(primitive.rules, name)) is not None}
    return changed(
        primitive,
        types=guard(primitive.domain.types, "type rule", TypeRuleError),
        kernel=kernel,
        flops=guard(primitive.evaluation.flops, "rule of flops", TypeRuleError),
        work=work and guard(work, "rule of work", TypeRuleError),
        n_results=guard(primitive.domain.n_results, "number of results", TypeRuleError),
        **{name: guard(rule, f"{_RULES[name]} rule") for name, rule in given.items()},
    )


_RULES = {"jvp": "JVP", "transpose": "transpose", "batch": "batch", "inlined": "inlining"}
"""Rules that a primitive may lack, and what messages call them."""


def _shown(array: Any) -> str:
    """The type of an array or NumPy scalar, in tidu's words; of anything else, its class."""
    if not hasattr(array, "dtype") or not hasattr(array, "shape"):
        return type(array).__name__
    return f"{dtype_name(array.dtype)}[{','.join(map(str, array.shape))}]"


Sizes = Mapping[str, int]
"""By the name of a custom operation, how many nodes it stands for."""


def sizes(definitions: Sequence[OpDefinition], order: Iterable[str]) -> Sizes:
    """The sizes of custom operations: of what they compute, or of the largest graph that says how they are differentiated.

    In `order`, what a `forward` applies comes before the op. Linear in the definitions.
    """
    by_name = {d.name: d for d in definitions}
    values: dict[str, int] = {}  # of what is computed
    largest: dict[str, int] = {}
    for name in order:
        if name in by_name:
            values[name] = _size(by_name[name].graphs["forward"], values)
    for name in values:
        graphs = by_name[name].graphs
        # A derivative through `forward` goes through those of the ops in it; any other computes what its own graph says.
        largest[name] = max(_size(graph, largest if kind == "forward" else values) for kind, graph in graphs.items())
    return largest


def _size(graph: SourceGraph, sizes: Sizes) -> int:
    return sum(sizes.get(op.partition(".")[0], 1) for op in graph.ops)


def require_written_out(definitions: Sequence[OpDefinition], sizes: Sizes, graphs: Sequence[Graph]) -> None:
    """Raises LimitError, naming the op, if the custom operations of graphs stand for more nodes than the limit allows.

    Those that are written do not count. All distinct cases do, together, as rules go through each of them node by node; and all
    nodes together, with custom operations written out, are bounded as those of any document.
    """
    allowed = limits().expansion
    written = sum(len(graph.nodes) for d in definitions for graph in d.graphs.values())
    counts = Counter[Case]()
    for code, count in Counter(chain(*(graph.code for graph in graphs))).items():
        counts[graphs[0].cases[code]] += count
    for closed in graphs_within(list(counts)):
        for code, count in Counter(closed.graph.code).items():
            counts[closed.graph.cases[code]] += count
    n_nodes = expanded = 0
    for case, count in counts.items():
        op = case.op.partition(".")[0]
        size = sizes.get(op, 0)
        n_nodes += count * max(size, 1)
        expanded += size
        if expanded > written + allowed:
            others = "" if expanded == size else ", with own ops before it and at other types,"
            raise LimitError(
                f"op '{op}': it is of ops of ops, and{others} stands for {expanded:,} nodes, {more_than('expansion', allowed)}"
            )
    require("nodes", n_nodes, "the document, with its own ops written out")
