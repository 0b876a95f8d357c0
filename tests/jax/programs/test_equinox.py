"""Layers of equinox: what is differentiated are the arrays of a module, which are inputs by their paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

jax.config.update("jax_enable_x64", True)
nn, jnp = eqx.nn, jax.numpy

import tidu_cli as tidu  # noqa: E402
from tests.jax.programs.gradients import assert_gradient_agrees  # noqa: E402
from tests.tiers import few  # noqa: E402
from tidu_cli.adapters.numpy.errors import BuildError  # noqa: E402

pytestmark = pytest.mark.jax

KEY = jax.random.key(3)


def normal(*shape: int, seed: int = 0) -> Any:
    return jax.random.normal(jax.random.key(seed), shape, float)


def applied(layer: Any, *inputs: Any, call: Callable[..., Any] = lambda layer, *xs: layer(*xs)) -> tuple[Any, ...]:
    """The mean of sines of what a layer gives, as a function of the layer and its inputs."""

    def loss(arrays: Any, *inputs: Any) -> Any:
        outputs = jax.tree.leaves(call(eqx.combine(arrays, static), *inputs))
        return sum(jnp.mean(jnp.sin(3 * y)) for y in outputs if jnp.issubdtype(y.dtype, jnp.inexact))

    arrays, static = eqx.partition(layer, eqx.is_inexact_array)
    return loss, arrays, *inputs


def over_time(cell: Any, xs: Any, state: Any) -> Any:
    """The states of a recurrent cell, one after the other."""

    def step(state: Any, x: Any) -> tuple[Any, Any]:
        after = cell(x, state)
        return after, jax.tree.leaves(after)[0]

    return jax.lax.scan(step, state, xs)


def batch_norm(inference: bool) -> tuple[Any, ...]:
    layer, state = nn.make_with_state(nn.BatchNorm)(4, axis_name="batch", mode="batch", dtype=float)
    layer = eqx.nn.inference_mode(layer, inference)
    each = lambda layer, x, state: jax.vmap(layer, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(x, state)[0]  # noqa: E731
    return applied(layer, normal(6, 4), state, call=each)


def mapped(layer: Any, x: Any) -> Any:
    return jax.vmap(layer)(x)


CASES: dict[str, Callable[[], tuple[Any, ...]]] = {
    "Linear": lambda: applied(nn.Linear(4, 3, key=KEY), normal(4)),
    "Linear of a batch": lambda: applied(nn.Linear(4, 3, key=KEY), normal(5, 4), call=mapped),
    "MLP": lambda: applied(nn.MLP(4, 3, 8, 2, activation=jax.nn.tanh, key=KEY), normal(5, 4), call=mapped),
    "MLP of relu": lambda: applied(nn.MLP(4, 3, 8, 2, key=KEY), normal(5, 4), call=mapped),
    "Conv1d": lambda: applied(nn.Conv1d(2, 3, 3, key=KEY), normal(2, 9)),
    "Conv2d": lambda: applied(nn.Conv2d(2, 4, 3, 2, 1, key=KEY), normal(2, 8, 7)),
    "Conv2d in groups, dilated": lambda: applied(nn.Conv2d(4, 4, 3, dilation=2, groups=2, key=KEY), normal(4, 8, 7)),
    "Conv3d": lambda: applied(nn.Conv3d(1, 2, 2, key=KEY), normal(1, 4, 4, 3)),
    "ConvTranspose2d": lambda: applied(nn.ConvTranspose2d(2, 3, 3, 2, 1, 1, key=KEY), normal(2, 4, 5)),
    "MultiheadAttention": lambda: applied(
        nn.MultiheadAttention(2, 6, key=KEY),
        normal(5, 6),
        call=lambda layer, x: layer(x, x, x, mask=jnp.tril(jnp.ones((5, 5), bool))),
    ),
    "RotaryPositionalEmbedding": lambda: applied(nn.RotaryPositionalEmbedding(6), normal(5, 6)),
    "LayerNorm": lambda: applied(nn.LayerNorm(6), normal(6)),
    "GroupNorm": lambda: applied(nn.GroupNorm(2, 6), normal(6, 5)),
    "RMSNorm": lambda: applied(nn.RMSNorm(6), normal(6)),
    "BatchNorm": lambda: batch_norm(False),
    "BatchNorm in inference": lambda: batch_norm(True),
    "WeightNorm": lambda: applied(nn.WeightNorm(nn.Linear(4, 3, key=KEY)), normal(4)),
    "Embedding": lambda: applied(nn.Embedding(7, 3, key=KEY), np.array([1, 6, 1]), call=mapped),
    "Dropout off": lambda: applied(nn.Dropout(0.5, inference=True), normal(4)),
    "Dropout": lambda: applied(nn.Dropout(0.5), normal(4), call=lambda layer, x: layer(x, key=jax.random.key(1))),
    "PReLU": lambda: applied(nn.PReLU(0.2), normal(6)),
    "GRUCell": lambda: applied(nn.GRUCell(3, 4, key=KEY), normal(7, 3), normal(4), call=over_time),
    "LSTMCell": lambda: applied(nn.LSTMCell(3, 4, key=KEY), normal(7, 3), (normal(4), normal(4, seed=1)), call=over_time),
    "MaxPool2d": lambda: applied(nn.MaxPool2d(2, 2), normal(2, 6, 6)),
    "MaxPool2d of windows that overlap": lambda: applied(nn.MaxPool2d(3, 2, 1), normal(2, 6, 7)),
    "AvgPool2d": lambda: applied(nn.AvgPool2d(3, 2, 1), normal(2, 6, 7)),
    "AdaptiveAvgPool2d": lambda: applied(nn.AdaptiveAvgPool2d(3), normal(2, 6, 7)),
    "AdaptiveMaxPool1d": lambda: applied(nn.AdaptiveMaxPool1d(3), normal(2, 7)),
    "Sequential": lambda: applied(
        nn.Sequential([nn.Linear(4, 8, key=KEY), nn.Lambda(jax.nn.gelu), nn.LayerNorm(8), nn.Linear(8, 2, key=KEY)]), normal(4)
    ),
}


@pytest.mark.parametrize("name", few(CASES, 1))
def test_gradient_of_a_layer(name: str) -> None:
    assert_gradient_agrees(*CASES[name]())


def test_inputs_are_called_by_their_paths() -> None:
    layer = nn.MLP(4, 3, 8, 1, key=KEY)
    with jax.enable_x64(True):
        document = tidu.from_jax(lambda model, x: model(x), layer, normal(4))
    assert [str(i.key) for i in document.head.inputs][:2] == ["model.layers.0.weight", "model.layers.0.bias"]


def test_checks_that_raise_are_refused_with_the_way_out() -> None:
    with pytest.raises(BuildError, match="EQX_ON_ERROR=off"):
        tidu.from_jax(lambda x: eqx.error_if(x, x < 0, "it is negative"), 1.0)
