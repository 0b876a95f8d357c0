"""Operations that make arrays and move elements about: gathers, scatters and sorts, too."""

from __future__ import annotations

from collections.abc import Sequence

from tidu_cli.adapters.stablehlo.reading.reducers import reducer, sort_keys
from tidu_cli.adapters.stablehlo.reading.reductions import region_of
from tidu_cli.adapters.stablehlo.reading.site import Reader, RefusedError, Site, array_of
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.rules.terms import Term


def _constant(site: Site) -> Term:
    array, type_ = array_of(site.attribute("value"))
    return site.spread(site.recording.constant(array, type_.with_shape(array.shape)), type_.shape)


def _broadcast(site: Site, x: Term) -> Term:
    shape, dimensions = site.result.shape, site.ints("broadcast_dimensions")
    if x.type.shape == shape and dimensions == sorted(dimensions):
        return x
    return site.emit("broadcast_in_dim", x, shape=shape, broadcast_dimensions=tuple(dimensions))


def _broadcast_before(site: Site, x: Term) -> Term:
    """New axes before those of x."""
    n = len(site.ints("broadcast_sizes"))
    return site.emit("broadcast_in_dim", x, shape=site.result.shape, broadcast_dimensions=tuple(range(n, n + x.type.rank)))


def _reshape(site: Site, x: Term) -> Term:
    return x if x.type.shape == site.result.shape else site.emit("reshape", x, new_sizes=site.result.shape)


def _transpose(site: Site, x: Term) -> Term:
    permutation = site.ints("permutation")
    return x if permutation == sorted(permutation) else site.emit("transpose", x, permutation=tuple(permutation))


def _iota(site: Site) -> Term:
    type_ = site.result
    return site.emit("iota", dtype=type_.dtype, shape=type_.shape, dimension=site.attribute("iota_dimension"))


def _slice(site: Site, x: Term) -> Term:
    strides = site.ints("strides", [1] * x.type.rank)
    return site.emit(
        "slice",
        x,
        start_indices=tuple(site.ints("start_indices")),
        limit_indices=tuple(site.ints("limit_indices")),
        strides=None if set(strides) <= {1} else tuple(strides),
    )


def _pad(site: Site, x: Term, value: Term) -> Term:
    low, high, interior = (site.ints(name) for name in ("edge_padding_low", "edge_padding_high", "interior_padding"))
    return site.emit("pad", x, value, padding_config=tuple(zip(low, high, interior, strict=True)))


def _reverse(site: Site, x: Term) -> Term:
    return site.emit("rev", x, dimensions=tuple(site.ints("dimensions")))


def _concatenate(site: Site, *xs: Term) -> Term:
    return xs[0] if len(xs) == 1 else site.emit("concatenate", *xs, dimension=site.attribute("dimension"))


def _dynamic_slice(site: Site, x: Term, *starts: Term) -> Term:
    return site.emit("dynamic_slice", x, *starts, slice_sizes=tuple(site.ints("slice_sizes")))


_ARRAYS: dict[str, Reader] = {
    "stablehlo.broadcast": _broadcast_before,
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.constant": _constant,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": lambda site, *operands: site.emit("dynamic_update_slice", *operands),
    "stablehlo.iota": _iota,
    "stablehlo.pad": _pad,
    "stablehlo.reshape": _reshape,
    "stablehlo.reverse": _reverse,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
    "chlo.constant": _constant,
}


# Elements at computed places, updates of such, whose kind the region tells, and sorts.


def _sort(site: Site, *operands: Term) -> Sequence[Term]:
    """Descending orders are ascending ones of arrays that are turned round before and after, so that equals keep their order."""
    keys = sort_keys(site.operation.regions[0], lambda value: site.known(site.values[value]))
    if keys is None:
        raise RefusedError("its comparator is not less or greater of some operands, one after the other")
    numbers = [key.operand for key in keys]
    if len({key.descending for key in keys}) > 1 or len(set(numbers)) < len(numbers):
        raise RefusedError("its comparator has some keys in ascending and some in descending order")
    axis = site.attribute("dimension", -1) % operands[0].type.rank
    order = [*numbers, *[k for k in range(len(operands)) if k not in numbers]]
    given = [operands[k] for k in order]
    if keys[0].descending:
        given = [site.emit("rev", x, dimensions=(axis,)) for x in given]
    results = site.emit_all("sort", *given, dimension=axis, is_stable=True, num_keys=len(keys))
    if keys[0].descending:
        results = tuple(site.emit("rev", x, dimensions=(axis,)) for x in results)
    back = dict(zip(order, results, strict=True))
    return [back[k] for k in range(len(operands))]


