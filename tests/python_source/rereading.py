"""Documents written as NumPy source and built again, and the normal form in which both are compared."""

from __future__ import annotations

import ast

import numpy as np

import tidu_cli
from tests.c.test_primitives import documented
from tests.python_source.running import expected, source_of
from tidu_cli.adapters.numpy.tracing import build_function
from tidu_cli.errors import TiduError
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import CaseTable, Document
from tidu_cli.graph.identity import digests
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.literals import Literal, filled
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import literal_array
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.fields import made


def again(document, folder):
    """What `tidu build` makes of the source of a document."""
    path = folder / "graph.py"
    path.write_text(source_of(document))
    function = next(f for f in reversed(ast.parse(path.read_text()).body) if isinstance(f, ast.FunctionDef))
    types = {a.arg: i.type for a, i in zip(function.args.args, document.head.inputs, strict=True)}
    return build_function(f"{path}:{function.name}", types)


def normal(document):
    """A document as it is compared: own operations written out, simplified, of primal nodes, with numbers for the names of ports.

    Outputs that are structural zeros are arrays of zeros, x**2 is a square and x**-1 a quotient, as source has them.
    """
    graph = _primal(tidu_cli.materialize(document, inline=True).head)
    inputs = [replace(i, key=Key(f"x{k}")) for k, i in enumerate(graph.inputs)]
    outputs = [replace(o, key=Key(f"y{k}")) for k, o in enumerate(graph.outputs)]
    graph = replace(graph, name="f", inputs=tuple(inputs), outputs=tuple(outputs))
    return tidu_cli.materialize(Document((graph,), graph.cases), simplify=True)


def _primal(graph):
    builder = GraphBuilder(CaseTable(graph.cases.vocabulary), graph.inputs)
    values, cores, turned, numbers = list(range(len(graph.inputs))), {}, {}, {}
    for case, args in graph.nodes():
        case, operands = _case(case), [values[a] for a in args]
        if case.op.startswith("reduce_") and getattr(case.attrs, "axes", None) == ():
            values += operands  # which is written as what it reduces
            continue
        if case.op == "integer_pow" and case.attrs.y == -1:
            operands = [_whole(builder, _number(builder, case.operands[0].dtype, 1), case.operands[0], cores), *operands]
            case = _case_of("div", {}, case.operands * 2)
        if case.op == "dot_general" and _is_elementwise(case):
            (lhs, _), (result,) = case.operands, case.results
            axes = range(lhs.rank), range(lhs.rank, result.rank)
            operands = [_whole(builder, x, result, cores, tuple(along)) for x, along in zip(operands, axes, strict=True)]
            case = _case_of("mul", {}, [result, result])
        if case.op == "dot_general":
            case, operands = _turned(case, operands, turned)
        if case.op == "triangular_solve":
            values.append(_solved(builder, case, operands, turned))
            continue
        if case.op == "iota" and case.results[0].rank > 1:
            values.append(_counted(builder, case, cores))
            continue
        if case.op == "constant" and case.results[0].rank and (one := _repeated(case.attrs.value)):  # a number that is broadcast
            (type_,) = case.results
            number = _computed(builder, _case_of("constant", {"value": Literal(TensorType(type_.dtype), one)}), [], numbers)
            values.append(_whole(builder, number, type_, cores))
            continue
        core, axes = _of_cores(case, [cores.get(x) for x in operands])
        kept = None
        if core:
            operands = [_spread(builder, cores[x], type_, axes) for x, type_ in zip(operands, core.operands, strict=True)]
            first = _computed(builder, core, operands, numbers)
        elif kept := _core(builder, case, operands, cores):
            first, axes = kept
        else:
            first = _computed(builder, case, operands, numbers)
        if core or kept:
            first = _whole(builder, first, case.results[0], cores, axes)
        elif case.op == "transpose":
            turned[first] = operands[0], case
        values += range(first, first + len(case.results))
    outputs = [
        replace(o, value=values[o.value] if o.value is not None else _whole(builder, _number(builder, o.type.dtype, 0), o.type, {}))
        for o in graph.outputs
    ]
    return builder.build(graph.name, outputs)


