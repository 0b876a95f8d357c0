"""static: what can be said of a document and its derivatives without evaluating it, beyond what every reader checks.

Readers refuse wrong types and references, and linear graphs that are not linear. `findings` look at meaning: keys of other passes,
masks outside of linear graphs that do not follow the tangents, linear nodes without transpose rules, values that nothing uses.
The rest says of `wrt` what moves no output, as integers that are only indices, and which parameters of a model it leaves out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Any

from tidu_cli.errors import MissingRuleError, Remedy, TiduError, TransformError, counted
from tidu_cli.frozen import Frozen
from tidu_cli.graph.closed import backwards, forwards, named_graphs
from tidu_cli.graph.graph import Case, CaseTable, Document, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import LogicalGraph, link
from tidu_cli.graph.passes import Call
from tidu_cli.graph.select import covered, is_movable, listed
from tidu_cli.graph.types import TensorType, leaves
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.catalogue import Part
from tidu_cli.rules.recording.templates import jvp_template, transpose_template
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.derivative import Derivative, natural_seeds, tangent_inputs
from tidu_cli.transforms.linearize import push_forward


class Finding(Frozen, slots=False):
    """Something that is wrong (`serious`), or only useless, and where."""

    serious: bool
    text: str


def findings(document: Document, primitives: PrimitiveSet) -> Iterator[Finding]:
    """Everything there is to say, graph by graph."""
    logical = link(document)
    used = used_values(logical)
    for number in sorted(document.used_passes() - document.passes.keys()):
        text = f"pass {number} has no identity, so it is linked with any other pass {number}; tidu linearize gives one"
        yield Finding(False, text)
    for g, graph in enumerate(document.graphs):
        yield from _ports(graph)
        yield from _masks(graph)
        yield from _linearity(graph, primitives)
        yield from _unused(logical, g, used)
        yield from _within(graph, primitives)


def _within(graph: Graph, primitives: PrimitiveSet) -> Iterator[Finding]:
    """What is useless in the graphs in nodes' attrs."""
    known = {code: texts for code in set(graph.code) if (texts := list(_useless(graph.cases[code], primitives)))}
    for node, code in enumerate(graph.code if known else ()):
        yield from (Finding(False, f"{graph.describe(node)}, {text}") for text in known.get(code, ()))


def _useless(case: Case, primitives: PrimitiveSet) -> Iterator[str]:
    """What no output depends on in the graphs in a node's attrs: nodes, and operands of the node that none of them needs."""
    graphs, parts = named_graphs(case.attrs), primitives[case.op].catalogue.parts
    told = parts(case.attrs) if parts and graphs else [Part("")] * len(graphs)
    needed: set[int] = set()
    unused: dict[int, str] = {}
    for (name, closed), part in zip(graphs, told, strict=True):
        logical = link(closed.document)
        used = used_values(logical)
        for node in dead_nodes(logical, 0, used):
            yield f"{name}, node {node} ({closed.graph.case(node).op}): no output depends on it"
        for k, (operand, _) in enumerate(part.inputs):
            if used[logical.source[closed.graph.inputs[k].key]]:
                needed.add(operand)
            else:
                unused[operand] = f"{name}: no output depends on input '{closed.graph.inputs[k].key}'"
        for inner in dict.fromkeys(closed.graph.code):
            for text in _useless(closed.graph.cases[inner], primitives):
                yield f"{name}, node {closed.graph.code.index(inner)} ({closed.graph.cases[inner].op}), {text}"
    yield from (text for operand, text in unused.items() if operand not in needed)


def _ports(graph: Graph) -> Iterator[Finding]:
    if graph.linear is not None:
        for key in [*(i.key for i in graph.inputs), *(o.key for o in graph.outputs)]:
            if not key.path or abs(key.path[-1]) != graph.linear:
                text = f"graph '{graph.name}': '{key}' is not a tangent or cotangent of pass {graph.linear}, in a linear graph"
                yield Finding(True, text)


def _masks(graph: Graph) -> Iterator[Finding]:
    """An operand is active only where it depends on tangents; or on constants alone, which materialize makes of given tangents.

    In a linear graph readers have seen to it.
    """
    if graph.linear is not None:
        return
    carries = [bool(i.key.path) for i in graph.inputs]  # a tangent
    fixed = [False] * len(carries)
    for node, (case, arguments) in enumerate(graph.nodes()):
        for k, argument in enumerate(arguments):
            if case.mask is not None and case.mask[k] and (argument < 0 or not (carries[argument] or fixed[argument])):
                yield Finding(True, f"{graph.describe(node)}: input {k} is active, but no tangent reaches it")
        carries += [case.mask is not None] * len(case.results)
        fixed += [case.mask is None and all(a >= 0 and fixed[a] for a in arguments)] * len(case.results)


