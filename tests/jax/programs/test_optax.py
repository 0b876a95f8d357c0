"""Losses of optax, and through steps of its optimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import optax
import pytest

jax.config.update("jax_enable_x64", True)

from tests.jax.programs.gradients import assert_gradient_agrees  # noqa: E402
from tests.tiers import few  # noqa: E402

pytestmark = pytest.mark.jax
jnp = jax.numpy

RNG = np.random.default_rng(8)
SCORES, LABELS = RNG.standard_normal((6, 4)), RNG.integers(0, 4, 6)
X, Y = RNG.standard_normal((7, 3)), RNG.standard_normal(7)

LOSSES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "softmax cross-entropy": (optax.softmax_cross_entropy_with_integer_labels, (SCORES, LABELS)),
    "softmax cross-entropy of probabilities": (optax.softmax_cross_entropy, (SCORES, np.eye(4)[LABELS])),
    "sigmoid cross-entropy": (optax.sigmoid_binary_cross_entropy, (SCORES, np.eye(4)[LABELS])),
    "focal": (optax.sigmoid_focal_loss, (SCORES, np.eye(4)[LABELS])),
    "hinge": (optax.hinge_loss, (SCORES, 2 * np.eye(4)[LABELS] - 1)),
    "huber": (optax.huber_loss, (3 * SCORES, np.eye(4)[LABELS])),
    "log cosh": (optax.log_cosh, (SCORES, np.eye(4)[LABELS])),
    "cosine distance": (optax.cosine_distance, (SCORES, SCORES[::-1].copy())),
    "Kullback-Leibler": (optax.kl_divergence, (jax.nn.log_softmax(SCORES), jax.nn.softmax(SCORES[::-1]))),
    "triplet margin": (optax.losses.triplet_margin_loss, (SCORES, SCORES[::-1] + 0.1, SCORES[:, ::-1] - 0.2)),
    "connectionist temporal classification": (
        optax.ctc_loss,
        (RNG.standard_normal((2, 6, 4)), np.zeros((2, 6)), np.array([[1, 2, 0], [3, 1, 2]]), np.array([[0, 0, 1], [0, 0, 0]])),
    ),
}


@pytest.mark.parametrize("name", few(LOSSES, 4))
def test_gradient_of_a_loss(name: str) -> None:
    loss, args = LOSSES[name]
    assert_gradient_agrees(lambda *xs: jnp.sum(loss(*xs)), *args)


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd with momentum": lambda rate: optax.sgd(rate, momentum=0.9, nesterov=True),
    "adam": optax.adam,
    "adamw, clipped": lambda rate: optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(rate, weight_decay=0.01)),
    "rmsprop": optax.rmsprop,
    "lion with a schedule": lambda rate: optax.lion(optax.cosine_decay_schedule(rate, 10)),
    "lamb": optax.lamb,
}


def squared(params: Any, x: Any, y: Any) -> Any:
    return jnp.mean((jnp.tanh(x @ params["w"]) @ params["v"] - y) ** 2)


def start() -> dict[str, Any]:
    return {"w": RNG.standard_normal((3, 4)), "v": RNG.standard_normal(4)}


@pytest.mark.parametrize("name", few(OPTIMIZERS, 1))
def test_gradient_through_steps_of_an_optimizer(name: str) -> None:
    """The loss after three steps, by parameters at the start, data and rate: second derivatives, and the updates themselves."""

    def after(params: Any, x: Any, y: Any, rate: Any) -> Any:
        optimizer = OPTIMIZERS[name](rate)

        def step(carry: Any, _: Any) -> tuple[Any, None]:
            params, state = carry
            updates, state = optimizer.update(jax.grad(squared)(params, x, y), state, params)
            return (optax.apply_updates(params, updates), state), None

        (params, _), _ = jax.lax.scan(step, (params, optimizer.init(params)), length=3)
        return squared(params, x, y)

    assert_gradient_agrees(after, start(), X, Y, np.float64(0.05))
