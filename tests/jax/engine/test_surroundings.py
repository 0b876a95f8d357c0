"""What is around a program of XLA's: the user's JAX and arrays, threads, devices."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tidu_cli as tidu
from tidu_cli.errors import EvaluationError, UnknownNameError

pytestmark = [pytest.mark.jax, pytest.mark.usefixtures("jax")]


def document() -> Any:
    return tidu.trace(lambda x, y: (np.sin(x) + y, x), "f64[1000]", "f64[1000]")


def test_inputs_are_the_users_and_results_are_too() -> None:
    x, y = np.linspace(0, 1, 1000), np.ones(1000)
    compiled = tidu.compile(document(), engine="xla")
    names = list(compiled.outputs)
    for _ in range(3):
        results = compiled(x=x, y=y)
        np.testing.assert_array_equal(x, np.linspace(0, 1, 1000))
        np.testing.assert_array_equal(y, np.ones(1000))
        for name in names:
            assert results[name].flags.writeable and results[name].flags.owndata
            results[name][:] = np.nan  # of no concern to inputs and later runs
    assert not np.isnan(compiled(x=x, y=y)[names[1]]).any()


def test_results_have_64_bits_where_jax_has_32(jax: Any) -> None:
    jax.config.update("jax_enable_x64", False)
    try:
        third = tidu.evaluate(tidu.trace(lambda x: x / 3, "f64[]"), {"x": 1.0}, engine="xla")
        assert [y.dtype for y in third.values()] == [np.float64] and list(third.values()) == [1 / 3]
        assert jax.numpy.ones(1, float).dtype == np.float32 and not jax.config.jax_enable_x64
    finally:
        jax.config.update("jax_enable_x64", True)


def test_what_jax_was_told_for_debugging_does_not_concern_us(jax: Any) -> None:
    with jax.debug_nans(True), jax.disable_jit(True), jax.numpy_rank_promotion("raise"):
        results = tidu.evaluate(tidu.trace(lambda x: np.log(x) + np.ones((2, 1)), "f64[3]"), {"x": [-1, 0, 1]}, engine="xla")
    np.testing.assert_array_equal(next(iter(results.values())), [[np.nan, -np.inf, 1.0]] * 2)


def test_threads_share_a_program() -> None:
    compiled = tidu.compile(document(), engine="xla")
    points = [(np.full(1000, k / 50), np.full(1000, float(k))) for k in range(50)]
    with ThreadPoolExecutor(4) as pool:
        sums = list(pool.map(lambda p: next(iter(compiled(x=p[0], y=p[1]).values())), points))
    for (x, y), z in zip(points, sums, strict=True):
        np.testing.assert_allclose(z, np.sin(x) + y, rtol=1e-15)


def test_devices_by_name() -> None:
    given = {"x": np.zeros(1000), "y": np.ones(1000)}
    for name in ("cpu", "cpu:0"):
        assert next(iter(tidu.evaluate(document(), given, engine="xla", device=name).values())).sum() == 1000
    with pytest.raises(EvaluationError, match=r"^no device gpu: JAX finds only cpu here; choose cpu, or install JAX for it"):
        tidu.evaluate(document(), given, engine="xla", device="gpu")
    with pytest.raises(EvaluationError, match=r"^no device cpu:7: there is cpu:0$"):
        tidu.evaluate(document(), given, engine="xla", device="cpu:7")
    for wrong in ("", "gpx", "cpu:", "cpu:-1", "cpu:x"):
        with pytest.raises(UnknownNameError, match=f"^no device '{wrong}'"):
            tidu.evaluate(document(), given, engine="xla", device=wrong)


def test_too_large_a_result_is_refused_before_it_runs() -> None:
    big = tidu.trace(lambda x: x + np.zeros((10**4, 10**4)), "f64[]")
    with pytest.raises(EvaluationError, match="evaluation would take about"):
        tidu.evaluate(big, {"x": 1.0}, engine="xla", max_memory="10M")
