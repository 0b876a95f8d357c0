"""Sparse matrices of a derivative: one batched pass in as many directions as colours, and the entries cut out of what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from tidu_cli.errors import TransformError
from tidu_cli.formats.values.writing import SPARSE
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.graph import CaseTable, Document, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.passes import with_used_passes
from tidu_cli.graph.select import fresh_name
from tidu_cli.graph.types import TIMES, TensorType, of_batch
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.recording.trace import Template, Trace
from tidu_cli.rules.terms import Term, op
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.batch import append_batched
from tidu_cli.transforms.stamp import Stamper

broadcast_in_dim, concatenate, convert, eq, gather, reshape, scatter_add = map(
    op, ("broadcast_in_dim", "concatenate", "convert_element_type", "eq", "gather", "reshape", "scatter-add")
)


class Compression(Frozen):
    """How a sparse matrix is read from products of a linear graph with sums of unit vectors.

    `colors` says of each element of the graph's inputs in which direction it is, -1 in none; entry k of the matrix, at `row[k]` and
    `col[k]` of `shape`, is element `element[k]` of the product with direction `direction[k]`. After these
    come parts of entries, each to be added to the entry that `onto` says.
    """

    colors: Any
    direction: Any
    element: Any
    row: Any
    col: Any
    shape: tuple[int, int]
    onto: Any = ()

    def moved(self, column: Any, n_columns: int) -> Compression:
        """The same where column j is a part of `column[j]`, of `n_columns`."""
        col = column[self.col]
        order = np.lexsort((col, self.row))
        row, col = self.row[order], col[order]
        is_first = np.concatenate([[True], (row[1:] != row[:-1]) | (col[1:] != col[:-1])])[: row.size]
        order = np.concatenate([order[is_first], order[~is_first]])
        onto = (np.cumsum(is_first) - 1)[~is_first]
        shape = self.shape[0], n_columns
        return Compression(self.colors, self.direction[order], self.element[order], row[is_first], col[is_first], shape, onto)

    @property
    def n_colors(self) -> int:
        """How many directions there are."""
        return int(self.colors.max(initial=-1)) + 1


def by_columns(pattern: Any, colors: Any) -> Compression:
    """Of a graph from inputs, the columns, to outputs, the rows: each entry is in the direction of its column."""
    row, col = _coordinates(pattern)
    return Compression(colors, colors[col], row, row, col, pattern.shape)


def by_rows(pattern: Any, colors: Any) -> Compression:
    """Of the transposed graph, whose inputs are the rows: each entry is in the direction of its row."""
    row, col = _coordinates(pattern)
    return Compression(colors, colors[row], col, row, col, pattern.shape)


def symmetric(pattern: Any, colors: Any) -> Compression:
    """Of a graph whose matrix is symmetric, by a star colouring: each entry is read where its column alone has that colour.

    In the star that an entry is an edge of, that is at the entry or at the one across the diagonal.
    """
    row, col = _coordinates(pattern)
    key = row * (int(colors.max(initial=-1)) + 1) + colors[col]
    _, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
    alone = counts[inverse] == 1
    return Compression(colors, np.where(alone, colors[col], colors[row]), np.where(alone, row, col), row, col, pattern.shape)


def _coordinates(pattern: Any) -> tuple[Any, Any]:
    row, col = pattern.tocoo().coords
    return row.astype(np.int64), col.astype(np.int64)


def compressed(document: Document, parts: Sequence[tuple[Graph, Compression]]) -> Document:
    """Replace the linear head by the graph of its sparse matrix, which has no input, and the outputs `SPARSE`.

    Each part is a linear graph that could be the head, and how its entries are read; they are those of one matrix. Raises
    TransformError for records, and for complex numbers.
    """
    primitives, cases = vocabulary(document.cases), document.cases
    builder = GraphBuilder(cases)
    stamper = Stamper.alone(builder)
    dtype = _dtype(parts[0][0])
    data: list[int] = []
    for head, how in parts:
        size = max(how.n_colors, 1)
        inputs, outputs = _arrays(head, head.inputs), _arrays(head, head.outputs)
        seeds = stamper.stamp(_seeds(primitives, cases, inputs, how.colors, size), ())
        images, batched = append_batched(builder, head, seeds, [True] * len(inputs), size, primitives)
        live = [o.value for o in head.outputs if o.value is not None and o.value >= 0 and batched[o.value]]
        kept = [o.value in live for o in head.outputs]
        data += stamper.stamp(_entries(primitives, cases, outputs, kept, how, dtype), [images[value] for value in live])
    row, col = [np.concatenate(some) for some in zip(*[(how.row, how.col) for _, how in parts], strict=True)]
    last = stamper.stamp(_joined(primitives, cases, [how.row.size for _, how in parts], dtype, row, col, parts[0][1].shape), data)
    types = [TensorType(dtype, (row.size,)), *[TensorType("i64", (row.size,))] * 2, TensorType("i64", (2,))]
    ends = [Output(Key(name), value, type_) for name, value, type_ in zip(SPARSE, last, types, strict=True)]
    rest = replace(document, graphs=document.graphs[:-1])
    graph = builder.build(fresh_name(rest, f"{document.head.name}.sparse"), ends)
    return with_used_passes(replace(document, graphs=(*rest.graphs, graph)), document.passes)


def _arrays(head: Graph, ports: Sequence[Input | Output]) -> list[TensorType]:
    for port in ports:
        if not isinstance(port.type, TensorType):
            raise TransformError(
                f"graph '{head.name}': '{port.key}' is a record, {port.type}, and a sparse matrix is of arrays; take its fields"
            )
        if port.type.complex:
            raise TransformError(
                f"graph '{head.name}': '{port.key}' is {port.type}, and a sparse matrix is of real numbers; make it a function of "
                "real and imaginary parts"
            )
    return [cast(TensorType, port.type) for port in ports]


def _dtype(head: Graph) -> str:
    """The dtype of the entries: the widest that there is, f32 at least, as SciPy has no less; of times, which are counted, f64."""
    types = [*_arrays(head, head.inputs), *_arrays(head, head.outputs)]
    dtypes = {"f64" if t.dtype in TIMES else t.dtype for t in types}
    return max(dtypes - {"f16", "bf16"}, default="f32" if dtypes else "f64")


def _constant(trace: Trace, values: Any) -> Term:
    data = np.ascontiguousarray(values, dtype="<i8")
    return trace.emit(trace.primitives.constant, value=Literal(TensorType("i64", data.shape), data.tobytes()))


def _seeds(primitives: PrimitiveSet, cases: CaseTable, types: Sequence[TensorType], colors: Any, size: int) -> Template:
    """A template without sources: of each input all directions, on a first axis."""
    trace, seeds, start = Trace(primitives, cases), [], 0
    for type_ in types:
        shape = (size, type_.size)
        own = broadcast_in_dim(_constant(trace, colors[start : start + type_.size]), shape=shape, broadcast_dimensions=(1,))
        units = eq(own, trace.emit("iota", dtype="i64", shape=shape, dimension=0))
        units = convert(units, new_dtype="f64") if type_.dtype in TIMES else units
        seeds.append(reshape(convert(units, new_dtype=type_.dtype), new_sizes=(size, *type_.shape)))
        start += type_.size
    return trace.template(0, seeds)


def _entries(
    primitives: PrimitiveSet, cases: CaseTable, types: Sequence[TensorType], live: Sequence[bool], how: Compression, dtype: str
) -> Template:
    """A template from the products, stacked on a first axis, of those outputs that are live, to the entries."""
    trace, size = Trace(primitives, cases), max(how.n_colors, 1)
    sources = [trace.source(of_batch(t, size), linear=False) for t, there in zip(types, live, strict=True) if there]
    each, width, parts = iter(sources), sum(t.size for t in types), []
    for type_, there in zip(types, live, strict=True):
        shape = (size, type_.size)
        part = reshape(next(each), new_sizes=shape) if there else trace.full(0, TensorType(dtype, shape))
        parts.append(part if part.type.dtype == dtype else convert(part, new_dtype=dtype))
    together = concatenate(*parts, dimension=1) if len(parts) > 1 else parts[0]
    flat, places = reshape(together, new_sizes=(size * width,)), how.direction.astype(np.int64) * width + how.element
    n = how.row.size
    taken = _taken(trace, flat, places[:n])
    if len(how.onto):
        numbers = {"update_window_dims": (), "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,)}
        onto, more = _constant(trace, how.onto[:, None]), _taken(trace, flat, places[n:])
        taken = scatter_add(taken, onto, more, dimension_numbers=numbers, mode="promise_in_bounds")
    return trace.template(len(sources), [taken])


def _taken(trace: Trace, flat: Term, places: Any) -> Term:
    numbers = {"offset_dims": (), "collapsed_slice_dims": (0,), "start_index_map": (0,)}
    at = _constant(trace, places[:, None])
    return gather(flat, at, dimension_numbers=numbers, slice_sizes=(1,), mode="promise_in_bounds")


def _joined(
    primitives: PrimitiveSet, cases: CaseTable, sizes: Sequence[int], dtype: str, row: Any, col: Any, shape: tuple[int, int]
) -> Template:
    """A template from the entries of each part to `SPARSE`."""
    trace = Trace(primitives, cases)
    parts = [trace.source(TensorType(dtype, (size,)), linear=False) for size in sizes]
    data = concatenate(*parts, dimension=0) if len(parts) > 1 else parts[0]
    return trace.template(len(parts), [data, *[_constant(trace, values) for values in (row, col, shape)]])
