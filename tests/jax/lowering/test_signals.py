"""np.fft, convolutions and windows as traced functions, against JAX: value, JVP, VJP, and how cotangents move with the operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.jax.functions.test_linear_systems import directions, run
from tests.jax.lowering.compiled import compiled
from tests.tiers import few
from tidu_cli.adapters.numpy.numpy import signal
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.graph.keys import Key
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose

pytestmark = [pytest.mark.jax, pytest.mark.usefixtures("jax")]

RNG = np.random.default_rng(4)
X, Y = RNG.normal(size=(3, 4, 5)), RNG.normal(size=(3, 4, 5))
Z = X + 1j * Y
IMAGES, KERNELS = RNG.normal(size=(2, 4, 6, 5)), RNG.normal(size=(6, 2, 3, 2))

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
OF_REALS = ("rfft", "ihfft", "rfft2", "rfftn")


def transforms() -> dict[str, tuple[Any, ...]]:
    functions: dict[str, tuple[Any, ...]] = {}
    for name in (*ONE, *SEVERAL):
        x = X if name in OF_REALS else Z
        for norm in ("backward", "ortho", "forward"):
            functions[f"{name}, {norm}"] = (lambda np, lax, x, name=name, norm=norm: getattr(np.fft, name)(x, norm=norm), x)
        lengths = {"n": 6, "axis": 1} if name in ONE else {"s": (7, 2), "axes": (2, 0)}
        functions[f"{name}, cut and filled"] = (lambda np, lax, x, name=name, o=lengths: getattr(np.fft, name)(x, **o), x)
    for name in ("fftshift", "ifftshift"):
        functions[name] = (lambda np, lax, x, name=name: getattr(np.fft, name)(x, axes=(0, 2)), Z)
    return functions


def pooled(lax: Any, which: str, x: Any) -> Any:
    """The extremes of windows, by whichever function there is."""
    attrs = ((1, 1, 3, 2), (1, 1, 2, 2), "SAME")
    if lax is signal:
        return getattr(signal, f"reduce_window_{which}")(x, *attrs)
    return lax.reduce_window(x, np.inf if which == "min" else -np.inf, getattr(lax, which), *attrs)


def convolved(lax: Any, x: Any, w: Any, padding: Any = "SAME", **options: Any) -> Any:
    return lax.conv_general_dilated(x, w, (2, 1), padding, **options)


FUNCTIONS: dict[str, tuple[Any, ...]] = {
    **transforms(),
    "a filter": (lambda np, lax, x, y: np.fft.irfft(np.fft.rfft(x) ** 2 * np.conj(np.fft.rfft(y)), 5), X, Y),
    "a power spectrum": (lambda np, lax, x: np.abs(np.fft.fft2(x)) ** 2, X),
    **{
        f"convolve, {m}": (lambda np, lax, x, y, m=m: np.convolve(x, y, m), X[0, 0], Z[0, 1, :3]) for m in ("full", "same", "valid")
    },
    **{
        f"correlate, {m}": (lambda np, lax, x, y, m=m: np.correlate(x, y, m), Z[0, 0], X[0, 1, :3])
        for m in ("full", "same", "valid")
    },
    "convolution": (lambda np, lax, x, w: convolved(lax, x[:, :2], w), IMAGES, KERNELS),
    "convolution of groups": (lambda np, lax, x, w: convolved(lax, x, w, feature_group_count=2), IMAGES, KERNELS),
    "convolution of dilated": (
        lambda np, lax, x, w: convolved(lax, x[:, :2], w, [(1, 2), (-1, 3)], lhs_dilation=(2, 3), rhs_dilation=(1, 2)),
        IMAGES,
        KERNELS,
    ),
    "convolution of complex numbers": (lambda np, lax, x, w: convolved(lax, x[:, :2], w), IMAGES * (1 + 2j), KERNELS + 1j),
    "layers": (lambda np, lax, x, w: np.tanh(pooled(lax, "max", np.tanh(convolved(lax, x[:, :2], w)))), IMAGES, KERNELS),
    "minima": (lambda np, lax, x: pooled(lax, "min", x) ** 2, IMAGES),
}


@pytest.mark.parametrize("name", few(FUNCTIONS, 14))
def test_agrees_with_jax(name: str, jax: Any) -> None:
    function, *operands = FUNCTIONS[name]
    document = trace(lambda x: function(np, signal, *x), operands)
    keys = [Key(f"x.{k}") for k in range(len(operands))]
    x, v = dict(zip(keys, operands, strict=True)), [directions(x) for x in operands]
    (y,) = run(document, x)
    u = directions(np.asarray(y))

    def theirs(*xs: Any) -> Any:
        return function(jax.numpy, jax.lax, *xs)

    def pulled(*xs: Any) -> Any:
        return tuple(jax.numpy.conj(g) for g in jax.vjp(theirs, *xs)[1](jax.numpy.asarray(u.conj())))

    value, tangent = compiled(lambda x, v: jax.jvp(theirs, x, v))(tuple(operands), tuple(v))
    cotangents, moved = compiled(lambda x, v: jax.jvp(pulled, x, v))(tuple(operands), tuple(v))
    np.testing.assert_allclose(y, value, 1e-12, 1e-12)
    forward = linearize(document, keys)
    along = {key.tangent(1): t for key, t in zip(keys, v, strict=True)}
    np.testing.assert_allclose(run(forward, x | along)[0], tangent, 1e-11, 1e-11)

    reverse, given = transpose(forward), x | {document.head.outputs[0].key.cotangent(1): u}
    twice = linearize(reverse, keys)
    again = given | {key.tangent(2): t for key, t in zip(keys, v, strict=True)}
    first = dict(zip((o.key for o in reverse.head.outputs), run(reverse, given), strict=True))
    second = dict(zip((o.key for o in twice.head.outputs), run(twice, again), strict=True))
    for key, ct, move in zip(keys, cotangents, moved, strict=True):
        np.testing.assert_allclose(first[key.cotangent(1)], ct, 1e-11, 1e-11)
        np.testing.assert_allclose(second.get(key.cotangent(1).tangent(2), 0 * ct), move, 1e-10, 1e-10)
