"""Networks written by hand, as many are."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import pytest

jax.config.update("jax_enable_x64", True)

from jax import lax  # noqa: E402
from jax import numpy as jnp  # noqa: E402

from tests.jax.programs.gradients import assert_gradient_agrees  # noqa: E402

pytestmark = pytest.mark.jax

RNG = np.random.default_rng(6)


def normal(*shape: int) -> Any:
    return RNG.standard_normal(shape) * 0.4


def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * gain + bias


def block(p: Any, x: Any) -> Any:
    """A layer of a transformer of two heads."""
    b, t, c = x.shape
    qkv = (layer_norm(x, *p["norm1"]) @ p["qkv"]).reshape(b, t, 3, 2, c // 2)
    scores = jnp.einsum("bqhd,bkhd->bhqk", qkv[:, :, 0], qkv[:, :, 1]) / math.sqrt(c // 2)
    weights = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -jnp.inf), axis=-1)
    x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, qkv[:, :, 2]).reshape(b, t, c) @ p["out"]
    return x + jax.nn.gelu(layer_norm(x, *p["norm2"]) @ p["up"]) @ p["down"]


def parameters(*layers: int) -> dict[str, Any]:
    return {
        "norm1": (1 + normal(*layers, 8), normal(*layers, 8)),
        "norm2": (1 + normal(*layers, 8), normal(*layers, 8)),
        "qkv": normal(*layers, 8, 24),
        "out": normal(*layers, 8, 8),
        "up": normal(*layers, 8, 16),
        "down": normal(*layers, 16, 8),
    }


def next_token(embedding: Any, x: Any, tokens: Any) -> Any:
    predicted = jax.nn.log_softmax(x @ embedding.T)[:, :-1]
    return -jnp.mean(jnp.take_along_axis(predicted, tokens[:, 1:, None], axis=-1))


TOKENS = RNG.integers(0, 11, (2, 5))


def transformer(params: Any, tokens: Any) -> Any:
    x = params["embedding"][tokens] + params["place"]
    for p in params["layers"]:
        x = block(p, x)
    return next_token(params["embedding"], x, tokens)


def test_a_transformer() -> None:
    params = {"embedding": normal(11, 8), "place": normal(5, 8), "layers": [parameters() for _ in range(2)]}
    assert_gradient_agrees(transformer, params, TOKENS)


@pytest.mark.parametrize("remembered", [True, pytest.param(False, marks=pytest.mark.campaign)])
def test_a_transformer_in_a_loop_over_its_layers(remembered: bool) -> None:
    step = block if remembered else jax.checkpoint(block)

    def loss(params: Any, tokens: Any) -> Any:
        start = params["embedding"][tokens] + params["place"]
        x, _ = lax.scan(lambda x, p: (step(p, x), None), start, params["layers"])
        return next_token(params["embedding"], x, tokens)

    assert_gradient_agrees(loss, {"embedding": normal(11, 8), "place": normal(5, 8), "layers": parameters(3)}, TOKENS)


def test_a_convolutional_network() -> None:
    def loss(params: Any, images: Any, labels: Any) -> Any:
        hidden = images
        for w, b in params["convolutions"]:
            hidden = lax.conv_general_dilated(hidden, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + b
            hidden = lax.reduce_window(jax.nn.relu(hidden), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        scores = jnp.mean(hidden, (1, 2)) @ params["w"] + params["b"]
        return -jnp.mean(jax.nn.log_softmax(scores)[jnp.arange(len(labels)), labels])

    params = {
        "convolutions": [(normal(3, 3, 2, 4), normal(4)), (normal(3, 3, 4, 6), normal(6))],
        "w": normal(6, 3),
        "b": normal(3),
    }
    assert_gradient_agrees(loss, params, normal(3, 8, 8, 2), np.array([0, 2, 1]))


def test_a_variational_autoencoder() -> None:
    """Random numbers are drawn with a key that is an input."""

    def loss(params: Any, x: Any, key: Any) -> Any:
        mean, log_variance = jnp.split(jnp.tanh(x @ params["encode"]), 2, axis=-1)
        z = mean + jnp.exp(log_variance / 2) * jax.random.normal(key, mean.shape)
        logits = jnp.tanh(z @ params["decode"])
        fit = jnp.sum(jnp.logaddexp(0, logits) - (x > 0) * logits)
        return fit - 0.5 * jnp.sum(1 + log_variance - mean**2 - jnp.exp(log_variance))

    assert_gradient_agrees(loss, {"encode": normal(6, 4), "decode": normal(2, 6)}, normal(5, 6), np.array([0, 7], np.uint32))


def test_a_filter_of_a_linear_system() -> None:
    """Kalman's, with a linear system solved at each step."""

    def likelihood(params: Any, observed: Any) -> Any:
        a, h, q, r = params["a"], params["h"], params["q"], params["r"]

        def step(state: Any, y: Any) -> tuple[Any, Any]:
            mean, spread = a @ state[0], a @ state[1] @ a.T + q @ q.T
            s = h @ spread @ h.T + r @ r.T + jnp.eye(2)
            gain, error = jnp.linalg.solve(s, h @ spread).T, y - h @ mean
            one = error @ jnp.linalg.solve(s, error) + jnp.linalg.slogdet(s)[1]
            return (mean + gain @ error, spread - gain @ h @ spread), one

        _, each = lax.scan(step, (jnp.zeros(3), jnp.eye(3)), observed)
        return jnp.sum(each)

    assert_gradient_agrees(likelihood, {"a": normal(3, 3), "h": normal(2, 3), "q": normal(3, 3), "r": normal(2, 2)}, normal(6, 2))


def test_a_gaussian_process() -> None:
    def likelihood(params: Any, x: Any, y: Any) -> Any:
        scaled = x / jnp.exp(params["scales"])
        distances = jnp.sum((scaled[:, None] - scaled) ** 2, -1)
        kernel = jnp.exp(2 * params["height"] - distances / 2) + (jnp.exp(2 * params["noise"]) + 1e-6) * jnp.eye(len(x))
        factor = jnp.linalg.cholesky(kernel)
        white = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
        return white @ white / 2 + jnp.sum(jnp.log(jnp.diag(factor)))

    assert_gradient_agrees(
        likelihood, {"scales": normal(2), "height": np.float64(0.2), "noise": np.float64(-1.0)}, normal(9, 2), normal(9)
    )
