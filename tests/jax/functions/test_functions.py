"""300 functions of JAX's, read from their jaxprs and from the StableHLO that JAX lowers them to."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tests.jax.functions import numpy_functions, other_functions
from tests.jax.functions.comparing import differences
from tests.stablehlo.claims.written import in_this_process
from tests.tiers import few
from tidu_cli.errors import TiduError

pytestmark = pytest.mark.jax

FUNCTIONS = numpy_functions.FUNCTIONS | other_functions.FUNCTIONS

STEPS = "how often it runs is not known before"

REFUSED = {
    ("lax.betainc", "StableHLO"): STEPS,
    ("special.betainc", "StableHLO"): STEPS,
    ("special.expi", "StableHLO"): STEPS,
    ("special.gammainc", "StableHLO"): STEPS,
    ("special.gammaincc", "StableHLO"): STEPS,
}
"""What is refused: the function, and from what; with what the message says. JAX lowers incomplete gamma and beta functions to loops
that run until they converge, which have no reverse mode."""

LOST = {
    ("jnp.ldexp", "StableHLO"): "JAX has a rule of its own for it, and a module only its bits",
    ("lax.stop_gradient", "StableHLO"): "nothing is left of it in a module",
}
"""Whose derivatives are others, since a module does not say what they are; their values are right."""

GUARDED = {("special.spence", "StableHLO")}
"""Whose VJP is NaN in JAX where its JVP is finite: a branch not taken has an infinite slope. Modules are read with guards."""


def test_there_are_300() -> None:
    assert len(FUNCTIONS) >= 300
    assert len({name for name, _ in [*REFUSED, *LOST]}) <= 10


@pytest.fixture(autouse=True)
def _parsed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidu_cli.adapters.stablehlo.files.parsed", in_this_process)


@pytest.mark.parametrize("name", few(FUNCTIONS, 5))
def test_a_function(name: str) -> None:
    with jax.enable_x64(True):
        function = FUNCTIONS[name]
        due = function.of_jax()
        for source, read in (("jaxpr", function.from_jaxpr), ("StableHLO", function.from_stablehlo)):
            if (name, source) in REFUSED:
                with pytest.raises(TiduError, match=REFUSED[name, source]) as caught:
                    function.of_tidu(read())
                assert "\n" not in str(caught.value)
                continue
            ours = function.of_tidu(read())
            if (name, source) in LOST:
                assert differences(due, ours, function.tolerance)
                due, ours = ({"value": of["value"]} for of in (due, ours))
            if (name, source) in GUARDED:
                assert np.isnan(due["vjp"][0]).any() and all(np.isfinite(x).all() for of in ours.values() for x in of)
                due = {k: [np.where(np.isnan(y), z, y) for y, z in zip(of, ours[k], strict=True)] for k, of in due.items()}
            told = differences(due, ours, function.tolerance)
            assert not told, f"{source}: {told}"
