"""Float twins: a graph in which integers are computed with once more, as floats.

There are no difference quotients by an integer. But where arithmetic on integers counts as arithmetic on numbers, its derivative is
that of the same arithmetic on floats, at the same point, and that can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidu_cli.errors import TiduError
from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.graph import Case, CaseTable, Document, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import INTEGERS, TensorType, tangent_type
from tidu_cli.primitives.contract import PrimitiveSet


def float_twin(document: Document, primitives: PrimitiveSet) -> tuple[Document, dict[Key, Key]] | None:
    """The twin of a document of one graph without own primitives, and for each integer input the key of the float that is its twin.

    Every value that depends on integers as numbers has a float twin, and the outputs are those twins; a null stands for an output
    that does not. The integers stay, too: as indices, and for what rounds or works on bits. None if no output has a twin.
    """
    (graph,) = document.graphs
    twin_key = {i.key: Key(f"\0{k}") for k, i in enumerate(graph.inputs) if i.type.dtype in INTEGERS}
    if not twin_key:
        return None
    twin_inputs = [Input(twin_key[i.key], tangent_type(i.type)) for i in graph.inputs if i.key in twin_key]
    builder = GraphBuilder(CaseTable(), [*graph.inputs, *twin_inputs])
    local_ids = iter(range(len(graph.inputs), len(builder.inputs)))
    twin: list[int | None] = [next(local_ids) if i.key in twin_key else None for i in graph.inputs]
    same = list(range(len(graph.inputs)))

    for node, code in enumerate(graph.code):
        case, operands = graph.cases[code], graph.operands(node)
        first = builder.append(builder.cases.intern(case), [same[a] for a in operands])
        same += range(first, first + len(case.results))
        twins = _twins(builder, primitives, case, [same[a] for a in operands], [twin[a] for a in operands])
        twin += twins or [None] * len(case.results)

    outputs = [Output(o.key, None if o.value is None else twin[o.value], tangent_type(o.type)) for o in graph.outputs]
    if all(o.value is None for o in outputs):
        return None
    return Document((builder.build(graph.name, outputs),), builder.cases), twin_key


def _twins(
    builder: GraphBuilder, primitives: PrimitiveSet, case: Case, operands: Sequence[int], twins: Sequence[int | None]
) -> list[int | None] | None:
    """The twins of a node's results; None if it does not compute with numbers that have twins."""
    primitive = primitives[case.op]
    types: list[TensorType] = [t for t in case.operands if t is not None]
    moved = {k for k, t in enumerate(twins) if t is not None and not primitive.is_index(k)}
    of_integers = {k for k in moved if types[k].dtype in INTEGERS}
    if not moved or (of_integers and primitive.integers == "steps"):
        return None
    # A float that is rounded to an integer is no number any more; an integer is one that is made of integers.
    has_twin = [t.inexact or (bool(of_integers) and t.dtype in INTEGERS) for t in case.results]
    floats = [k for k, t in enumerate(types) if t.dtype in INTEGERS and not primitive.is_index(k)] if of_integers else []
    mixed = next((t.dtype for t in types if t.inexact), None)
    for dtype in dict.fromkeys((None, mixed)):  # beside a float, an exponent of integers becomes a float like it
        wanted = [tangent_type(t) if dtype is None else t.with_dtype(dtype) if k in floats else t for k, t in enumerate(types)]
        new_types = [wanted[k] if k in floats else t for k, t in enumerate(types)]
        try:
            made = primitives.case(case.op, primitives.parse_attrs(case.op, _of_floats(case, bool(floats))), None, new_types)
        except TiduError:
            continue
        # Positions are integers also of floats, and have no twin.
        due = [d and new == tangent_type(t) for new, t, d in zip(made.results, case.results, has_twin, strict=True)]
        if any(due):
            arguments = [
                _as(builder, primitives, twins[k] or operands[k], tangent_type(t) if twins[k] else t, new_types[k])
                if k in moved or k in floats
                else operands[k]
                for k, t in enumerate(types)
            ]
            first = builder.append(builder.cases.intern(made), arguments)
            return [first + k if d else None for k, d in enumerate(due)]
    return None


def _of_floats(case: Case, changed: bool) -> dict[str, object]:
    """The attrs, with the dtype of an integer result made that of its twin."""
    attrs = case.attrs.to_data(binary=True)
    integer = {t.dtype: tangent_type(t).dtype for t in case.results if t.dtype in INTEGERS} if changed else {}
    return {name: integer.get(value, value) if isinstance(value, str) else value for name, value in attrs.items()}


def _as(builder: GraphBuilder, primitives: PrimitiveSet, value: int, type_: TensorType, wanted: TensorType) -> int:
    if type_ == wanted:
        return value
    attrs = primitives.parse_attrs("convert_element_type", {"new_dtype": wanted.dtype})
    return builder.append(builder.cases.intern(primitives.case("convert_element_type", attrs, None, [type_])), [value])
