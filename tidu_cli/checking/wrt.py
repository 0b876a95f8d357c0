"""What is differentiated by, and what is not: integers that are only indices, and parameters of a model that patterns leave out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

from tidu_cli.checking.static import moved_by
from tidu_cli.errors import Remedy, TiduError, TransformError, counted
from tidu_cli.graph.closed import backwards, forwards
from tidu_cli.graph.graph import CaseTable, Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import link
from tidu_cli.graph.passes import Call
from tidu_cli.graph.select import covered, is_movable, listed
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.transforms.derivative import Derivative, natural_seeds, tangent_inputs
from tidu_cli.transforms.linearize import push_forward


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
