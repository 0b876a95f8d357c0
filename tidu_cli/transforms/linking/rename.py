"""Other names for inputs, outputs and graphs of a document; and what stands for some nodes in their place.

Names are those that users gave: with an input x go its tangents x@1 and its cotangents x@-1, with an output y its cotangents y@-1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, cast

from tidu_cli.errors import TransformError, UnknownNameError, did_you_mean
from tidu_cli.frozen import Frozen, field, replace
from tidu_cli.graph.closed import ClosedGraph, closed_graphs, forwards, with_cases
from tidu_cli.graph.graph import Binding, Case, CaseTable, Document, Externals, Graph, column
from tidu_cli.graph.keys import Key
from tidu_cli.graph.large import no_collection
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.literals import Constant, Literal
from tidu_cli.graph.select import fresh_name, require_inputs
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.lax.vocabulary import BUILTIN, vocabulary
from tidu_cli.rules.attrs import Attrs
from tidu_cli.rules.contract import Inlining
from tidu_cli.rules.recording.templates import Templates
from tidu_cli.rules.recording.trace import Template, Trace
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.stamp import Stamper
from tidu_cli.watching import listening, watch


class Owner(NamedTuple):
    """Whose tangent or cotangent a key is: the input, or the output, of this name. A plain key is its own."""

    is_input: bool
    name: str


def owner(key: Key, *, is_input: bool) -> Owner:
    """The owner of the key of an input, or of an output.

    A tangent stays on its owner's side and a cotangent changes sides: `x@-1` among the outputs belongs to the input x, `y@-1` among
    the inputs to the output y, and `x@-1@-2` among the inputs to the input x.
    """
    changes = sum(step < 0 for step in key.path)
    return Owner(is_input == (changes % 2 == 0), key.name)


class Renaming(Frozen, slots=False):
    """New names of inputs, of outputs and of graphs, by the old ones."""

    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    graphs: Mapping[str, str] = field(default_factory=dict)

    def input_key(self, key: Key) -> Key:
        """What the key of an input becomes."""
        return self._key(key, is_input=True)

    def output_key(self, key: Key) -> Key:
        """What the key of an output becomes."""
        return self._key(key, is_input=False)

    def _key(self, key: Key, *, is_input: bool) -> Key:
        owned_by_input, name = owner(key, is_input=is_input)
        return replace(key, name=(self.inputs if owned_by_input else self.outputs).get(name, name))


def rename(document: Document, renaming: Renaming) -> Document:
    """The document with other names, which computes the same, where they make no two inputs, outputs or graphs one.

    The digests of what detached values depend on hold the names of inputs: a document that reads such may keep only those.
    """
    return with_other_keys(document, renaming.input_key, renaming.output_key, lambda name: renaming.graphs.get(name, name))


def renamed(document: Document, keys: Mapping[str, str], graphs: Mapping[str, str]) -> Document:
    """The document with names that a user chose for keys, of inputs and outputs, and graphs, by the old ones.

    Tangents and cotangents follow their keys, and graphs that are derived from one, such as f@1, follow that.

    Raises UnknownNameError for a name that the document has not; TransformError where two would be one, and for a document that
    reads detached values, whose digests hold the names of inputs.
    """
    stems = {graph.name: graph.name.partition("@")[0] for graph in document.graphs}
    of_inputs = {i.key.name for graph in document.graphs for i in graph.inputs}
    of_outputs = {o.key.name for graph in document.graphs for o in graph.outputs}
    _require_one_to_one("input or output", keys, of_inputs | of_outputs)
    _require_one_to_one("graph", graphs, set(stems.values()))
    if document.detached and keys:
        raise TransformError(
            f"the document reads the detached value {document.detached[0].digest}, which may depend on inputs by their names; "
            "resolve it with the document that defines it"
        )
    derived = {old: graphs.get(stem, stem) + old[len(stem) :] for old, stem in stems.items()}
    return rename(document, Renaming(keys, keys, derived))


def _require_one_to_one(what: str, names: Mapping[str, str], known: Collection[str]) -> None:
    after = {old: old for old in known if old not in names}
    for old, new in names.items():
        if old not in known:
            hint = did_you_mean(old, sorted(known)) or f" ({', '.join(sorted(known)) or 'none'})"
            raise UnknownNameError(f"no {what} is named '{old}'{hint}")
        if not new or "@" in new:
            raise TransformError(f"{what} '{old}' cannot be named '{new}': a name is text without @, which begins a pass")
        if new in after:
            raise TransformError(f"'{after[new]}' and '{old}' would both be named '{new}'; choose another name")
        after[new] = old


def with_other_keys(
    document: Document, input_key: Callable[[Key], Key], output_key: Callable[[Key], Key], graph_name: Callable[[str], str]
) -> Document:
    """The document with other keys of inputs and outputs, and other names of graphs, each told from the old one."""
    graphs = [
        replace(
            graph,
            name=graph_name(graph.name),
            inputs=tuple(replace(i, key=input_key(i.key)) for i in graph.inputs),
            outputs=tuple(replace(o, key=output_key(o.key)) for o in graph.outputs),
        )
        for graph in document.graphs
    ]
    return replace(document, graphs=tuple(graphs), bindings=tuple(replace(b, key=input_key(b.key)) for b in document.bindings))


# inline: put what custom operations stand for in their place.


def inline(document: Document, *, primitives: PrimitiveSet | None = None) -> Document:
    """A document of one self-contained graph, without custom operations: their nodes are those of their graphs.

    Roles follow: what reads a tangent is linear in it. Nodes that are then equal stay two: materialize makes them one. Raises
    MissingRuleError naming the node.
    """
    primitives = primitives or vocabulary(document.cases)
    (graph,) = document.graphs
    primitives.require_written_out([graph])
    # What is put in may have custom operations in it, but no one twice: definitions do not recurse.
    while any(primitives[graph.cases[code].op].rules.inlined for code in set(graph.code)):
        graph = put_in_place(graph, primitives, lambda case: primitives[case.op].rules.inlined)
    cases = CaseTable(replace(primitives, primitives=BUILTIN.primitives, definitions=()))

    def inlined(closed: ClosedGraph) -> ClosedGraph:
        with listening(None):
            return ClosedGraph.of(inline(closed.document, primitives=primitives).head)

    return replace(document, graphs=(with_cases(graph, cases, lambda case: _changed_within(case, inlined)),), cases=cases)


def _changed_within(case: Case, change: Callable[[ClosedGraph], ClosedGraph], but_for: Sequence[str] = ()) -> Case:
    """The case with each graph in its attrs changed, but for those in some fields."""
    if not closed_graphs(case.attrs):
        return case
    assert isinstance(case.attrs, Attrs)
    return replace(case, attrs=case.attrs.with_graphs(change, but_for))


def put_in_place(graph: Graph, primitives: PrimitiveSet, rule: Callable[[Case], Inlining | None]) -> Graph:
    """The graph with what the rule of a case gives in the place of its nodes, for which it is asked once a case."""
    cases = graph.cases
    rules = {code: rule(cases[code]) for code in set(graph.code)}
    builder = GraphBuilder(cases, graph.inputs)
    stamper = Stamper.alone(builder)
    templates = Templates(lambda code, _: _template(primitives, cases, code, cast(Inlining, rules[code])))
    new = column(range(len(graph.inputs)))
    nodes = watch("inline", graph.n_nodes)(forwards(graph, graph.args))
    for node, (code, reads, _, _) in enumerate(nodes):
        arguments = [new[a] for a in reads]
        if rules[code] is None:
            builder.keep_meta(graph, node)
            new.extend(stamper.linear.append(code, arguments))
        else:
            template = templates.get(code) or templates.record(graph, node, code, ())
            new.extend(stamper.stamp(template, arguments))
    return builder.rebuilt(graph, new)


@no_collection()
def _template(primitives: PrimitiveSet, cases: CaseTable, code: int, rule: Inlining) -> Template:
    trace = Trace(primitives, cases)
    operands = trace.operands(cases[code])
    return trace.template(len(operands), rule(cases[code].attrs, operands))


# bound_loops: put loops of a known number of steps in the place of others.


def bound_loops(document: Document, steps: int) -> Document:
    """The document with a loop of `steps` steps for each whose number of steps is not known before, also within other loops.

    Loops of solvers, through which no derivative goes, stay, and those of custom operations. Raises TransformError for a document
    that is not one self-contained graph.
    """
    if len(document.graphs) != 1 or len(document.head.external):
        raise TransformError("loops are bounded in one self-contained graph; run tidu materialize first")
    graph = _bounded(document.head, vocabulary(document.cases), steps)
    return replace(document, graphs=(graph,), cases=graph.cases)


def _bounded(graph: Graph, primitives: PrimitiveSet, steps: int, *, linear: bool = False) -> Graph:
    """The graph with bounded loops; `linear` says that tangents may be among its values."""

    def within(case: Case) -> Case:
        tangents, solvers = linear or case.mask is not None, getattr(case.attrs, "solvers", ())
        return _changed_within(case, lambda c: ClosedGraph.of(_bounded(c.graph, primitives, steps, linear=tangents)), solvers)

    def rule(case: Case) -> Inlining | None:
        bounded, tangents = primitives[case.op].rules.bounded, linear or case.mask is not None
        return None if bounded is None else lambda attrs, operands: bounded(attrs, operands, steps, tangents)

    return put_in_place(with_cases(graph, CaseTable(graph.cases.vocabulary), within), primitives, rule)


# Make inputs constants.


def bind_constants(document: Document, values: Mapping[Key, Constant]) -> Document:
    """Bind inputs to constants, which are a new first graph; those of records are put together of constants.

    Raises UnknownNameError for a key that no graph declares, TransformError for an input that is bound and for a constant of
    another type than the declared one.
    """
    if not values:
        return document
    require_inputs(document, values)
    constants = _Constants(document.cases)
    bindings = []
    for key, constant in values.items():
        if key in document.bound:
            graph = document.graphs[document.bound[key][0]].name
            raise TransformError(f"input '{key}' is bound to a value of graph '{graph}', so it cannot be set")
        bindings.append(Binding(key, 0, constants.append(f"input '{key}'", document.inputs[key].type, constant)))
    bindings += [replace(b, graph=b.graph + 1) for b in document.bindings]
    graphs = (constants.builder.build(fresh_name(document, "constants"), ()), *map(_moved, document.graphs))
    return replace(document, graphs=graphs, bindings=tuple(bindings))


class _Constants:
    """The graph of the constants."""

    def __init__(self, cases: CaseTable) -> None:
        self.builder = GraphBuilder(cases)
        self.primitives = vocabulary(cases)

    def append(self, name: str, type_: Type, constant: Constant) -> int:
        """The local id of a constant of this type. Raises TransformError for one of another type."""
        if isinstance(type_, TensorType):
            if not isinstance(constant, Literal) or constant.type != type_:
                raise TransformError(f"{name} is {type_}, and cannot be set to a constant {_type_text(constant)}")
            return self._node(self.primitives.constant, {"value": constant}, (), ())
        if isinstance(constant, Literal) or len(constant) != len(type_.fields):
            raise TransformError(f"{name} is {type_}, and cannot be set to a constant {_type_text(constant)}")
        given = {field: (t, value) for (field, t), value in zip(type_.fields, constant, strict=True) if value is not None}
        if not given:  # a record has one field at least
            field, t = type_.fields[0]
            given[field] = t, _zero(t)
        reads = [self.append(f"{name}, field '{field}'", t, value) for field, (t, value) in given.items()]
        names = None if len(given) == len(type_.fields) else tuple(given)
        attrs = {"type": type_} if names is None else {"type": type_, "fields": names}
        return self._node(self.primitives.record, attrs, [t for t, _ in given.values()], reads)

    def _node(self, op: str, attrs: Mapping[str, object], types: Sequence[Type], reads: Sequence[int]) -> int:
        case = self.primitives.case(op, self.primitives.parse_attrs(op, attrs), None, types)
        return self.builder.append(self.builder.cases.intern(case), reads)


def _zero(type_: Type) -> Constant:
    return Literal(type_, bytes(type_.nbytes)) if isinstance(type_, TensorType) else (None,) * len(type_.fields)


def _type_text(constant: Constant) -> str:
    return str(constant.type) if isinstance(constant, Literal) else f"record of {len(constant)} fields"


def _moved(graph: Graph) -> Graph:
    """A graph whose references are to graphs of one number more."""
    numbers = column(g if g == Externals.DETACHED else g + 1 for g in graph.external.graph)
    return replace(graph, external=Externals(numbers, graph.external.value))
