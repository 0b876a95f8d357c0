"""Elements at computed places."""

from __future__ import annotations

from tidu_cli.adapters.stablehlo.reading.site import Reader, Site
from tidu_cli.rules.terms import Term


def _gather(site: Site, x: Term, indices: Term) -> Term:
    """Indices out of bounds are brought within, as StableHLO says."""
    numbers = site.attribute("dimension_numbers")
    indices, axis = with_index_axis(site, indices, numbers["index_vector_dim"])
    return site.emit(
        "gather",
        x,
        indices,
        dimension_numbers={
            "offset_dims": tuple(numbers["offset_dims"]),
            "collapsed_slice_dims": tuple(numbers["collapsed_slice_dims"]),
            "start_index_map": tuple(numbers["start_index_map"]),
            "operand_batching_dims": tuple(numbers["operand_batching_dims"]),
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


OPERATIONS: dict[str, Reader] = {"stablehlo.gather": _gather}
