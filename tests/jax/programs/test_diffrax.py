"""Solutions of differential equations: diffrax, and jax.experimental.ode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffrax
import jax
import numpy as np
import pytest

jax.config.update("jax_enable_x64", True)
from jax.experimental.ode import odeint  # noqa: E402

import tidu_cli as tidu  # noqa: E402
from tests.jax.programs.gradients import assert_gradient_agrees, assert_tangent_agrees  # noqa: E402
from tidu_cli.errors import TiduError  # noqa: E402

pytestmark = pytest.mark.jax
jnp = jax.numpy

RATES, START = np.array([1.1, 0.4, 0.1, 0.4]), np.array([10.0, 5.0])
TIMES = np.linspace(0.0, 1.0, 6)


def prey_and_predators(t: Any, y: Any, rates: Any) -> Any:
    a, b, c, d = rates
    return jnp.stack([a * y[0] - b * y[0] * y[1], c * y[0] * y[1] - d * y[1]])


def solved(adjoint: Any, solver: Any, control: Any, dt0: float | None = 0.1) -> Callable[..., Any]:
    """The sum of sines of a solution at some times, as a function of rates and start."""

    def loss(rates: Any, start: Any) -> Any:
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(prey_and_predators), solver, 0.0, 1.0, dt0, start, rates,
            saveat=diffrax.SaveAt(ts=TIMES), stepsize_controller=control, adjoint=adjoint, max_steps=64,
        )  # fmt: skip
        return jnp.sum(jnp.sin(solution.ys))

    return loss


@pytest.fixture(autouse=True)
def _without_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with EQX_ON_ERROR=off: checks that raise call back into Python, which a graph cannot."""
    monkeypatch.setattr("equinox._errors.EQX_ON_ERROR", "off")


ADAPTIVE = diffrax.PIDController(rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "solver", [diffrax.Euler(), pytest.param(diffrax.Tsit5(), marks=pytest.mark.campaign)], ids=["Euler", "Tsit5"]
)
def test_forward_mode_of_steps_of_one_size(solver: Any) -> None:
    assert_tangent_agrees(solved(diffrax.ForwardMode(), solver, diffrax.ConstantStepSize()), RATES, START)


def test_forward_mode_of_steps_that_adapt() -> None:
    assert_tangent_agrees(solved(diffrax.ForwardMode(), diffrax.Tsit5(), ADAPTIVE, None), RATES, START)


@pytest.mark.campaign
def test_forward_mode_of_an_implicit_solver() -> None:
    assert_tangent_agrees(solved(diffrax.ForwardMode(), diffrax.Kvaerno3(), ADAPTIVE, None), RATES, START)


@pytest.mark.campaign
def test_reverse_mode_of_a_bounded_loop() -> None:
    assert_gradient_agrees(solved(diffrax.DirectAdjoint(), diffrax.Tsit5(), ADAPTIVE, None), RATES, START)


def test_reverse_mode_of_checkpoints_is_refused() -> None:
    with jax.enable_x64(True):
        document = tidu.from_jax(solved(diffrax.RecursiveCheckpointAdjoint(), diffrax.Tsit5(), ADAPTIVE, None), RATES, START)
        with pytest.raises(TiduError, match="use scan"):
            tidu.grad(document, "rates")


@pytest.mark.campaign
def test_odeint_forward() -> None:
    def loss(start: Any, rates: Any) -> Any:
        return jnp.sum(jnp.sin(odeint(lambda y, t, rates: prey_and_predators(t, y, rates), start, TIMES, rates)))

    with jax.enable_x64(True):
        document = tidu.from_jax(loss, START, RATES)
        (value,) = tidu.evaluate(document, {"start": START, "rates": RATES}).values()
        np.testing.assert_allclose(value, loss(START, RATES), rtol=1e-12)
        tangent = tidu.evaluate(tidu.jvp(document, "rates"), {"start": START, "rates": RATES, "rates@1": np.eye(4)[0]})
        backward = jax.grad(loss, 1)(START, RATES)
        np.testing.assert_allclose(next(iter(tangent.values())), backward[0], rtol=1e-4)  # that solves another equation, backwards