def _top_k(site: Site, x: Term) -> Sequence[Term]:
    values, places = site.emit_all("top_k", x, k=site.attribute("k"), axis=x.type.rank - 1)
    due = site.results[1].dtype
    return values, places if due == places.type.dtype else site.emit("convert_element_type", places, new_dtype=due)


UPDATES = {"sum": "scatter-add", "prod": "scatter-mul", "max": "scatter-max", "min": "scatter-min"}


def _scatter(site: Site, *operands: Term) -> Term:
    """Windows that are not wholly within the operand are left out, as StableHLO says."""
    if len(operands) != 3:
        raise RefusedError("updates several arrays at once; one is read")
    x, indices, updates = operands
    numbers = site.attribute("scatter_dimension_numbers")
    graph = region_of(site, 0, "update")
    op = "scatter" if _takes_update(graph) else UPDATES.get(reducer(graph) or "")
    if op is None:
        raise RefusedError("its update is none of replacement, sum, product, maximum and minimum")
    indices, axis = with_index_axis(site, indices, numbers["index_vector_dim"])
    return site.emit(
        op,
        x,
        indices,
        updates,
        dimension_numbers={
            "update_window_dims": tuple(numbers["update_window_dims"]),
            "inserted_window_dims": tuple(numbers["inserted_window_dims"]),
            "scatter_dims_to_operand_dims": tuple(numbers["scattered_dims_to_operand_dims"]),
            "operand_batching_dims": tuple(numbers["input_batching_dims"]),
            "scatter_indices_batching_dims": tuple(a - (a > axis) for a in numbers["scatter_indices_batching_dims"]),
        },
        mode="fill",
        **({"unique_indices": site.attribute("unique_indices", False)} if op in ("scatter", "scatter-mul") else {}),
    )


def _takes_update(graph: ClosedGraph) -> bool:
    """Whether the result of a region is its second argument."""
    return len(graph.input_types) == 2 and [o.value for o in graph.graph.outputs] == [1]


_OF_GATHERS = ("offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims")
"""Numbers of axes that are called alike here."""


def _gather(site: Site, x: Term, indices: Term) -> Term:
    """Indices out of bounds are brought within, as StableHLO says."""
    numbers = site.attribute("dimension_numbers")
    indices, axis = with_index_axis(site, indices, numbers["index_vector_dim"])
    return site.emit(
        "gather",
        x,
        indices,
        dimension_numbers={
            **{name: tuple(numbers[name]) for name in _OF_GATHERS},
            "start_indices_batching_dims": tuple(a - (a > axis) for a in numbers["start_indices_batching_dims"]),
        },
        slice_sizes=tuple(site.ints("slice_sizes")),
        mode="clip",
    )


def with_index_axis(site: Site, indices: Term, axis: int) -> tuple[Term, int]:
    """Indices whose last axis is that of coordinates, which may be elsewhere or not there at all."""
    rank = indices.type.rank
    if axis == rank:
        return site.emit("expand_dims", indices, dimensions=(rank,)), rank
    if axis == rank - 1:
        return indices, axis
    return site.emit("transpose", indices, permutation=(*[a for a in range(rank) if a != axis], axis)), axis


_INDEXING: dict[str, Reader] = {
    "stablehlo.gather": _gather,
    "stablehlo.scatter": _scatter,
    "stablehlo.sort": _sort,
    "chlo.top_k": _top_k,
}

OPERATIONS: dict[str, Reader] = {**_ARRAYS, **_INDEXING}
