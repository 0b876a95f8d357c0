"""matrix: the matrix of a linear graph, all columns (or rows) by one batched pass.

The graph is applied to all unit tangents at once, along a batch axis in front. A transposed graph is the adjoint of the derivative,
so that it gives the same matrix row by row: the better way where there are fewer outputs than inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from tidu_cli.errors import TransformError
from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.graph import Document, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import fresh_name
from tidu_cli.primitives.basis import block_template, unit_template
from tidu_cli.primitives.contract import PrimitiveSet
from tidu_cli.primitives.vocabulary import vocabulary
from tidu_cli.transforms.batch import Appender, append_batched
from tidu_cli.transforms.linear import linked_linear_head


def matrix(document: Document, *, holomorphic: bool = False, primitives: PrimitiveSet | None = None) -> Document:
    """Replace the linear head by the graph of its matrix, which has no input.

    For each output y and each input x of the derivative there is one block, named `y/x`, with the axes of y and then those of x,
    and null where it is zero. Transposed or not, the head gives the same blocks; but transposing forgets outputs whose tangent is
    zero. `holomorphic` says that a complex function is, so that its derivative is a matrix of complex numbers: in general it is
    linear over the real numbers only, and complex inputs are refused. Raises TransformError, and MissingRuleError naming the node.
    """
    primitives = primitives or vocabulary(document.cases)
    linked_linear_head(document, "tidu matrix")
    head, cases = document.head, document.cases
    by_rows = all(i.key.path[-1] < 0 for i in head.inputs)
    _require_free(document)
    _require_matrix(head, by_rows, holomorphic)

    types = [i.type for i in head.inputs]
    starts = [0, *accumulate(t.size for t in types)]
    size = starts[-1]
    builder = GraphBuilder(cases)
    appender = Appender(builder)
    units = appender.append(unit_template(primitives, cases, tuple(types)), ())
    images, batched = append_batched(builder, head, units, [True] * len(units), size, primitives)

    def block(declared: Input, start: int, output: Output) -> Output:
        """The block of one input and one output of the head."""
        ends = (declared, output) if by_rows else (output, declared)
        name = "/".join(_name(document, end.key) for end in ends)
        shape = (*ends[0].type.shape, *ends[1].type.shape)
        value = None
        if output.value is not None:
            if output.value < 0 or not batched[output.value]:
                raise TransformError(f"graph '{head.name}', output '{output.key}': it is not linear in the inputs")
            stacked = output.type.with_shape((size, *output.type.shape))
            template = block_template(primitives, cases, stacked, start, declared.type, by_rows=by_rows)
            (value,) = appender.append(template, [images[output.value]])
        return Output(Key(name), value, output.type.with_shape(shape))

    inputs = list(zip(head.inputs, starts, strict=False))
    if by_rows:
        blocks = [block(i, start, o) for i, start in inputs for o in head.outputs]
    else:
        blocks = [block(i, start, o) for o in head.outputs for i, start in inputs]
    _require_distinct(head, blocks)
    rest = replace(document, graphs=document.graphs[:-1])
    return replace(document, graphs=(*rest.graphs, builder.build(fresh_name(rest, f"{head.name}.matrix"), blocks)))


def _name(document: Document, key: Key) -> str:
    """What block names call the primal of a tangent or cotangent: its name, `dy` for y@1, `y/x` for x@-1 where y@-1 is an input."""
    name, path = key.name, key.path[:-1]
    declared = list(dict.fromkeys(i.key for graph in document.graphs for i in graph.inputs))
    for depth, step in enumerate(path):
        if step > 0:
            name = f"d{name}"
            continue
        # What a cotangent differentiates are the keys whose cotangents that pass takes. Once they are constants, nobody knows.
        seeds = [k for k in declared if len(k.path) == depth + 1 and k.path[-1] == step]
        name = f"{'+'.join(_name(document, k) for k in seeds) or 'd'}/{name}"
    return name


def _require_free(document: Document) -> None:
    bound = {b.key for b in document.bindings}
    for declared in document.head.inputs:
        if declared.key in bound:
            raise TransformError(
                f"graph '{document.head.name}': input '{declared.key}' is bound to a value, so it does not run through the units"
            )


def _require_matrix(head: Graph, by_rows: bool, holomorphic: bool) -> None:
    # The adjoint of a map from real to complex numbers takes Re(conj(A) b): no row of a matrix. Its columns are there.
    ports = [(i.key, i.type) for i in head.inputs]
    if by_rows or holomorphic:
        ports += [(o.key, o.type) for o in head.outputs]
    for key, type_ in ports:
        place = f"graph '{head.name}': '{key}' is {type_}"
        if holomorphic and not type_.complex:
            raise TransformError(f"{place}, and a holomorphic function is one of complex numbers")
        if type_.complex and not holomorphic:
            raise TransformError(
                f"{place}, and derivatives by complex numbers have a matrix only where the function is holomorphic, as "
                "--holomorphic says; else make it a function of real and imaginary parts"
            )


def _require_distinct(head: Graph, blocks: Sequence[Output]) -> None:
    seen: set[Key] = set()
    for block in blocks:
        if block.key in seen:
            raise TransformError(f"graph '{head.name}': two blocks of its matrix would be '{block.key}'; rename an input or output")
        seen.add(block.key)
