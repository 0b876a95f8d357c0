"""Gradients in XLA take no more operations and bytes than those of `jax.grad`, as XLA counts them: `benchmarks/xla.py`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import jax
import pytest

pytestmark = pytest.mark.jax

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "xla.py"
MOST = 1.1


def load() -> Any:
    spec = importlib.util.spec_from_file_location("xla", BENCHMARK)
    assert spec is not None and spec.loader is not None
    module = sys.modules["xla"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


XLA = load()


CHEAP = ("gmm-test",)
REST = [pytest.param(name, marks=pytest.mark.campaign) for name in XLA.PROBLEMS if name not in CHEAP]


@pytest.mark.parametrize("name", [*CHEAP, *REST])
def test_gradients_take_what_those_of_jax_take(name: str) -> None:
    with jax.enable_x64(True):
        costs = {way: XLA.costs(program) for way, (program, _) in XLA.compiled(XLA.PROBLEMS[name]()).items()}
    operations, accessed = costs.pop("jax.grad")
    for way, ours in costs.items():
        assert ours[0] <= MOST * operations, f"{way}: {ours[0]} operations, jax.grad {operations}"
        assert ours[1] <= MOST * accessed, f"{way}: {ours[1]} bytes, jax.grad {accessed}"