def _linearity(graph: Graph, primitives: PrimitiveSet) -> Iterator[Finding]:
    """A linear node whose primitive has no transpose for its mask is not linear in its active operands."""
    missing: dict[int, str] = {}
    for code in set(graph.code):
        case, table = graph.cases[code], CaseTable()
        can_be = None not in case.operands and not primitives.is_irreversible([case])
        if case.mask is not None and can_be:  # rules may need the types that a detached reference hides
            try:
                transpose_template(primitives, table, table.intern(case), (True,) * len(case.results))
            except MissingRuleError as error:
                missing[code] = str(error)
    for node, code in enumerate(graph.code if missing else ()):
        if code in missing:
            yield Finding(True, f"{graph.describe(node)}: not known to be linear in its active inputs: {missing[code]}")


def used_values(logical: LogicalGraph) -> bytearray:
    """Of each flat id, whether some output needs it."""
    outputs = [(g, o.value) for g, graph in enumerate(logical.document.graphs) for o in graph.outputs if o.value is not None]
    return logical.depends_on(logical.flat_id(g, value) for g, value in outputs)


def _unused(logical: LogicalGraph, g: int, used: bytearray) -> Iterator[Finding]:
    # The values that a residual graph is for are read by linear graphs, whose outputs are what counts.
    graph = logical.document.graphs[g]
    for declared in graph.inputs:
        if not used[logical.source[declared.key]]:
            yield Finding(False, f"graph '{graph.name}': no output depends on input '{declared.key}'")
    for node in dead_nodes(logical, g, used):
        yield Finding(False, f"{graph.describe(node)}: no output depends on it")


def dead_nodes(logical: LogicalGraph, g: int, used: bytearray) -> Iterator[int]:
    """The nodes of graph g that no output needs."""
    graph = logical.document.graphs[g]
    for node, (_, _, first, after) in enumerate(forwards(graph, graph.args, logical.base[g])):
        if 1 not in used[first:after]:
            yield node


# Through which nodes of a graph derivatives go: where a value moves with the inputs, but what is computed of it does not.
#
# Nodes that were read from another format are told by what their meta says of them there.


class Activity(Frozen, slots=False):
    """Operators at which derivatives are zero from there on, and those without a rule, with how many nodes; why those have none.

    `moving` says whether some output has a derivative by some input of floats.
    """

    ending: Counter[str]
    lacking: Counter[str]
    reasons: tuple[str, ...]
    moving: bool


def activity(graph: Graph, primitives: PrimitiveSet) -> Activity:
    """Walk a graph whose inputs of floats all move."""
    table, known = CaseTable(), dict[tuple[int, tuple[bool, ...]], tuple[bool, ...] | TiduError]()
    ending, lacking, reasons = Counter[str](), Counter[str](), dict[str, None]()
    active = [any(t.inexact for _, t in leaves(i.type)) for i in graph.inputs]
    reached = list(active)  # and values that end within an operator, which may be of several nodes
    for number, (case, args) in enumerate(graph.nodes()):
        mask = tuple(active[a] for a in args)
        key = graph.code[number], mask
        if key not in known:
            known[key] = moved_by(case, mask, table, primitives) if any(mask) else (False,) * len(case.results)
        moved = known[key]
        if isinstance(moved, TiduError):
            lacking[_operator(graph, number) or case.op] += 1
            reasons[str(moved)] = None
            moved = (False,) * len(case.results)
        touched, name = any(reached[a] for a in args), _operator(graph, number)
        if name and touched and not any(moved) and not all(_is_bool(t) for t in case.results):
            ending[name] += 1
        active += moved
        reached += [f or (touched and not name) for f in moved]
    moving = any(o.value is not None and active[o.value] for o in graph.outputs)
    return Activity(ending, lacking, tuple(reasons), moving)


def moved_by(case: Case, mask: tuple[bool, ...], table: CaseTable, primitives: PrimitiveSet) -> tuple[bool, ...] | TiduError:
    """Of each result of a case whether it moves with the operands of the mask; or what its rule lacks."""
    try:
        template = jvp_template(primitives, table, table.intern(case), mask)
    except TiduError as error:
        return error
    return tuple(slot is not None and t.inexact for slot, t in zip(template.results, case.results, strict=True))


def _operator(graph: Graph, number: int) -> str:
    """The operator that a node is of where it was read from, as its meta says; empty if it does not."""
    meta: Any = graph.node_meta.get(number)
    told = meta.get("onnx") if isinstance(meta, dict) else None
    op = told.get("op") if isinstance(told, dict) else None
    return op if isinstance(op, str) else ""


def _is_bool(type_: Any) -> bool:
    return isinstance(type_, TensorType) and type_.dtype == "bool"


