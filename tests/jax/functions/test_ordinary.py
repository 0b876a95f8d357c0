"""Ordinary functions as JAX runs them, with `jax.numpy` in place of NumPy: its gradients are those of what is built.

JAX runs those that change no arrays and branch on no values; where they changed some unnoticed, its values are not NumPy's.
"""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.jax.lowering.compiled import compiled
from tests.ordinary import test_ordinary as ordinary
from tests.tiers import campaign, few

pytestmark = [pytest.mark.jax, pytest.mark.usefixtures("jax")]

COMPARED = {
    "dynamics": 7,
    "kinematics": 4,
    "filters": 4,
    "finance": 5,
    "statistics": 8,
    "layers": 5,
    "physics": 10,
    "numerics": 8,
    "earth": 6,
    "life": 9,
    "images": 8,
}
"""How many functions of each field JAX runs, at least, of a third of them; a campaign has them all."""

MOST = 1
"""How many of each are compared in `make check`."""

ANOTHER = ("phylogenetic_gls",)
"""SciPy's factors of Cholesky read one triangle; JAX's are those of the mean of a matrix and its transpose."""


def with_jax(field: str) -> ModuleType:
    """The module of a field anew, in which what is of NumPy or SciPy is JAX's."""
    import jax
    import jax.scipy.integrate
    import jax.scipy.linalg
    import jax.scipy.signal
    import jax.scipy.special

    spec = importlib.util.find_spec(f"tests.ordinary.fields.{field}")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    names = vars(module)
    for name, value in list(names.items()):
        if value is np:
            names[name] = jax.numpy
        elif isinstance(value, ModuleType) and value.__name__.startswith("scipy."):
            names[name] = getattr(jax.scipy, value.__name__.removeprefix("scipy."), None)
        elif callable(value) and value is getattr(np, name, None):
            names[name] = getattr(jax.numpy, name, None)
        elif callable(value) and (getattr(value, "__module__", None) or "scipy").startswith("scipy"):
            parts = (jax.scipy.special, jax.scipy.linalg, jax.scipy.signal, jax.scipy.integrate)
            names[name] = next((getattr(p, name) for p in parts if hasattr(p, name)), None)
        elif isinstance(value, np.ufunc):
            names[name] = getattr(jax.scipy.special, name, None)
    return module


def jaxs(function: Callable[..., Any], given: Mapping[str, Any]) -> tuple[list[Any], list[Any]] | None:
    """Values and gradients that JAX gives; None where it does not run the function."""
    import jax

    moving, fixed = ordinary.split(given)

    def outputs(values: list[Any]) -> list[Any]:
        rest = iter(values)
        arguments = {k: ordinary.mapped(lambda _: next(rest), v) for k, v in moving.items()}
        return [jax.numpy.asarray(x, float) for x in ordinary.leaves(function(**arguments, **copy.deepcopy(fixed)))]

    def weighted(values: list[Any]) -> Any:
        results = outputs(values)
        return sum(jax.numpy.sum(w * y) for w, y in zip(ordinary.weights_of(results), results, strict=True)), results

    try:
        gradients, results = compiled(jax.grad(weighted, has_aux=True))([jax.numpy.asarray(x) for x in ordinary.leaves(moving)])
    except (TypeError, ValueError, AttributeError, NotImplementedError, IndexError):
        return None
    return list(map(np.asarray, results)), list(map(np.asarray, gradients))


@pytest.mark.parametrize("field", few(ordinary.FIELDS, 5))
def test_gradients_are_jaxs(field: str) -> None:
    module = with_jax(field)
    compared = 0
    plain = [(function, given) for of, function, given in ordinary.EXAMPLES if of == field]
    pairs = list(zip(plain, module.EXAMPLES, strict=True))
    for (function, given), (as_written, _) in pairs if campaign() else pairs[::3]:
        if compared == MOST and not campaign():
            break
        by_jax = jaxs(as_written, given)
        expected = ordinary.results(function(**copy.deepcopy(given)))
        if by_jax is None or function.__name__ in ANOTHER:
            continue
        if not all(np.allclose(x, y, 1e-9, 1e-9) for x, y in zip(by_jax[0], expected, strict=True)):
            continue
        compared += 1
        document = ordinary.build(function, copy.deepcopy(given))
        gradients = ordinary.vjp(document, list(ordinary.leaves(ordinary.split(given)[0])), ordinary.weights_of(expected))
        for x, y in zip(gradients, by_jax[1], strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9 * np.abs(y).max(initial=1e-3), err_msg=function.__name__)
    assert compared >= (COMPARED[field] if campaign() else MOST), compared
