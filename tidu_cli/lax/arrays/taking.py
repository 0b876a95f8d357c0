"""Taking elements along an axis, at places that other elements say: a gather, for rules."""

from __future__ import annotations

from tidu_cli.rules.terms import Term, op

expand_dims, gather = op("expand_dims"), op("gather")


def taken(x: Term, places: Term, axis: int) -> Term:
    """x[..., places[..., i], ...] along an axis. Axes of x behind those of `places` are taken whole."""
    n, shape = places.type.rank, x.type.shape
    others = tuple(k for k in range(n) if k != axis)
    numbers = {
        "offset_dims": tuple(range(n, len(shape))),
        "collapsed_slice_dims": (axis,),
        "start_index_map": (axis,),
        "operand_batching_dims": others,
        "start_indices_batching_dims": others,
    }
    indices, sizes = expand_dims(places, dimensions=(n,)), (*[1] * n, *shape[n:])
    return gather(x, indices, dimension_numbers=numbers, slice_sizes=sizes, mode="promise_in_bounds")