def require_moving(document: Document, wrt: Sequence[Key], outputs: Sequence[Key] = ()) -> None:
    """Raises TransformError for an integer of `wrt` that outputs depend on, while its tangent reaches none: as an index does.

    Only of first derivatives: those of a higher order may be zero, and their interface must not depend on that.
    """
    primitives = vocabulary(document.cases)
    for key in () if document.used_passes() else wrt:
        type_ = document.inputs[key].type
        call = Call.of(document, [key], outputs, None)
        if is_movable(type_) or key in document.bound or not call.needed[call.logical.source[key]]:
            continue
        derivative = Derivative(call.logical, tangent_inputs(call, {}), n_before=len(document.graphs))
        tangent = push_forward(derivative, natural_seeds(derivative, call, (), primitives), call.needed, primitives)
        if any(flat is not None and tangent[flat] for _, flat in call.targets):
            continue
        real = [str(k) for k, i in document.inputs.items() if is_movable(i.type) and call.needed[call.logical.source[k]]]
        raise TransformError(
            f"the derivative by input '{key}', {type_}, is zero, as it reaches outputs only through {_end(call, tangent)}, which "
            f"passes none on; differentiate by {f'{listed(real)}, or ' if real else ''}a value within a model, such as an "
            "embedding: ",
            Remedy("cut", "NAME", command="convert MODEL", python="load_onnx(MODEL, cut=NAME)"),
        )


def _end(call: Call, tangent: Sequence[int]) -> str:
    """A node at which tangents end that an output depends on: the first that gives real numbers, if there is one."""
    logical, ends = call.logical, list[tuple[bool, str]]()
    for graph, args, base in zip(logical.document.graphs, logical.args, logical.base, strict=False):
        for number, (_, reads, first, end) in enumerate(forwards(graph, args, base)):
            if 1 in call.needed[first:end] and any(tangent[v] for v in reads) and not any(tangent[v] for v in range(first, end)):
                ends.append((not any(map(is_movable, graph.case(number).results)), graph.describe(number)))
    return min(ends, key=lambda end: end[0])[1]


def parameters_left(document: Document, inputs: Sequence[Key], outputs: Sequence[Key] = ()) -> str:
    """How many of the parameters of a model are among these inputs, and which are not; empty where all are.

    Parameters are inputs whose meta says so, as readers of models write it.
    """
    parameters = [k for k, i in document.inputs.items() if (i.meta or {}).get("parameter") is True and k not in document.bound]
    left = [k for k in parameters if k not in inputs]
    if not left:
        return ""
    carried = _carrying(document, outputs)
    named = [str(k) for k in left if k in carried]
    told = f": {listed(named)}" if len(named) == len(left) else f"; a gradient goes to {listed(named)} of these"
    taken = f"{len(parameters) - len(left)} of {counted(len(parameters), 'parameter')}"
    return f"{Remedy('wrt', python='wrt')} takes {taken} and leaves {len(left)}{told}"


def _carrying(document: Document, outputs: Sequence[Key]) -> set[Key]:
    """The inputs from which derivatives go to the head's outputs, or to `outputs`. Raises UnknownNameError."""
    logical, primitives, table = link(document), vocabulary(document.cases), CaseTable()
    reached = bytearray(logical.n_values)
    for _, flat in logical.select_outputs(outputs):
        if flat is not None:
            reached[flat] = 1
    known: dict[int, tuple[tuple[bool, ...], tuple[bool, ...]]] = {}
    for graph, args, base in list(zip(document.graphs, logical.args, logical.base, strict=False))[::-1]:
        for code, reads, first, end in backwards(graph, args, base):
            if 1 not in reached[first:end]:
                continue
            if code not in known:  # together, as it is seldom that one operand of floats moves a result and another does not
                case = graph.cases[code]
                mask = tuple(t is not None and is_movable(t) for t in case.operands)
                moved = moved_by(case, mask, table, primitives) if any(mask) else ()
                known[code] = mask, () if isinstance(moved, TiduError) else moved
            mask, moves = known[code]
            if any(m and reached[first + at] for at, m in enumerate(moves)):
                for operand in compress(reads, mask):
                    reached[operand] = 1
    return {key for key in document.inputs if reached[logical.source[key]]}


def weights_hint(document: Document, keys: Sequence[Key]) -> tuple[str | Remedy, ...]:
    """What messages add where some key is no input, but weights of a model that are constants are of its name, or match it."""
    formats = [part for graph in document.graphs for part in (graph.meta or {}).values() if isinstance(part, dict)]
    unknown = [str(key) for key in keys if key not in document.inputs]

    def matching(what: str) -> list[str]:
        listings = [names for part in formats if isinstance(names := part.get(what), list | tuple)]
        names = dict.fromkeys(name for names in listings for name in names if isinstance(name, str))
        return [name for text in unknown for name in ([text] if text in names else covered(text, names))]

    told = list[str | Remedy]()
    if matches := matching("weights"):
        way = Remedy("weights", "FILE.npz", command="convert MODEL", python="load_onnx(MODEL, weights=True)")
        told += [f"; weights of the model are constants: {listed(matches)}; ", way, " makes inputs of them"]
    if matches := matching("constants"):
        way = Remedy("cut", matches[0], command="convert MODEL", python=f"load_onnx(MODEL, cut={matches[0]!r})")
        told += [f"; nodes of the model have constants {listed(matches)}; ", way, " makes an input of one"]
    return tuple(told)
