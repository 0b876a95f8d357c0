"""matrix: the matrix of a linear graph, all columns (or rows) by one batched pass.

The graph is applied to all unit tangents at once, along a batch axis in front. A transposed graph is the adjoint of the derivative,
so that it gives the same matrix row by row: the better way where there are fewer outputs than inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from tidu_cli.errors import Remedy, TransformError, TypeRuleError
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.graph import Document, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.passes import with_used_passes
from tidu_cli.graph.select import fresh_name
from tidu_cli.graph.types import Path, TensorType, leaves, of_batch, require_possible
from tidu_cli.lax.linear_algebra.basis import block_template, block_type, unit_template
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.limits import require
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.batch import append_batched
from tidu_cli.transforms.derivative import linked_linear_head
from tidu_cli.transforms.stamp import Stamper, drop_dead_nodes


class _Array(Frozen):
    """An array of an input or output of the head: itself, or the one at `path` in a record.

    Its units are those from `start` on; None where nothing reads the input.
    """

    port: Input | Output
    path: Path
    type: TensorType
    start: int | None


_BLOCK_NODES = 2
"""What cuts a block out of the images of all unit vectors, at least: a slice and its axes put in order."""


def matrix(document: Document, *, holomorphic: bool = False) -> Document:
    """Replace the linear head by the graph of its matrix, which has no input.

    For each output y and each input x of the derivative there is one block, named `y/x`, with the axes of y and then those of x,
    and null where it is zero; where one is a record, a block for each array in it, named `y/p.x`. Times are counted: blocks of
    them are of f64, in units of y per unit of x. Transposed or not, the head gives the same blocks. `holomorphic` says that a
    complex function is, so that its derivative is a matrix of complex numbers: in general it is linear over the real numbers only,
    and complex inputs are refused. Raises TransformError, MissingRuleError naming the node, and LimitError for too many blocks.
    """
    primitives = vocabulary(document.cases)
    linked_linear_head(document, str(Remedy(function="matrix")))
    head, cases = document.head, document.cases
    by_rows = all(i.key.path[-1] < 0 for i in head.inputs)
    read = {*head.args, *(o.value for o in head.outputs)}
    live = [k in read for k in range(len(head.inputs))]
    inputs, outputs = list(_arrays(head.inputs, live)), list(_arrays(head.outputs, [True] * len(head.outputs)))
    _require_matrix(head, inputs, outputs, by_rows, holomorphic)
    n_blocks = len(inputs) * len(outputs)
    require(
        "expansion",
        _BLOCK_NODES * n_blocks,
        f"graph '{head.name}': the {n_blocks:,} blocks of its matrix, one for each pair of arrays",
    )

    types = tuple(i.type for i, is_live in zip(head.inputs, live, strict=True) if is_live)
    size = sum(t.size for t in types)
    _require_possible(head, inputs, outputs, size, by_rows)
    builder = GraphBuilder(cases)
    stamper = Stamper.alone(builder)
    units = iter(stamper.stamp(unit_template(primitives, cases, types), ()))
    arguments = [next(units) if is_live else 0 for is_live in live]  # nothing reads that 0
    images, batched = append_batched(builder, head, arguments, live, size, primitives)

    def block(unit: _Array, image: _Array) -> Output:
        """The block of one array of the inputs and one of the outputs."""
        ends = (unit, image) if by_rows else (image, unit)
        key = Key("/".join(".".join([_name(document, end.port.key), *end.path]) for end in ends))
        type_ = block_type(image.type, unit.type, by_rows=by_rows)
        source = _source(head, image, primitives)
        if source is None or unit.start is None:
            return Output(key, None, type_)
        value, path = source
        if value < 0 or not batched[value]:
            raise TransformError(f"graph '{head.name}', output '{image.port.key}': it is not linear in the inputs")
        stacked = of_batch(head.type_of(value), size)
        template = block_template(primitives, cases, stacked, path, unit.start, unit.type, by_rows=by_rows)
        return Output(key, stamper.stamp(template, [images[value]])[0], type_)

    pairs = product(inputs, outputs) if by_rows else ((unit, image) for image, unit in product(outputs, inputs))
    blocks: dict[Key, Output] = {}
    for entry in (block(unit, image) for unit, image in pairs):
        if entry.key in blocks:
            raise TransformError(f"graph '{head.name}': two blocks of its matrix would be '{entry.key}'; rename an input or output")
        blocks[entry.key] = entry
    rest = replace(document, graphs=document.graphs[:-1])
    graph = builder.build(fresh_name(rest, f"{head.name}.matrix"), blocks.values())
    if any(image.path for image in outputs):  # records that were only there to be put out
        (graph,) = drop_dead_nodes([graph], first_number=len(rest.graphs))
    return with_used_passes(replace(document, graphs=(*rest.graphs, graph)), document.passes)


def _arrays(ports: Sequence[Input | Output], live: Sequence[bool]) -> Iterator[_Array]:
    start = 0
    for port, is_live in zip(ports, live, strict=True):
        for path, type_ in leaves(port.type):
            yield _Array(port, path, type_, start if is_live else None)
            start += type_.size if is_live else 0


def _source(head: Graph, image: _Array, primitives: PrimitiveSet) -> tuple[int, Path] | None:
    """An array of an output: the value that holds it, through the records that the head puts together, and its path therein.

    None where it is zero.
    """
    assert isinstance(image.port, Output)
    value, path = image.port.value, image.path
    while value is not None and path and value >= len(head.inputs):
        node, _ = head.producer(value)
        makes = primitives[head.case(node).op].domain.makes
        if makes is None:
            break
        names = makes(head.case(node).attrs)
        value = head.operands(node)[names.index(path[0])] if path[0] in names else None
        path = path[1:]
    return None if value is None else (value, path)


def _name(document: Document, key: Key) -> str:
    """What block names call the primal of a tangent or cotangent: its name, `dy` for y@1, `y/x` for x@-1 where y@-1 is an input."""
    name, path = key.name, key.path[:-1]
    for depth, step in enumerate(path):
        if step > 0:
            name = f"d{name}"
            continue
        # What a cotangent differentiates are the keys whose cotangents that pass takes. Once they are constants, nobody knows.
        seeds = [k for k in document.inputs if len(k.path) == depth + 1 and k.path[-1] == step]
        name = f"{'+'.join(_name(document, k) for k in seeds) or 'd'}/{name}"
    return name


def _require_matrix(head: Graph, inputs: Sequence[_Array], outputs: Sequence[_Array], by_rows: bool, holomorphic: bool) -> None:
    # The adjoint of a map from real to complex numbers takes Re(conj(A) b): no row of a matrix. Its columns are there.
    for array in [*inputs, *(outputs if by_rows or holomorphic else ())]:
        type_ = array.type
        place = f"graph '{head.name}': '{'.'.join([str(array.port.key), *array.path])}' is {type_}"
        if holomorphic and not type_.complex:
            raise TransformError(f"{place}, and a holomorphic function is one of complex numbers")
        if type_.complex and not holomorphic:
            raise TransformError(
                f"{place}, and derivatives by complex numbers have a matrix only where the function is holomorphic, as ",
                Remedy("holomorphic", True),
                " says; else make it a function of real and imaginary parts",
            )


def _require_possible(head: Graph, inputs: Sequence[_Array], outputs: Sequence[_Array], size: int, by_rows: bool) -> None:
    """Raises TransformError where a block, or what the unit vectors become on the way to it, has too many axes or elements."""
    try:
        for array in (*inputs, *outputs):
            of_batch(array.type, size)
        for unit, image in product(inputs, outputs):
            require_possible(block_type(image.type, unit.type, by_rows=by_rows))
    except TypeRuleError as error:
        raise TransformError(f"graph '{head.name}': its matrix would need more than an array holds: {error}") from None
