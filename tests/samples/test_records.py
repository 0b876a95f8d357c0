"""The samples of records and times: values and derivatives of all orders against their formulas, computed with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.samples.test_graphs import derive, load
from tidu_cli.graph.keys import parse_key
from tidu_cli.graph.text import parse_value_type
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.runtime.evaluate import evaluate
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

HOUR = np.timedelta64(1, "h") / np.timedelta64(1, "ms")


def values(document, given):
    return {str(k): v for k, v in evaluate(document.head, {parse_key(k): x for k, x in given.items()}).items()}


@pytest.fixture(params=range(3))
def day(request):
    """Events of a day, when they were due, and their delays in hours."""
    rng = np.random.default_rng(request.param)
    due = np.datetime64("2026-01-01", "ms") + rng.integers(0, 86_400_000, 4).astype("m8[ms]")
    at = due + rng.integers(-20_000_000, 20_000_000, 4).astype("m8[ms]")
    weight = rng.uniform(0.5, 2, 4)
    return {"events": {"at": at, "weight": weight}, "due": due}, (at - due) / np.timedelta64(1, "h"), weight


def test_lateness(day):
    given, hours, weight = day
    document = load("events.json")
    np.testing.assert_allclose(values(materialize(document), given)["loss"], np.sum(weight * hours**2), rtol=1e-13)
    cotangents = values(derive(document, "events due", "T"), {**given, "loss@-1": 1})
    np.testing.assert_allclose(cotangents["events@-1"]["at"], 2 * weight * hours / HOUR, rtol=1e-13)
    np.testing.assert_allclose(cotangents["events@-1"]["weight"], hours**2, rtol=1e-13)
    np.testing.assert_allclose(cotangents["due@-1"], -2 * weight * hours / HOUR, rtol=1e-13)


TANGENTS = {
    "duration[h]": 1,
    "duration[ms]": HOUR,
    "duration[m]": 60,
    "{instant: {periods: f64}}": HOUR,
    "{instant: {periods: duration[m]}}": 60,
}


@pytest.mark.parametrize("text", TANGENTS)
def test_units_of_gradients(day, text):
    """The gradient per unit of a tangent type is that per hour over how many of them an hour has."""
    given, hours, weight = day
    document = load("events.json")
    type_ = parse_value_type(f"{{at: {text}}}", vocabulary(document.cases).records, open_shapes=True)
    linear = linearize(document, [parse_key("events")], tangent_types={parse_key("events"): type_})
    at = values(materialize(transpose(linear)), {**given, "loss@-1": 1})["events@-1"]["at"]
    at = at["instant"]["periods"] if isinstance(at, dict) else at
    np.testing.assert_allclose(at, 2 * weight * hours / TANGENTS[text], rtol=1e-13)


@pytest.mark.parametrize("back", [(), ("T",)], ids=["forward", "reverse"])
def test_third_order(day, back):
    """d³ of Σ w·h² along (dw₁, dh₁), (dw₂, dh₂), (dw₃, dh₃) is 2·Σ (dw₁·dh₂·dh₃ + dh₁·dw₂·dh₃ + dh₁·dh₂·dw₃)."""
    given, *_ = day
    rng = np.random.default_rng(7)
    moved = [{"at": rng.normal(size=4), "weight": rng.normal(size=4)} for _ in range(3)]
    # h is in hours, tangents of `at` are in ms.
    due = 2 * sum(
        np.sum(np.prod([d["weight"] if k == j else d["at"] / HOUR for k, d in enumerate(moved)], axis=0)) for j in range(3)
    )
    document = derive(load("events.json"), "events", "events", "events", *back)
    if not back:
        results = values(document, {**given, **{f"events@{k + 1}": d for k, d in enumerate(moved)}})
        np.testing.assert_allclose(results["loss@1@2@3"], due, rtol=1e-11)
    else:
        cotangent = values(document, {**given, "events@1": moved[0], "events@2": moved[1], "loss@1@2@-3": 1.0})["events@-3"]
        total = sum(np.sum(cotangent[name] * moved[2][name]) for name in ("at", "weight"))
        np.testing.assert_allclose(total, due, rtol=1e-11)


def test_segment():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=2), rng.normal(size=2)
    given = {"s": {"a": dict(zip("xy", a, strict=True)), "b": dict(zip("xy", b, strict=True))}}
    document = load("segment.json")
    results = values(materialize(document), given)
    np.testing.assert_allclose(results["length"], np.hypot(*(b - a)), rtol=1e-14)
    np.testing.assert_allclose([results["middle"]["x"], results["middle"]["y"]], (a + b) / 2, rtol=1e-14)
    back = values(derive(document, "s", "T"), {**given, "length@-1": 2.0, "middle@-1": {"x": 3.0, "y": None}})["s@-1"]
    unit = 2 * (b - a) / np.hypot(*(b - a))
    np.testing.assert_allclose([back["b"]["x"], back["b"]["y"]], unit + np.array([1.5, 0]), rtol=1e-14)
    np.testing.assert_allclose([back["a"]["x"], back["a"]["y"]], -unit + np.array([1.5, 0]), rtol=1e-14)
    hessian = values(
        derive(document, "s", "T", "s"),
        {**given, "length@-1": 1.0, "middle@-1": {"x": None, "y": None}, "s@2": {"a": None, "b": {"x": 1.0, "y": 0.0}}},
    )["s@-1@2"]
    # The curvature of the distance: (1 - u uᵀ) / |b - a|.
    u = (b - a) / np.hypot(*(b - a))
    curved = (np.array([1.0, 0]) - u * u[0]) / np.hypot(*(b - a))
    np.testing.assert_allclose([hessian["b"]["x"], hessian["b"]["y"]], curved, rtol=1e-13)
    np.testing.assert_allclose([hessian["a"]["x"], hessian["a"]["y"]], -curved, rtol=1e-13)
