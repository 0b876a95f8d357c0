"""What is read as something else: functions of JAX, whose derivative modules have lost, and operations that stand for others.

relu and relu6 are known by their name and by all that they compute. JAX lowers each as a function of the module, with a number
behind its name from the second on. Users' functions that are alike in both are taken for JAX's: nothing in a module tells them
apart. logaddexp, of which softplus and log_sigmoid are made, leaves no function, and is known by what it computes. Of further
ones that keep their name a note says that their derivative is lost.

Operations that stand for others are those of older modules, of networks, and those with shapes as operands that are yet known. They
are read as these others, or as functions of JAX.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from tidu_cli.adapters.stablehlo.module import Block, Function, Module, Operation
from tidu_cli.adapters.stablehlo.reading.site import Reader, RefusedError, Site, array_of, reader_of
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.open_sizes import has_open_size
from tidu_cli.graph.types import FLOATS
from tidu_cli.rules.recording.known import Recording, inlined
from tidu_cli.rules.terms import Term

Bounds = tuple[tuple[str, str], ...]
"""Operations with constants that stand one within the next, the inmost first."""

_KINKS: dict[str, Bounds] = {
    "relu": (("stablehlo.maximum", "0.0"),),
    "relu6": (("stablehlo.maximum", "0.0"), ("stablehlo.minimum", "6.0")),
}
_CHOOSES = {"stablehlo.maximum": "le", "stablehlo.minimum": "ge"}

_LOST = re.compile(r"(sinc|i0|log_ndtr|expi|sici|expn|poch|fresnel|logit|xlogy|xlog1py|erfcx|dawsn|owens_t)(_\d+)?")
"""Functions for which JAX defines a derivative other than that of what they compute, and which modules hold by name."""


def lost_rules(module: Module) -> str:
    """A note on functions whose derivative is not JAX's, empty if there are none."""
    names = {match[1] for f in module.functions.values() if not f.public and (match := _LOST.fullmatch(f.name))}
    if not names:
        return ""
    what = f"@{', @'.join(sorted(names))}"
    return f"modules do not hold the derivative that JAX defines for {what}; it is derived as it is computed"


def bounds_of(function: Function) -> Bounds | None:
    """The bounds of a function of JAX's which has the derivative of the one it chooses, the constant in ties; None for others."""
    name = re.fullmatch(r"(relu6?)(_\d+)?", function.name)
    if name is None or function.public or len(function.results) != 1 or function.body.arguments != function.results:
        return None
    return bounds if (bounds := _computed(function.body)) == _KINKS[name[1]] else None


def bounded(recording: Recording, x: Term, bounds: Bounds) -> Term:
    """The number or the bound, by choice: the same bits, also of -0.0 and NaN."""
    for op, bound in bounds:
        limit = recording.full(float(bound), x.type)
        x = recording.emit("select_n", recording.emit(_CHOOSES[op], x, limit), x, limit)
    return x


def _computed(body: Block) -> Any:
    """What a block computes of its argument, if that is bounds alone; constants have their digits, as -0.0 is another bound."""
    computed: dict[int, Any] = {body.first: ()}
    for o in body.operations:
        match o.name, [computed.get(v) for v in o.operands]:
            case "stablehlo.constant", []:
                array, type_ = array_of(o.attributes["value"])
                computed[o.first] = repr(float(array.item())) if array.size == 1 and type_.dtype in FLOATS else None
            case "stablehlo.broadcast_in_dim", [str() as constant]:
                computed[o.first] = constant
            case ("stablehlo.maximum" | "stablehlo.minimum") as op, [tuple() as within, str() as constant]:
                computed[o.first] = (*within, (op, constant))
    return computed.get(body.results[0])


Choices = dict[int, tuple[int, int]]
"""Of operations that are read as choices, by the numbers of their results: the operands whose order they go by."""

_LONGEST = 8
"""Operations at most between the two kinks of a logaddexp, and broadcasts of a constant."""


