"""Log-densities of numpyro: what samplers differentiate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import numpyro
import pytest

jax.config.update("jax_enable_x64", True)
import numpyro.distributions as dist  # noqa: E402
from numpyro.infer.reparam import TransformReparam  # noqa: E402
from numpyro.infer.util import log_density, potential_energy  # noqa: E402

from tests.jax.programs.gradients import assert_gradient_agrees  # noqa: E402
from tests.tiers import few  # noqa: E402

pytestmark = pytest.mark.jax
jnp = jax.numpy

RNG = np.random.default_rng(2)
EFFECTS, ERRORS = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])


def eight_schools(errors: Any, effects: Any) -> None:
    """A hierarchical model."""
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", 8):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("effects", dist.Normal(theta, errors), obs=effects)


def off_centre(errors: Any, effects: Any) -> None:
    """The same, with effects of schools as they are apart from mean and scale."""
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", 8), numpyro.handlers.reparam(config={"theta": TransformReparam()}):
        scaled = dist.TransformedDistribution(dist.Normal(0.0, 1.0), dist.transforms.AffineTransform(mu, tau))
        theta = numpyro.sample("theta", scaled)
        numpyro.sample("effects", dist.Normal(theta, errors), obs=effects)


def regression(x: Any, y: Any) -> None:
    """A logistic regression with correlated coefficients."""
    scale = numpyro.sample("scale", dist.Gamma(2.0, 1.5).expand([3]).to_event(1))
    factor = numpyro.sample("factor", dist.LKJCholesky(3, 2.0))
    w = numpyro.sample("w", dist.MultivariateNormal(jnp.zeros(3), scale_tril=scale[:, None] * factor))
    numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)


def clusters(x: Any) -> None:
    """A mixture, of which the labels are summed over."""
    weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(3)))
    means = numpyro.sample("means", dist.StudentT(4.0, 0.0, 3.0).expand([3]).to_event(1))
    spread = numpyro.sample("spread", dist.InverseGamma(3.0, 2.0))
    mixture = dist.MixtureSameFamily(dist.Categorical(weights), dist.Normal(means, spread))
    numpyro.sample("x", mixture, obs=x)


def counts(x: Any, y: Any) -> None:
    """Counts with more spread than a Poisson distribution has, and with too many zeros."""
    w = numpyro.sample("w", dist.Laplace(0, 1).expand([2]).to_event(1))
    gate = numpyro.sample("gate", dist.Beta(1.5, 3.0))
    spread = numpyro.sample("spread", dist.LogNormal(0, 1))
    numpyro.sample("y", dist.ZeroInflatedDistribution(dist.NegativeBinomial2(jnp.exp(x @ w), spread), gate=gate), obs=y)


def chain(x: Any) -> None:
    """A walk, in a loop."""
    scale = numpyro.sample("scale", dist.Exponential(1.0))
    walk = numpyro.sample("walk", dist.GaussianRandomWalk(scale, num_steps=6))
    numpyro.sample("x", dist.VonMises(walk, 4.0).to_event(1), obs=x)


MODELS: dict[str, tuple[Callable[..., None], tuple[Any, ...], dict[str, tuple[int, ...]]]] = {
    "eight schools": (eight_schools, (ERRORS, EFFECTS), {"mu": (), "tau": (), "theta": (8,)}),
    "regression": (
        regression,
        (RNG.standard_normal((10, 3)), RNG.integers(0, 2, 10)),
        {"scale": (3,), "factor": (3,), "w": (3,)},
    ),
    "clusters": (clusters, (RNG.standard_normal(12),), {"weights": (2,), "means": (3,), "spread": ()}),
    "counts": (counts, (RNG.standard_normal((9, 2)), RNG.integers(0, 4, 9)), {"w": (2,), "gate": (), "spread": ()}),
    "walk": (chain, (RNG.uniform(-2, 2, 6),), {"scale": (), "walk": (6,)}),
    "eight schools, off centre": (off_centre, (ERRORS, EFFECTS), {"mu": (), "tau": (), "theta_base": (8,)}),
}
"""Models, their data, and the shapes of their unconstrained parameters."""


@pytest.mark.parametrize("name", few(MODELS, 1))
def test_gradient_of_the_potential_energy(name: str) -> None:
    model, data, shapes = MODELS[name]
    params = {k: RNG.standard_normal(shape) / 2 for k, shape in shapes.items()}
    assert_gradient_agrees(lambda params: potential_energy(model, data, {}, params), params)


def test_gradient_of_a_log_density() -> None:
    params = {"mu": np.float64(1.5), "tau": np.float64(2.5), "theta": RNG.standard_normal(8)}
    assert_gradient_agrees(
        lambda params, errors, effects: log_density(eight_schools, (errors, effects), {}, params)[0], params, ERRORS, EFFECTS
    )
