"""300 functions of JAX's, read from their jaxprs and from the StableHLO that JAX lowers them to."""

from __future__ import annotations

import jax
import pytest

from tests.jax.functions import numpy_functions, other_functions
from tests.jax.functions.comparing import differences
from tidu_cli.errors import TiduError

FUNCTIONS = numpy_functions.FUNCTIONS | other_functions.FUNCTIONS

REFUSED: dict[tuple[str, str], str] = {}
"""What is refused: the function, and from what; with what the message says."""


def test_there_are_300() -> None:
    assert len(FUNCTIONS) >= 300
    assert len({name for name, _ in REFUSED}) <= 10


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function(name: str) -> None:
    with jax.enable_x64(True):
        function = FUNCTIONS[name]
        due = function.of_jax()
        for source, read in (("jaxpr", function.from_jaxpr), ("StableHLO", function.from_stablehlo)):
            reason = REFUSED.get((name, source))
            if reason is not None:
                with pytest.raises(TiduError, match=reason) as caught:
                    function.of_tidu(read())
                assert "\n" not in str(caught.value)
                continue
            found = differences(due, function.of_tidu(read()), function.tolerance)
            assert not found, f"{source}: {found}"
