"""Weights that are records: a step of them is the step of their parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tidu_cli as td
from tidu_cli.errors import TransformError

SHAPES = {"w": (3, 2), "layers": {"0": {"b": (2,)}, "1": {"b": ()}}}


def loss(p: Any, x: Any) -> Any:
    return {"loss": np.sum((np.tanh(x @ p["w"] + p["layers"]["0"]["b"]) * p["layers"]["1"]["b"] - 1) ** 2)}


def flat(p: Any, before: str = "p") -> dict[str, Any]:
    """Values of a nest, by dotted names."""
    p = dict(enumerate(p)) if isinstance(p, tuple) else p
    items = [
        flat(value, f"{before}.{key}") if isinstance(value, dict | tuple) else {f"{before}.{key}": value}
        for key, value in p.items()
    ]
    return {key: value for part in items for key, value in part.items()}


def drawn(rng: np.random.Generator, shapes: Any, dtype: str) -> Any:
    return (
        {key: drawn(rng, inner, dtype) for key, inner in shapes.items()}
        if isinstance(shapes, dict)
        else rng.standard_normal(shapes).astype(dtype)
    )


NEST = "{w: T[3,2], layers: {0: {b: T[2]}, 1: {b: T[]}}}"


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("options", [{}, {"clip_norm": 0.5, "accumulate": 2, "weight_decay": 0.1}])
@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_a_step_of_a_record_is_that_of_its_parts(optimizer: str, options: dict[str, Any], dtype: str) -> None:
    rng, narrow = np.random.default_rng(0), {"f16": "f2", "f32": "f4", "f64": "f8"}[dtype]
    values = drawn(rng, SHAPES, narrow)
    whole = td.trace(loss, p=NEST.replace("T", dtype), x=f"{dtype}[4,3]")
    parts = td.trace(
        loss, p={"w": f"{dtype}[3,2]", "layers": {"0": {"b": f"{dtype}[2]"}, "1": {"b": f"{dtype}[]"}}}, x=f"{dtype}[4,3]"
    )
    accumulate = options.get("accumulate")
    states = [
        td.initial_state(whole, ["p"], optimizer, accumulate, {"p": values}),
        td.initial_state(parts, ["p"], optimizer, accumulate, flat(values)),
    ]
    steps = [td.compile(td.step(document, ["p"], (), optimizer, lr=0.05, **options), engine="numpy") for document in (whole, parts)]
    for _ in range(3):
        x = rng.standard_normal((4, 3)).astype(narrow)
        after = [step({**state, "x": x}) for step, state in zip(steps, states, strict=True)]
        states = [{key: results[key] for key in state} for results, state in zip(after, states, strict=True)]
        together = {key: part for name, value in after[0].items() for key, part in _named(name, value)}
        assert set(together) == set(after[1])
        for key, value in after[1].items():
            np.testing.assert_array_equal(together[key], value, err_msg=key)
            assert together[key].dtype == value.dtype


def _named(name: str, value: Any) -> list[tuple[str, Any]]:
    return [(key, part) for key, part in flat(value, name).items()] if isinstance(value, dict | tuple) else [(name, value)]


def test_tuples_and_declared_records_are_trained() -> None:
    """Also fields that the loss does not read, whose gradient is zero."""
    document = td.trace(lambda t: {"loss": t[0] * t[0]}, t="(f64[], f64[2])")
    step = td.step(document, ["t"], optimizer="momentum", lr=0.5)
    state = td.initial_state(document, ["t"], "momentum", values={"t": (3.0, [1.0, 2.0])})
    assert isinstance(state["t"], tuple) and state["momentum.t"][1].tolist() == [0, 0]
    after = td.evaluate(step, state)
    assert after["t"][0] == 0 and after["t"][1].tolist() == [1, 2] and after["momentum.t"][0] == 6


@pytest.mark.parametrize(
    ("type_", "said"),
    [
        ("{w: f64[], n: i32[]}", "input 'p.n' is i32[], and a step trains real floats; make an input of its own of it"),
        ("{w: f64[], n: {z: c128[]}}", "input 'p.n.z' is c128[], and a step trains real floats; make an input of its own of it"),
    ],
)
def test_parts_that_cannot_be_trained_are_named(type_: str, said: str) -> None:
    document = td.trace(lambda p: {"loss": p["w"] * p["w"]}, p=type_)
    with pytest.raises(TransformError) as error:
        td.step(document, ["p"])
    assert str(error.value) == said