def _computed(builder, case, operands, numbers):
    """The first result of a node, or the number that it is where its operands are numbers."""
    (type_, *_) = case.results or (None,)
    known = [numbers[x] for x in operands if x in numbers]
    if known and len(known) == len(operands) and [t.rank for t in case.results] == [0] and case.op not in ("scan", "while", "cond"):
        (value,) = expected(documented([case]), [literal_array(np, x) for x in known]).values()
        case, operands = _case_of("constant", {"value": Literal(type_, np.asarray(value).tobytes())}), []
    first = builder.append(builder.cases.intern(case), operands)
    if case.op == "constant" and not type_.rank:
        numbers[first] = case.attrs.value
    return first


def _case(case):
    """A case as source has it: a square is no power, and a number becomes an array by being broadcast."""
    if case.op == "integer_pow" and case.attrs.y == 2:
        return _case_of("square", {}, case.operands)
    if case.op.startswith("reduce_") and hasattr(case.attrs, "axes"):
        case = replace(case, attrs=made(type(case.attrs), {**dict(case.attrs), "axes": tuple(sorted(case.attrs.axes))}))
    if case.op in ("expand_dims", "squeeze"):
        case = _case_of("reshape", {"new_sizes": list(case.results[0].shape)}, case.operands)
    if case.op == "reshape" and not case.operands[0].rank:
        return _broadcast(case.results[0])
    if getattr(case.attrs, "mode", "") == "promise_in_bounds":
        case = replace(case, attrs=made(type(case.attrs), {**dict(case.attrs), "mode": "clip"}))
    if case.op == "cond" and case.operands[0].dtype == "bool":
        case = replace(case, attrs=made(type(case.attrs), {"branches": case.attrs.branches[:2]}))
    graphs = {k: _closed(v) for k, v in case.attrs if _closed(v) is not None}
    attrs = made(type(case.attrs), {k: graphs.get(k, v) for k, v in case.attrs}) if graphs else case.attrs
    return replace(case, mask=None, attrs=attrs)


def _closed(value):
    if isinstance(value, ClosedGraph):
        return ClosedGraph.of(_primal(value.graph))
    return tuple(map(_closed, value)) if isinstance(value, tuple) and value and isinstance(value[0], ClosedGraph) else None


def _is_elementwise(case):
    """Whether a product adds nothing up, and is not np.outer of two vectors."""
    return case.attrs.dimension_numbers == (((), ()), ((), ())) and [t.rank for t in case.operands] != [1, 1]


def _turned(case, operands, turned):
    """A product of what is transposed as one of what that is: x.T @ y is one operation."""
    (lc, rc), batch = case.attrs.dimension_numbers
    types, ends = list(case.operands), [list(lc), list(rc)]
    for k, x in enumerate(operands):
        if x in turned and not any(batch) and types[k].rank == 2 and len(lc) == 1:
            operands[k], transpose = turned[x]
            types[k] = transpose.operands[0]
            ends[k] = [transpose.attrs.permutation[n] for n in ends[k]]
    attrs = made(type(case.attrs), {**dict(case.attrs), "dimension_numbers": ((tuple(ends[0]), tuple(ends[1])), batch)})
    return BUILTIN.case(case.op, attrs, None, types), operands


def _solved(builder, case, operands, turned):
    """A triangular system as source has it: from the left, of what is transposed."""
    a, operands, types = case.attrs, list(operands), list(case.operands)

    def transposed(value, type_):
        order = [*range(type_.rank - 2), type_.rank - 1, type_.rank - 2]
        turn = _case_of("transpose", {"permutation": order}, [type_])
        of = builder.append(builder.cases.intern(turn), [value])
        turned[of] = value, turn
        return of, turn.results[0]

    turns = a.transpose_a == a.left_side
    if a.conjugate_a and types[0].dtype[0] == "c":
        operands[0] = _added(builder, "conj", {}, [types[0]], [operands[0]])
    for k, is_turned in enumerate((turns, not a.left_side)):
        operands[k], types[k] = transposed(operands[k], types[k]) if is_turned else (operands[k], types[k])
    attrs = {**dict(a), "left_side": True, "transpose_a": False, "conjugate_a": False, "lower": a.lower != turns}
    solving = _case_of(case.op, attrs, types)
    solved = builder.append(builder.cases.intern(solving), operands)
    return solved if a.left_side else transposed(solved, solving.results[0])[0]