def cancelling_kinks(block: Block) -> Choices:
    """The maximum of a and b and |a - b| in each logaddexp of a block: their kinks cancel where both go by one comparison.

    JAX writes select(d != d, a + b, max(a, b) + log1p(exp(-|d|))) with d = a - b. With the derivatives of ties, 0.5 and 0, the
    second derivative would be 0 where a = b. NaN comes from a + b, so that the maximum needs none.
    """
    made = {o.first: o for o in block.operations if len(o.results) == 1}

    def by(name: str, value: int) -> Operation | None:
        return o if (o := made.get(value)) and o.name == f"stablehlo.{name}" else None

    @cache  # many selects may look at one constant, which may be large
    def same(value: int) -> Any:
        """What is the same for equal values: a constant written twice has two numbers."""
        for _ in range(_LONGEST):
            if (o := by("broadcast_in_dim", value)) is None:
                break
            value = o.operands[0]
        if o := by("constant", value):
            array, type_ = array_of(o.attributes["value"])
            return (array.tobytes(), type_.dtype) if array.size == 1 else value
        return value

    def chain(value: int) -> Iterator[Operation]:
        """The operation that makes a value, and those below it that take one operand that is no constant."""
        for _ in range(_LONGEST):
            if (o := made.get(value)) is None:
                return
            yield o
            varying = [v for v in o.operands if isinstance(same(v), int)] if len(o.operands) <= 2 else []
            if len(varying) != 1:
                return
            (value,) = varying

    choices: Choices = {}
    for o in block.operations:
        if o.name != "stablehlo.select" or not (differs := by("compare", o.operands[0])) or not (y := by("add", o.operands[2])):
            continue
        d = differs.operands[0]
        if not (difference := by("subtract", d)) or list(differs.operands) != [d, d]:
            continue
        for top, rest in (y.operands, reversed(y.operands)):
            highest = by("maximum", top)
            distance = next((o for o in chain(rest) if o.name == "stablehlo.abs" and o.operands[0] == d), None)
            if highest and distance:
                a, b = highest.operands
                orders = {(same(a), same(b)): (a, b), (same(b), same(a)): (b, a)}
                if order := orders.get(tuple(map(same, difference.operands))):
                    a, b = difference.operands
                    choices |= {highest.first: order, distance.first: (a, b)}
    return choices


def chosen(recording: Recording, operation: Operation, operands: Sequence[Term], a: Term, b: Term) -> Term:
    """A maximum of a and b, or the absolute value of a - b, by their order: in ties that of b and of b - a."""
    is_less = recording.emit("le", a, b)
    if operation.name == "stablehlo.maximum":
        return recording.emit("select_n", is_less, a, b)
    return recording.emit("select_n", is_less, operands[0], recording.emit("neg", operands[0]))


def by_jax(recording: Recording, function: Callable[..., Any], operands: Sequence[Term]) -> list[Term]:
    """The results of a function of JAX, whose equations are recorded. Raises TiduError where these are not read."""
    import jax

    from tidu_cli.adapters.jax.functions.function import from_jax

    types = [x.type for x in operands]
    scope: AbstractContextManager[None] = nullcontext()
    if has_open_size(types):
        from tidu_cli.adapters.jax.dims import scope_of
        from tidu_cli.graph.sizes.algebra import names_of

        scope = scope_of({name for t in types for n in t.shape for name in names_of(n)})
    with jax.enable_x64(True), scope:
        document = from_jax(function, *types, names=[f"x{k}" for k in range(len(types))])
    return inlined(recording, ClosedGraph.of(document.head), operands)


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

    functions: dict[str, Callable[..., Any]] = {"inference": normal, "training": training, "grad": gradient}
    return by_jax(site.recording, functions[site.operation.name.rpartition("_")[2]], (x, *others))


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

KNOWN_AS = {
    "stablehlo.dynamic_conv": ("stablehlo.convolution", "padding"),
    "stablehlo.dynamic_gather": ("stablehlo.gather", "slice_sizes"),
    "stablehlo.dynamic_pad": ("stablehlo.pad", "edge_padding_low", "edge_padding_high", "interior_padding"),
    "stablehlo.real_dynamic_slice": ("stablehlo.slice", "start_indices", "limit_indices", "strides"),
}
"""The operations that are others with some attributes as operands: which, and these attributes, whose operands are the last."""

OPERATIONS: dict[str, Reader] = {
    **{name: _known_as(*other) for name, other in KNOWN_AS.items()},
    **{f"stablehlo.batch_norm_{which}": _batch_norm for which in ("grad", "inference", "training")},
    **{f"chlo.broadcast_{name}": _of_one_shape(f"stablehlo.{name}") for name in _BINARY},
    **{f"chlo.broadcast_{name}": _of_one_shape(f"chlo.{name}") for name in ("next_after", "polygamma", "zeta")},
    "chlo.broadcast_select": _of_one_shape("stablehlo.select"),
    "stablehlo.dynamic_broadcast_in_dim": _without_shape("stablehlo.broadcast_in_dim"),
    "stablehlo.dynamic_iota": _without_shape("stablehlo.iota"),
    "stablehlo.dynamic_reshape": _without_shape("stablehlo.reshape"),
    "stablehlo.einsum": _einsum,
    "stablehlo.get_dimension_size": _size,
    "stablehlo.torch_index_select": _index_select,
    "stablehlo.unary_einsum": _einsum,
}
