"""Programs in files: text of StableHLO, and what `jax.export` writes. The gradient is derived from these alone."""

from __future__ import annotations

import jax
import numpy as np
import pytest

jax.config.update("jax_enable_x64", True)

from jax import numpy as jnp  # noqa: E402
from numpyro.infer.util import potential_energy  # noqa: E402

from tests.jax.programs import test_equinox, test_flax, test_numpyro, test_optax, test_plain  # noqa: E402
from tests.jax.programs.gradients import assert_gradients_of_files_agree  # noqa: E402
from tests.tiers import few  # noqa: E402

pytestmark = pytest.mark.jax

EQUINOX = (
    "GRUCell",
    "Conv2d in groups, dilated",
    "ConvTranspose2d",
    "MultiheadAttention",
    "MaxPool2d of windows that overlap",
    "Dropout",
)
FLAX = ("Embed", "Conv with strides", "BatchNorm", "LSTM with one product", "GRU of other lengths", "encoder")


@pytest.mark.parametrize("name", few(EQUINOX, 1))
def test_a_layer_of_equinox(name: str) -> None:
    assert_gradients_of_files_agree(*test_equinox.CASES[name]())


@pytest.mark.parametrize("name", few(FLAX, 1))
def test_a_layer_of_flax(name: str) -> None:
    assert_gradients_of_files_agree(*test_flax.CASES[name]())


@pytest.mark.parametrize("name", few(("eight schools", "regression", "clusters"), 1))
def test_a_model_of_numpyro(name: str) -> None:
    model, data, shapes = test_numpyro.MODELS[name]
    params = {k: np.random.default_rng(2).standard_normal(shape) / 2 for k, shape in shapes.items()}
    assert_gradients_of_files_agree(lambda params: potential_energy(model, data, {}, params), params)


@pytest.mark.parametrize("name", few(("huber", "connectionist temporal classification"), 1))
def test_a_loss_of_optax(name: str) -> None:
    loss, args = test_optax.LOSSES[name]
    assert_gradients_of_files_agree(lambda *xs: jnp.sum(loss(*xs)), *args)


@pytest.mark.campaign
def test_a_transformer() -> None:
    params = {"embedding": test_plain.normal(11, 8), "place": test_plain.normal(5, 8), "layers": [test_plain.parameters()]}
    assert_gradients_of_files_agree(test_plain.transformer, params, test_plain.TOKENS)