def _of_cores(case, cores):
    """An elementwise case of arrays that are broadcast, as one of what is broadcast, and the axes of that: NumPy does it last."""
    if not cores or None in cores:
        return None, ()
    (shape, *others), (along, *more) = {t.shape for t in (*case.operands, *case.results)}, {a for _, a in cores if a} or {()}
    if others or more or case.op in ("scan", "while", "cond"):
        return None, ()
    try:
        core = tuple([shape[k] for k in along])
        return BUILTIN.case(case.op, case.attrs, None, [t.with_shape(core) for t in case.operands]), along
    except TiduError:
        return None, ()


def _core(builder, case, operands, cores):
    """What an array repeats, if it does so along new axes alone, and along which of its axes that goes; or None."""
    if case.op not in ("broadcast_in_dim", "reshape"):
        return None
    (type_,), (result,) = case.operands, case.results
    core, own = cores.get(operands[0]) or _narrow(builder, operands[0], type_, cores)
    axes = dict(enumerate(case.attrs.broadcast_dimensions if case.op != "reshape" else ()))
    if case.op == "reshape":
        longer, places = ([k for k, n in enumerate(t.shape) if n != 1] for t in (type_, result))
        if [type_.shape[k] for k in longer] != [result.shape[k] for k in places]:
            return None
        axes = dict(zip(longer, places, strict=True))
    repeats = all(type_.shape[k] == result.shape[axes[k]] for k in own)
    return (core, tuple([axes[k] for k in own])) if repeats else None


def _narrow(builder, value, type_, cores):
    """A value without its axes of one element, which are as well repeated, and the axes that are left."""
    axes = tuple([k for k, n in enumerate(type_.shape) if n != 1])
    if len(axes) == type_.rank:
        return value, axes
    core = _added(builder, "reshape", {"new_sizes": [type_.shape[k] for k in axes]}, [type_], [value])
    cores[core, axes, type_] = value
    return core, axes


def _spread(builder, core, type_, axes):
    """What a core is among others: a number is broadcast."""
    value, own = core
    return value if own == axes else _whole(builder, value, type_, {})


def _repeated(literal):
    """The element that is all of a constant, as it is stored; None if there are others."""
    n = literal.type.size
    one = literal.data[: len(literal.data) // max(n, 1)]
    return one if one * n == literal.data else None


def _counted(builder, case, cores):
    """Numbers along an axis, which NumPy counts alone and broadcasts."""
    (type_,), axis = case.results, case.attrs.dimension
    n = type_.shape[axis]
    counted = _added(builder, "iota", {"dtype": type_.dtype, "shape": [n], "dimension": 0})
    return _whole(builder, counted, type_, cores, (axis,))


def _broadcast(type_, axes=()):
    given = [type_.with_shape(tuple([type_.shape[k] for k in axes]))]
    if type_.size == 1:
        return _case_of("reshape", {"new_sizes": list(type_.shape)}, given)
    return _case_of("broadcast_in_dim", {"shape": list(type_.shape), "broadcast_dimensions": list(axes)}, given)


def _whole(builder, core, type_, cores, axes=()):
    """An array of one number, or of what is repeated along other axes than these."""
    if len(axes) == type_.rank:
        return core
    core, own = _narrow(builder, core, type_.with_shape(tuple([type_.shape[k] for k in axes])), cores)
    axes = tuple([axes[k] for k in own])
    if (core, axes, type_) in cores:
        return cores[core, axes, type_]
    whole = builder.append(builder.cases.intern(_broadcast(type_, axes)), [core])
    cores[whole] = core, axes
    return whole


def _case_of(op, attrs, types=()):
    return BUILTIN.case(op, BUILTIN.parse_attrs(op, attrs), None, list(types))


def _added(builder, op, attrs, types=(), operands=()):
    """The result of a node."""
    return builder.append(builder.cases.intern(_case_of(op, attrs, types)), list(operands))


def _number(builder, dtype, number):
    return _added(builder, "constant", {"value": filled(TensorType(dtype), number)})


def identity(document):
    """The digests of outputs."""
    (values,) = digests(document)
    return [None if o.value is None else values[o.value].hex()[:12] for o in document.head.outputs]
