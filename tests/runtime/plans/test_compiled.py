"""Compiled functions: a document's outputs as a function of its inputs."""

from __future__ import annotations

import numpy as np
import pytest

import tidu_cli as tidu
from tidu_cli.errors import EvaluationError, UnknownNameError

ROSENBROCK = tidu.load("samples/rosenbrock.json")


def test_compiled() -> None:
    gradient = tidu.compile(tidu.grad(ROSENBROCK, ["x", "y"]))
    assert gradient.inputs == {"x": "f64[]", "y": "f64[]"}
    assert gradient.outputs == {"x@-1": "f64[]", "y@-1": "f64[]"}
    assert {k: float(v) for k, v in gradient(x=2.0, y=1.0).items()} == {"x@-1": 2402.0, "y@-1": -600.0}
    assert {k: float(v) for k, v in gradient({"x": 2, "y": 1}).items()} == {"x@-1": 2402.0, "y@-1": -600.0}


def test_into_arrays_of_the_caller() -> None:
    step = tidu.compile(tidu.trace(lambda x: {"x2": x * 2, "s": x.sum()}, x="f64[3]"))
    x = np.ones(3)
    for _ in range(3):
        results = step(x=x, out={"x2": x})  # an input, too
        assert results["x2"] is x
    assert x.tolist() == [8, 8, 8] and results["s"] == 12
    with pytest.raises(UnknownNameError, match="no output 'z'"):
        step(x=x, out={"z": x})
    for wrong in (np.ones(2), np.ones(3, np.float32), [1.0, 2.0, 3.0]):
        with pytest.raises(EvaluationError, match=r"output x2: its array must be of float64\[3\], got "):
            step(x=x, out={"x2": wrong})
    x.flags.writeable = False
    with pytest.raises(EvaluationError, match="read-only"):
        step(x=x, out={"x2": x})


def test_memory_is_bounded() -> None:
    with pytest.raises(EvaluationError, match="more than the limit"):
        tidu.compile(tidu.trace(lambda x: {"y": x + 1}, x="f64[1000]"))(x=np.ones(1000), max_memory="1K")
