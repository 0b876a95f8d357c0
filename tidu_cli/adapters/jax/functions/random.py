"""Random numbers: keys are the integers that they hold, and what is drawn with them is arithmetic on these.

Where a key is known, JAX draws the numbers while a jaxpr is read, and they are constants of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.jax.functions.equation import Equation, spread
from tidu_cli.adapters.jax.functions.jaxpr import Known, Value, is_extended
from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.graph.sizes.open import surely

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
"""The bits by which threefry rotates, in its rounds of one kind and the other (Salmon et al. 2011, table 2)."""

PARITY = 0x1BD11BDA


def threefry2x32(eq: Equation, *operands: Array) -> Sequence[Array]:
    """The block cipher threefry of two words of 32 bits and 20 rounds (Salmon et al. 2011, section 3.3)."""
    import jax.numpy as jnp

    def cipher(k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
        keys = (k0, k1, k0 ^ k1 ^ jnp.uint32(PARITY))
        x0, x1 = x0 + k0, x1 + k1
        for turn in range(5):
            for n in ROTATIONS[turn % 2]:
                x0 = x0 + x1
                x1 = x0 ^ ((x1 << jnp.uint32(n)) | (x1 >> jnp.uint32(32 - n)))
            x0, x1 = x0 + keys[(turn + 1) % 3], x1 + keys[(turn + 2) % 3] + jnp.uint32(turn + 1)
        return x0, x1

    return eq.traced_arrays(cipher, *operands)


def counters(eq: Equation) -> Sequence[Array]:
    """The numbers of the elements of an array, high words and low ones."""
    low, shape = eq.results[1], eq.results[1].shape
    if surely(lambda: low.size < 2**32):
        return eq.zeros(eq.results[0]), eq.emit("iota", dtype="u32", shape=(low.size,), dimension=0).reshaped(shape)
    count = eq.emit("iota", dtype="u64", shape=(low.size,), dimension=0).reshaped(shape)
    words = (eq.emit("shift_right_logical", count, spread(eq.constant(np.uint64(32)), shape)), count)
    return [word.convert("u32") for word in words]


def _each(function: Callable[..., Any], n: int) -> Callable[..., Any]:
    """A function of keys, one by one, as one of arrays of keys of n axes."""
    import jax

    for _ in range(n):
        function = jax.vmap(function)
    return function


def _of_key(eq: Equation) -> tuple[Any, int]:
    """How keys work: their functions; and how many axes the array of keys has."""
    aval = next(v.aval for v in (*eq.equation.invars, *eq.equation.outvars) if is_extended(v.aval))
    return aval.dtype._impl, len(aval.shape)


def random_bits(eq: Equation, keys: Array) -> Sequence[Array]:
    """Random bits of each key."""
    impl, n = _of_key(eq)
    width, shape = eq.params["bit_width"], eq.params["shape"]
    return eq.traced_arrays(_each(lambda key: impl.random_bits(key, width, shape), n), keys)


def random_split(eq: Equation, keys: Array) -> Sequence[Array]:
    """New keys of each key."""
    impl, n = _of_key(eq)
    return eq.traced_arrays(_each(lambda key: impl.split(key, tuple(eq.params["shape"])), n), keys)


def random_fold_in(eq: Equation, keys: Array, data: Array) -> Sequence[Array]:
    """New keys of keys and numbers."""
    import jax.numpy as jnp

    impl, _ = _of_key(eq)
    shape = eq.equation.outvars[0].aval.shape

    def fold(base: Any, numbers: Any) -> Any:
        base = jnp.broadcast_to(base, (*shape, base.shape[-1]))
        return _each(impl.fold_in, len(shape))(base, jnp.broadcast_to(numbers, shape).astype(jnp.uint32))

    return eq.traced_arrays(fold, keys, data)


def random_seed(eq: Equation, seeds: Array) -> Sequence[Array]:
    """Keys of integers."""
    impl, n = _of_key(eq)
    return eq.traced_arrays(_each(impl.seed, n), seeds)


def of_keys(eq: Equation, *operands: Array) -> Sequence[Array]:
    """What arranges keys, as what arranges each of the integers that they hold."""
    import jax

    axes = tuple(-1 if is_extended(v.aval) else None for v in eq.equation.invars)
    extended = [is_extended(v.aval) for v in eq.equation.outvars]
    if not all(extended):
        raise eq.refused("no operation of a graph does this with keys of random numbers; take their integers, jax.random.key_data")
    primitive, params = eq.equation.primitive, eq.params
    return eq.traced_arrays(jax.vmap(lambda *xs: primitive.bind(*xs, **params), in_axes=axes, out_axes=-1), *operands)


def random_gamma(eq: Equation, key: Value, order: Value) -> Sequence[Any]:
    """Random numbers of the gamma distribution, whose derivative by the order keeps the probability up to them.

    x(a) has P(a, x) = u with u held constant: with what is drawn, x₀, it is x₀ + (w - w₀), w = P⁻¹(a, u), w₀ the same held constant
    (Figurnov, Mohamed, Mnih 2018). Beyond the median 1 - P takes the place of P, which is near 1 there.
    """
    if type(key) is Known and type(order) is Known:
        return eq.reader.folded(eq.equation, eq.needs, [key, order])  # type: ignore[no-any-return]
    import jax

    impl, _ = _of_key(eq)
    is_log = eq.params["log_space"]

    def draw(keys: Any, a: Any) -> Any:
        if isinstance(keys.dtype, np.dtype):
            keys = jax.random.wrap_key_data(keys, impl=impl)
        return eq.equation.primitive.impl(keys, a, log_space=is_log)

    a = eq.lifted(order)
    (sample,) = map(eq.lifted, eq.traced(draw, key, eq.emit("stop_gradient", a)))
    x = eq.emit("stop_gradient", eq.emit("exp", sample) if is_log else sample)
    moved = []
    for name in ("igamma", "igammac"):
        u = eq.emit("stop_gradient", eq.emit(name, a, x))
        moved.append((u, eq.emit(f"{name}_inv", a, u)))
    (u, low), (_, high) = moved
    w = eq.emit("select_n", u > 0.5, low, high)
    w = eq.emit("log", w) if is_log else w
    return [sample + (w - eq.emit("stop_gradient", w))]


RANDOM: dict[str, Callable[..., Any]] = {
    "threefry2x32": threefry2x32,
    "iota_2x32_shape": counters,
    "random_bits": random_bits,
    "random_split": random_split,
    "random_fold_in": random_fold_in,
    "random_seed": random_seed,
    **dict.fromkeys(("random_wrap", "random_unwrap"), lambda eq, keys: keys),  # keys are their integers here
}
