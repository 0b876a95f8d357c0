"""Operations that make arrays and move elements about."""

from __future__ import annotations

from tidu_cli.adapters.stablehlo.reading.site import Reader, Site, array_of
from tidu_cli.rules.terms import Term


def _constant(site: Site) -> Term:
    array, type_ = array_of(site.attribute("value"))
    constant = site.recording.constant(array, type_.with_shape(array.shape))
    if array.shape == type_.shape:
        return constant
    return site.emit("broadcast_in_dim", constant, shape=type_.shape, broadcast_dimensions=())


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
    low, high, interior = (site.ints(f"{name}") for name in ("edge_padding_low", "edge_padding_high", "interior_padding"))
    return site.emit("pad", x, value, padding_config=tuple(zip(low, high, interior, strict=True)))


def _reverse(site: Site, x: Term) -> Term:
    return site.emit("rev", x, dimensions=tuple(site.ints("dimensions")))


def _concatenate(site: Site, *xs: Term) -> Term:
    return xs[0] if len(xs) == 1 else site.emit("concatenate", *xs, dimension=site.attribute("dimension"))


def _dynamic_slice(site: Site, x: Term, *starts: Term) -> Term:
    return site.emit("dynamic_slice", x, *starts, slice_sizes=tuple(site.ints("slice_sizes")))


def _dynamic_update_slice(site: Site, x: Term, update: Term, *starts: Term) -> Term:
    return site.emit("dynamic_update_slice", x, update, *starts)


OPERATIONS: dict[str, Reader] = {
    "stablehlo.broadcast": _broadcast_before,
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.constant": _constant,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.iota": _iota,
    "stablehlo.pad": _pad,
    "stablehlo.reshape": _reshape,
    "stablehlo.reverse": _reverse,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
    "chlo.constant": _constant,
}
