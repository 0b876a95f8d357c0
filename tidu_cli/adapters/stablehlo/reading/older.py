"""Operations that stand for others: those of older modules, of networks, and those with shapes as operands that are yet known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tidu_cli.adapters.stablehlo.reading.index import reader_of
from tidu_cli.adapters.stablehlo.reading.library import by_jax
from tidu_cli.adapters.stablehlo.reading.site import Reader, RefusedError, Site
from tidu_cli.frozen import replace
from tidu_cli.rules.terms import Term


def _as(site: Site, name: str, operands: Sequence[Term], **attributes: object) -> Term | Sequence[Term]:
    """What another operation reads, with these attributes more."""
    operation = replace(site.operation, attributes={**site.operation.attributes, **attributes})
    return reader_of(name)(replace(site, operation=operation), *operands)


def _einsum(site: Site, *operands: Term) -> Sequence[Term]:
    import jax.numpy as jnp

    def contracted(*xs: Any) -> Any:
        return jnp.einsum(site.attribute("einsum_config"), *xs)

    return by_jax(site.recording, contracted, operands)


def _index_select(site: Site, x: Term, index: Term) -> Sequence[Term]:
    """Slices at indices along an axis; the first axes of both are batches. Indices out of bounds are of the last one."""
    import jax
    import jax.numpy as jnp

    n = site.attribute("batch_dims", 0)

    def select(a: Any, i: Any) -> Any:
        axis = site.attribute("dim") - n
        return jnp.take(a, jnp.where(i < 0, a.shape[axis] - 1, i), axis=axis, mode="clip")

    for _ in range(n):
        select = jax.vmap(select)
    return by_jax(site.recording, select, (x, index))


def _batch_norm(site: Site, x: Term, *others: Term) -> Sequence[Term]:
    """Of all axes but that of features the mean is 0 and the variance 1, before scales and offsets."""
    import jax.numpy as jnp

    axis, epsilon = site.attribute("feature_index"), site.attribute("epsilon")
    around = tuple(a for a in range(x.type.rank) if a != axis)
    shape = [-1 if a == axis else 1 for a in range(x.type.rank)]
    n = math.prod(x.type.shape[a] for a in around)

    def normal(a: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
        centred = a - mean.reshape(shape)
        return centred / jnp.sqrt(variance + epsilon).reshape(shape) * scale.reshape(shape) + offset.reshape(shape)

    def training(a: Any, scale: Any, offset: Any) -> Any:
        mean = jnp.mean(a, around)
        variance = jnp.mean((a - mean.reshape(shape)) ** 2, around)
        return normal(a, scale, offset, mean, variance), mean, variance

    def gradient(a: Any, scale: Any, mean: Any, variance: Any, g: Any) -> Any:
        # S. Ioffe, C. Szegedy, "Batch normalization" (2015), section 3.
        centred, shifted = a - mean.reshape(shape), (variance + epsilon).reshape(shape)
        along = jnp.sum(g * centred, around)
        total = jnp.sum(g, around)
        inner = g - total.reshape(shape) / n - centred * along.reshape(shape) / (n * shifted)
        return inner * scale.reshape(shape) / jnp.sqrt(shifted), along / jnp.sqrt(variance + epsilon), total

    functions: dict[str, Callable[..., Any]] = {
        "batch_norm_inference": normal,
        "batch_norm_training": training,
        "batch_norm_grad": gradient,
    }
    return by_jax(site.recording, functions[site.operation.name.partition(".")[2]], (x, *others))


def _of_one_shape(name: str) -> Reader:
    """An operation on arrays that are brought to one shape first, as NumPy does it unless it says which axes."""

    def read(site: Site, *operands: Term) -> Term | Sequence[Term]:
        shape = site.result.shape
        given = site.ints("broadcast_dimensions") if site.attribute("broadcast_dimensions") is not None else None
        spread = []
        for x in operands:
            least = x.type.rank < len(shape)
            axes = given if given is not None and least else range(len(shape) - x.type.rank, len(shape))
            same = x.type.shape == shape
            spread.append(x if same else site.emit("broadcast_in_dim", x, shape=shape, broadcast_dimensions=tuple(axes)))
        return _as(site, name, spread)

    return read


def _without_shape(name: str) -> Reader:
    """An operation whose last operand is the shape that its result has, which is known."""
    return lambda site, *operands: _as(site, name, operands[:-1])


def _known_as(name: str, *attributes: str) -> Reader:
    """An operation some of whose attributes come as operands, the last ones, which must be known."""

    def read(site: Site, *operands: Term) -> Term | Sequence[Term]:
        n = len(operands) - len(attributes)
        given = {}
        for attribute, term in zip(attributes, operands[n:], strict=True):
            known = site.known(term)
            if known is None:
                raise RefusedError(f"has {attribute} that are only known at run time; export the module with fixed shapes")
            given[attribute] = [int(k) for k in known.flat]
        return _as(site, name, operands[:n], **given)

    return read


def _size(site: Site, *operands: Term) -> Term:
    size = site.attribute("expression")
    return site.recording.full(operands[0].type.shape[site.attribute("dimension")] if operands else size, site.result)


_BINARY = ("add", "and", "atan2", "compare", "complex", "divide", "maximum", "minimum", "multiply", "or", "power", "remainder",
           "shift_left", "shift_right_arithmetic", "shift_right_logical", "subtract", "xor")  # fmt: skip

OPERATIONS: dict[str, Reader] = {
    **{f"stablehlo.batch_norm_{which}": _batch_norm for which in ("grad", "inference", "training")},
    **{f"chlo.broadcast_{name}": _of_one_shape(f"stablehlo.{name}") for name in _BINARY},
    **{f"chlo.broadcast_{name}": _of_one_shape(f"chlo.{name}") for name in ("next_after", "polygamma", "zeta")},
    "chlo.broadcast_select": _of_one_shape("stablehlo.select"),
    "stablehlo.dynamic_broadcast_in_dim": _without_shape("stablehlo.broadcast_in_dim"),
    "stablehlo.dynamic_conv": _known_as("stablehlo.convolution", "padding"),
    "stablehlo.dynamic_gather": _known_as("stablehlo.gather", "slice_sizes"),
    "stablehlo.dynamic_iota": _without_shape("stablehlo.iota"),
    "stablehlo.dynamic_pad": _known_as("stablehlo.pad", "edge_padding_low", "edge_padding_high", "interior_padding"),
    "stablehlo.dynamic_reshape": _without_shape("stablehlo.reshape"),
    "stablehlo.einsum": _einsum,
    "stablehlo.get_dimension_size": _size,
    "stablehlo.real_dynamic_slice": _known_as("stablehlo.slice", "start_indices", "limit_indices", "strides"),
    "stablehlo.torch_index_select": _index_select,
    "stablehlo.unary_einsum": _einsum,
}
