"""What `make test` tries of JAX where it is installed: values of some of its functions, and of some engines' programs."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

pytestmark = [pytest.mark.jax, pytest.mark.sample]

AT_ONCE = 16


def test_values_of_functions_of_jax(jax: Any) -> None:
    """Every sixth of those that `tests.jax.functions` compares."""
    import tidu_cli
    from tests.jax.functions import numpy_functions, other_functions
    from tests.jax.functions.comparing import differences
    from tests.jax.lowering.compiled import compiled

    leaves = jax.tree_util.tree_leaves
    functions = islice({**numpy_functions.FUNCTIONS, **other_functions.FUNCTIONS}.items(), 0, None, 6)
    while some := dict(islice(functions, AT_ONCE)):
        of = list(some.values())
        run = compiled(lambda given, of=of: [leaves(f.function(*xs)) for f, xs in zip(of, given, strict=True)])
        for (name, function), due in zip(some.items(), run([f.arguments for f in of]), strict=True):
            given = {str(k): x for k, x in enumerate(function.arguments)}
            values = list(tidu_cli.evaluate(function.from_jaxpr(), given).values())
            told = differences({"value": [np.asarray(y) for y in due]}, {"value": values}, function.tolerance)
            assert not told, f"{name}: {told}"
