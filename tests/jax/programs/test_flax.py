"""Layers of flax, of linen and of nnx: the gradient by all variables and inputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
from flax import linen as nn
from flax import nnx

jax.config.update("jax_enable_x64", True)
jnp = jax.numpy

import tidu_cli as tidu  # noqa: E402
from tests.jax.programs.gradients import assert_gradient_agrees  # noqa: E402
from tests.tiers import few  # noqa: E402

pytestmark = pytest.mark.jax

RNG = np.random.default_rng(4)
WIDE = {"param_dtype": jnp.float64, "dtype": jnp.float64}


def normal(*shape: int) -> Any:
    return RNG.standard_normal(shape)


def mean(outputs: Any) -> Any:
    return sum(jnp.mean(jnp.sin(3 * y)) for y in jax.tree.leaves(outputs) if jnp.issubdtype(y.dtype, jnp.inexact))


def applied(layer: Any, *inputs: Any, **options: Any) -> tuple[Any, ...]:
    """The mean of sines of what a layer of linen gives, as a function of its variables and its inputs."""
    variables = jax.jit(partial(layer.init, **options))(jax.random.key(0), *inputs)
    variables = jax.tree.map(lambda x: x + normal(*x.shape) / 5, variables)  # that no bias is zero
    mutable = {"mutable": ["batch_stats"]} if options.get("use_running_average") is False else {}
    return lambda variables, *xs: mean(layer.apply(variables, *xs, **options, **mutable)), variables, *inputs


def of_nnx(make: Callable[[Any], Any], *inputs: Any) -> tuple[Any, ...]:
    """Likewise of a layer of nnx, which is made with random numbers."""
    definition, state = nnx.split(make(nnx.Rngs(0)))
    state = jax.tree.map(lambda x: x + normal(*x.shape) / 5 if jnp.issubdtype(x.dtype, jnp.inexact) else x, state)
    return lambda state, *xs: mean(nnx.merge(definition, state)(*xs)), nnx.to_pure_dict(state), *inputs


class Residual(nn.Module):
    """A network as users write them."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for width in (4, 8):
            y = nn.Conv(width, (3, 3), use_bias=False, **WIDE)(x)
            y = nn.relu(nn.BatchNorm(use_running_average=True, **WIDE)(y))
            x = y + nn.Conv(width, (1, 1), **WIDE)(x)
            x = nn.max_pool(x, (2, 2), strides=(2, 2))
        return nn.log_softmax(nn.Dense(3, **WIDE)(jnp.mean(x, (1, 2))))


class Encoder(nn.Module):
    """A layer of a transformer."""

    @nn.compact
    def __call__(self, tokens: Any) -> Any:
        x = nn.Embed(11, 8, **WIDE)(tokens) + self.param("place", nn.initializers.normal(), (5, 8), jnp.float64)
        y = nn.LayerNorm(**WIDE)(x)
        x = x + nn.MultiHeadDotProductAttention(num_heads=2, **WIDE)(y, y, mask=nn.make_causal_mask(tokens))
        return x + nn.Dense(8, **WIDE)(nn.gelu(nn.Dense(16, **WIDE)(nn.LayerNorm(**WIDE)(x))))


