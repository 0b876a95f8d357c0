"""A graph of single numbers, applied to every element of arrays.

Values that depend on no array stay single numbers, which are computed once; they are rounded where they meet an array.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from tidu_cli.errors import TiduError, TransformError
from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import literal_to_numbers
from tidu_cli.graph.types import FLOATS, TensorType
from tidu_cli.lax.recipes.arrays import Array, broadcast_to
from tidu_cli.rules.recording.trace import Trace

ELEMENTS = "does not go by elements, and a graph of numbers is applied to each element of arrays"


def mapped(
    trace: Trace, graph: Graph, arrays: Mapping[Key, Array], numbers: Mapping[Key, Array], type_: TensorType, wide: str
) -> list[Array]:
    """The outputs of a graph of f64[], as arrays of `type_`: where inputs are the elements of `arrays`, or these `numbers`.

    Numbers are of the dtype `wide`, and constants of the graph become that.
    Raises TransformError naming the node that does not go by elements.
    """
    values = [arrays[i.key] if i.key in arrays else numbers[i.key] for i in graph.inputs]
    varies = [i.key in arrays for i in graph.inputs]

    def fitting(x: Array) -> Array:
        rounded = x.astype(type_.dtype) if x.term.type.dtype in FLOATS else x
        return broadcast_to(rounded, type_.shape)

    for node, (code, args, _, _) in enumerate(forwards(graph, graph.args)):
        case, one = graph.cases[code], any(varies[a] for a in args)
        if case.op == "constant" and case.results == (TensorType("f64", ()),):
            (number,) = literal_to_numbers(case.attrs.value)  # type: ignore[attr-defined]
            values.append(Array(trace.full(cast(float, number), TensorType(wide, ()))))
            varies.append(False)
            continue
        operands = [fitting(values[a]) if one else values[a] for a in args]
        try:
            results = trace.apply(case.op, case.attrs, [x.term for x in operands])
        except TiduError as error:
            raise TransformError(f"{graph.describe(node)}: {ELEMENTS} ({error})") from None
        if any(not isinstance(x.value_type, TensorType) or x.type.shape != (type_.shape if one else ()) for x in results):
            raise TransformError(f"{graph.describe(node)}: {ELEMENTS}")
        values += map(Array, results)
        varies += [one] * len(results)
    return [fitting(Array(trace.full(0, type_)) if o.value is None else values[o.value]) for o in graph.outputs]