CASES: dict[str, Callable[[], tuple[Any, ...]]] = {
    "Dense": lambda: applied(nn.Dense(3, **WIDE), normal(5, 4)),
    "DenseGeneral": lambda: applied(nn.DenseGeneral((2, 3), axis=(-2, -1), **WIDE), normal(5, 4, 2)),
    "Einsum": lambda: applied(nn.Einsum((4, 2, 3), "bi,ijk->bjk", **WIDE), normal(5, 4)),
    "Conv": lambda: applied(nn.Conv(3, (3, 3), **WIDE), normal(2, 6, 7, 2)),
    "Conv with strides": lambda: applied(nn.Conv(3, (3, 3), strides=2, padding="VALID", **WIDE), normal(2, 7, 7, 2)),
    "Conv of each channel": lambda: applied(nn.Conv(4, (3,), feature_group_count=2, kernel_dilation=2, **WIDE), normal(2, 9, 2)),
    "Conv that looks back": lambda: applied(nn.Conv(4, (3,), padding="CAUSAL", **WIDE), normal(2, 9, 2)),
    "ConvTranspose": lambda: applied(nn.ConvTranspose(3, (3, 3), strides=(2, 2), **WIDE), normal(2, 4, 4, 2)),
    "MultiHeadDotProductAttention": lambda: applied(nn.MultiHeadDotProductAttention(num_heads=2, **WIDE), normal(2, 5, 6)),
    "LayerNorm": lambda: applied(nn.LayerNorm(**WIDE), normal(3, 6)),
    "RMSNorm": lambda: applied(nn.RMSNorm(**WIDE), normal(3, 6)),
    "GroupNorm": lambda: applied(nn.GroupNorm(2, **WIDE), normal(3, 4, 6)),
    "BatchNorm": lambda: applied(nn.BatchNorm(**WIDE), normal(6, 4), use_running_average=False),
    "BatchNorm in inference": lambda: applied(nn.BatchNorm(**WIDE), abs(normal(6, 4)), use_running_average=True),
    "Embed": lambda: applied(nn.Embed(7, 3, **WIDE), np.array([[1, 6, 1]])),
    "Dropout off": lambda: applied(nn.Dropout(0.5, deterministic=True), normal(4)),
    "PReLU": lambda: applied(nn.PReLU(param_dtype=jnp.float64), normal(6)),
    "LSTM": lambda: applied(nn.RNN(nn.LSTMCell(4, **WIDE)), normal(2, 7, 3)),
    "LSTM with one product": lambda: applied(nn.RNN(nn.OptimizedLSTMCell(4, **WIDE)), normal(2, 7, 3)),
    "GRU backwards": lambda: applied(nn.RNN(nn.GRUCell(4, **WIDE), reverse=True), normal(2, 7, 3)),
    "GRU of other lengths": lambda: applied(nn.RNN(nn.GRUCell(4, **WIDE)), normal(2, 7, 3), seq_lengths=np.array([3, 7])),
    "ConvLSTM": lambda: applied(nn.RNN(nn.ConvLSTMCell(2, (3,), **WIDE)), normal(2, 4, 5, 3)),
    "Bidirectional": lambda: applied(
        nn.Bidirectional(nn.RNN(nn.GRUCell(3, **WIDE)), nn.RNN(nn.GRUCell(3, **WIDE))), normal(2, 5, 3)
    ),
    "avg_pool": lambda: applied(nn.Sequential([lambda x: nn.avg_pool(x, (2, 2), (2, 2), "SAME")]), normal(2, 5, 5, 2)),
    "residual network": lambda: applied(Residual(), normal(2, 8, 8, 1)),
    "encoder": lambda: applied(Encoder(), np.array([[1, 2, 10, 2, 0], [3, 3, 9, 1, 4]])),
    "nnx.Linear": lambda: of_nnx(lambda rngs: nnx.Linear(4, 3, rngs=rngs, **WIDE), normal(5, 4)),
    "nnx.Conv": lambda: of_nnx(lambda rngs: nnx.Conv(2, 3, (3, 3), rngs=rngs, **WIDE), normal(2, 6, 7, 2)),
    "nnx.LayerNorm": lambda: of_nnx(lambda rngs: nnx.LayerNorm(6, rngs=rngs, **WIDE), normal(3, 6)),
    "nnx.BatchNorm in inference": lambda: of_nnx(
        lambda rngs: nnx.BatchNorm(4, use_running_average=True, rngs=rngs, **WIDE), normal(6, 4)
    ),
}


@pytest.mark.parametrize("name", few(CASES, 1))
def test_gradient_of_a_layer(name: str) -> None:
    assert_gradient_agrees(*CASES[name]())


def test_inputs_are_called_by_their_paths() -> None:
    layer = nn.Dense(3)
    with jax.enable_x64(True):
        document = tidu.from_jax(layer.apply, layer.init(jax.random.key(0), normal(4)), normal(4), names=["model", "x"])
    assert [str(i.key) for i in document.head.inputs] == ["model.params.bias", "model.params.kernel", "x"]
