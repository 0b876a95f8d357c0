"""A step as a document is the step that NumPy takes along tidu's gradient, by the formulas of PyTorch's documentation."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidu_cli as td
from tests.programs import needs
from tests.tiers import examples
from tidu_cli.api.training import OPTIMIZERS

SAMPLES = Path(__file__).parents[3] / "samples"
WEIGHTS = ("p.w", "p.b", "p.s")
SHAPES = {"p.w": (3, 2), "p.b": (2,), "p.s": ()}
NUMPY = {"f32": "f4", "f64": "f8"}
Arrays = dict[str, Any]


def loss(p: Any, x: Any) -> Any:
    return {"h": np.sum(x), "loss": np.sum((np.tanh(x @ p["w"] + p["b"]) * p["s"] - 1) ** 2)}


def document(dtype: str) -> td.Document:
    types = {"w": f"{dtype}[3,2]", "b": f"{dtype}[2]", "s": f"{dtype}[]"}
    return td.trace(loss, p=types, x=f"{dtype}[4,3]")


def drawn(seed: int, dtype: str, shapes: Mapping[str, tuple[int, ...]] = SHAPES) -> Arrays:
    rng = np.random.default_rng(seed)
    return {key: rng.standard_normal(shape).astype(NUMPY[dtype]) for key, shape in shapes.items()}


def sgd(w: Any, g: Any, kept: Arrays, step: int, lr: float, decay: float) -> Any:
    return w - lr * (g + decay * w)


def momentum(w: Any, g: Any, kept: Arrays, step: int, lr: float, decay: float) -> Any:
    kept["momentum"] = 0.9 * kept.get("momentum", 0.0) + g + decay * w
    return w - lr * kept["momentum"]


def adam(w: Any, g: Any, kept: Arrays, step: int, lr: float, decay: float, decoupled: bool = False) -> Any:
    g = g if decoupled else g + decay * w
    kept["mu"] = 0.9 * kept.get("mu", 0.0) + 0.1 * g
    kept["nu"] = 0.999 * kept.get("nu", 0.0) + 0.001 * g * g
    mu, nu = kept["mu"] / (1 - 0.9**step), kept["nu"] / (1 - 0.999**step)
    return w - lr * decay * w * decoupled - lr * mu / (np.sqrt(nu) + 1e-8)


def adamw(*args: Any) -> Any:
    return adam(*args, decoupled=True)


RULES: dict[str, Callable[..., Any]] = {"sgd": sgd, "momentum": momentum, "adam": adam, "adamw": adamw}


def by_numpy(gradient: Any, name: str, weights: Arrays, batches: list[Any], options: Mapping[str, Any]) -> Arrays:
    """The weights after steps along the means of gradients of `accumulate` batches each, in f64."""
    w = {key: x.astype("f8") for key, x in weights.items()}
    kept: dict[str, Arrays] = {key: {} for key in w}
    n, clip = options["accumulate"] or 1, options["clip_norm"]
    decay = {"adamw": 0.01}.get(name, 0.0) if options["weight_decay"] is None else options["weight_decay"]
    for k in range(len(batches) // n):
        each = [gradient({**w, "x": x.astype("f8")}) for x in batches[k * n : k * n + n]]
        mean = {key: sum(g[f"{key}@-1"] for g in each) / n for key in w}
        norm = math.sqrt(sum(float(np.sum(g * g)) for g in mean.values()))
        scale = 1.0 if clip is None else min(1.0, clip / (norm + 1e-6))
        w = {key: RULES[name](w[key], mean[key] * scale, kept[key], k + 1, 0.05, decay) for key in w}
    return w


GRADIENT = td.compile(td.grad(document("f64"), WEIGHTS, "loss"), engine="numpy")


@given(
    st.sampled_from(sorted(OPTIMIZERS)),
    st.sampled_from(["f32", "f64"]),
    st.sampled_from([None, 0.0, 0.1, 100.0]),
    st.sampled_from([None, 0.0, 0.1]),
    st.sampled_from([None, 1, 2, 3]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=examples(200, check=40), deadline=None)
def test_steps_are_those_of_numpy(
    name: str, dtype: str, clip_norm: float | None, weight_decay: float | None, accumulate: int | None, fixed: bool, seed: int
) -> None:
    options = {"clip_norm": clip_norm, "weight_decay": weight_decay, "accumulate": accumulate}
    d = document(dtype)
    step = td.step(d, "p", "loss", name, 0.05 if fixed else None, **options)
    run = td.compile(step, engine="numpy")
    weights = drawn(seed, dtype)
    batches = [drawn(seed + k, dtype, {"x": (4, 3)})["x"] for k in range(6)]
    state = td.initial_state(d, "p", name, accumulate, weights) | ({} if fixed else {"lr": np.array(0.05, NUMPY[dtype])})
    for x in batches:
        state |= {key: y for key, y in run({"x": x, **state}).items() if key in state}
    expected = by_numpy(GRADIENT, name, weights, batches, options)
    for key in WEIGHTS:
        assert state[key].dtype == NUMPY[dtype]
        np.testing.assert_allclose(state[key], expected[key], 1e-9 if dtype == "f64" else 2e-3, 1e-11 if dtype == "f64" else 1e-4)


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_what_is_fed_back_has_the_names_and_types_of_inputs(name: str) -> None:
    step = td.step(document("f32"), "p", ["loss", "h"], name, accumulate=2, clip_norm=1.0)
    inputs = {i.key: i.type for i in step.head.inputs}
    first, second, *fed = step.head.outputs
    assert [str(first.key), str(second.key)] == ["loss", "h"]
    assert {o.key: o.type for o in fed} == {key: type_ for key, type_ in inputs.items() if str(key) not in ("x", "lr")}
    state = td.initial_state(document("f32"), "p", name, 2, drawn(0, "f32"))
    assert state.keys() == {str(o.key) for o in fed}


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_the_samples_are_the_optimizers_that_have_names(name: str) -> None:
    d = document("f64")
    sample = td.load(SAMPLES / "optimizers" / f"{name}.json")
    assert td.diff(td.step(d, "p", "loss", sample, 0.1), td.step(d, "p", "loss", name, 0.1), exact=True)["same"]


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_without_a_slope_nothing_moves_and_nothing_is_nan(name: str, dtype: str) -> None:
    """Zero gradients are poles of norms and of square roots, and 1e-8 is none of the floats of 16 bits."""
    d = td.formula("loss = sum(w * z)", w=f"{dtype}[3]", z=f"{dtype}[3]")
    step = td.step(d, "w", (), name, 0.5, clip_norm=1.0, weight_decay=0.0)
    w = td.evaluate(td.formula("y = convert(x, " + dtype + ")", x="f64[3]"), x=[1.0, 2.0, 3.0])["y"]
    state = td.initial_state(d, "w", name, values={"w": w})
    assert all(x.dtype == "f4" for key, x in state.items() if key.endswith(".w")) or dtype == "f64"
    after = td.evaluate(step, {"z": 0 * w, **state})
    assert np.array_equal(after["w"], w) and after["w"].dtype == w.dtype
    assert all(np.all(np.isfinite(np.asarray(x, "f8"))) for x in after.values())


def test_a_weight_that_nothing_depends_on_decays_alone() -> None:
    d = td.trace(lambda w, u: {"loss": np.sum(w * w)}, "f64[2]", "f64[3]")
    step = td.step(d, ["w", "u"], (), "adamw", 0.1, clip_norm=1.0, weight_decay=0.5)
    state = td.initial_state(d, ["w", "u"], "adamw", values={"w": np.ones(2), "u": np.ones(3)})
    np.testing.assert_allclose(td.evaluate(step, state)["u"], 0.95 * np.ones(3))


def test_gradients_are_clipped_together() -> None:
    """Of norm 5 in all, to norm 1."""
    d = td.formula("loss = 3 * a + 4 * sum(b)", a="f64[]", b="f64[1]")
    moved = td.evaluate(td.step(d, ["a", "b"], lr=1.0, clip_norm=1.0), a=0.0, b=[0.0])
    np.testing.assert_allclose([moved["a"], moved["b"][0]], [-0.6, -0.8], 1e-6)


def of_scalars() -> tuple[td.Document, td.Document, Arrays]:
    d = td.formula("loss = (a * x + b - 1)**2", a="f64[]", b="f64[]", x="f64[]")
    state = td.initial_state(d, ["a", "b"], "adamw", 2, {"a": np.float64(0.5), "b": np.float64(-1.5)})
    return d, td.step(d, ["a", "b"], optimizer="adamw", clip_norm=0.3, accumulate=2), {"x": 2.0, "lr": 0.1, **state}


ENGINES = [pytest.param("native", marks=needs("llvmlite")), pytest.param("xla", marks=[needs("jax"), pytest.mark.jax])]


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_take_the_same_steps(engine: str) -> None:
    _, step, values = of_scalars()
    for _ in range(2):
        by_numpy, by_engine = td.evaluate(step, values, engine="numpy"), td.evaluate(step, values, engine=engine)
        for key, y in by_numpy.items():
            np.testing.assert_allclose(by_engine[key], y, 1e-12, err_msg=key)
        values |= {key: y for key, y in by_numpy.items() if key in values}
    assert values["step"] == 1 and values["a"] != 0.5


OWN = "new_m = 0.99 * m + 0.01 * gradient; new_weight = weight - lr * sign(0.9 * m + 0.1 * gradient)"


def test_an_optimizer_of_ones_own() -> None:
    lion = td.formula(OWN, **dict.fromkeys(("gradient", "weight", "m", "lr"), "f64[]"))
    d = document("f32")
    step = td.step(d, "p", "loss", lion, 0.5)
    x, weights = drawn(3, "f32", {"x": (4, 3)}), drawn(1, "f32")
    after = td.evaluate(step, {**x, **td.initial_state(d, "p", lion, values=weights)})
    slopes = td.evaluate(td.grad(d, "p", "loss"), {**x, **weights})
    for key in WEIGHTS:
        np.testing.assert_allclose(after[key], weights[key] - 0.5 * np.sign(slopes[f"{key}@-1"]), 1e-6)
        np.testing.assert_allclose(after[f"m.{key}"], 0.01 * slopes[f"{key}@-1"], 1e-5)


def optimizer(text: str, **types: str) -> td.Document:
    return td.formula(text, **dict.fromkeys(("gradient", "weight"), "f64[]") | types)


@pytest.mark.parametrize(
    ("wrt", "options", "says"),
    [
        (
            "x",
            {},
            "a step lowers one real number, and 'h', 'loss' are such; name that one, and then others to keep, with output='h'",
        ),
        ("x", {"output": "y"}, "a step lowers one real number, and has y: f64[2]; put a loss behind it with compose()"),
        ("n", {"output": "loss"}, "input 'n' is i64[], and a step trains real floats; leave it out of wrt=..."),
        ("z", {"output": "loss"}, "input 'z' is c128[], and a step trains real floats; leave it out of wrt=..."),
        ("r", {"output": "loss"}, "input 'r.b' is i32[], and a step trains real floats; make an input of its own of it"),
        ("q", {"output": "loss"}, "no graph has an input 'q' (inputs: momentum.x, n, r, x, z)"),
        ("x", {"output": "loss", "optimizer": "adm"}, "there is no optimizer 'adm'; did you mean 'adam'? (there are sgd, "),
        (
            "x",
            {"output": "loss", "optimizer": "momentum"},
            "a step has a 'momentum.x' of its own, beside that of graph 'f'; rename this: rename(document, {'momentum.x': ...})",
        ),
        ("x", {"output": "loss", "lr": -1.0}, "argument 'lr' takes a finite number from 0 on, not a value of type float"),
        ("x", {"output": "loss", "lr": math.nan}, "argument 'lr' takes a finite number from 0 on, not a value of type float"),
        ("x", {"output": "loss", "accumulate": 0}, "argument 'accumulate' takes an integer from 1 on, not a value of type int"),
        ("x", {"output": "loss", "optimizer": "f.json", "lr": 0.1}, "there is no optimizer 'f.json' (there are sgd, "),
        (
            "x",
            {"output": "loss", "optimizer": 3},
            "argument 'optimizer' takes the name of an optimizer, or a document, not a value",
        ),
        (
            "x",
            {"output": "loss", "optimizer": optimizer("new_wieght = weight - gradient")},
            "optimizer 'f': has no output 'new_weight'; did you mean 'new_wieght'?; it takes gradient, weight, lr, step, ",
        ),
        (
            "x",
            {"output": "loss", "optimizer": optimizer("new_weight = weight - rate * gradient", rate="f64[]")},
            "optimizer 'f': has no output 'new_rate'; it takes gradient,",
        ),
        (
            "x",
            {"output": "loss", "optimizer": optimizer("new_weight = weight - sum(gradient)", gradient="f64[3]")},
            "optimizer 'f': 'gradient' is f64[3]; an optimizer is of numbers, f64[], and goes by elements",
        ),
        (
            "x",
            {"output": "loss", "optimizer": optimizer("new_weight = weight - gradient"), "lr": 0.1},
            "the optimizer takes no learning rate 'lr'; leave out lr=...",
        ),
        (
            "x",
            {"output": "loss", "optimizer": optimizer("new_weight = weight - sum(stack((gradient, gradient)))")},
            "graph 'f', node 0 (reshape): does not go by elements, and a graph of numbers is applied to each element of arrays",
        ),
    ],
)
def test_what_is_no_step(wrt: str, options: dict[str, Any], says: str) -> None:
    text = "h = sum(x); loss = n * h + abs(z) + r.a; y = 2 * x + k"
    d = td.rename(td.formula(text, x="f64[2]", n="i64[]", z="c128[]", k="f64[2]", r="{a: f64[], b: i32[]}"), {"k": "momentum.x"})
    with pytest.raises(td.TiduError) as refused:
        td.step(d, wrt, **options)
    assert str(refused.value).startswith(says)


def test_products_of_elements_with_all_others_are_no_optimizer(tmp_path: Path) -> None:
    """Which types alone would let pass."""
    outer = {"op": "dot_general", "inputs": [0, 1], "attrs": {"dimension_numbers": [[[], []], [[], []]]}}
    inputs = [{"key": key, "type": "f64[]"} for key in ("gradient", "weight")]
    graph = {"name": "outer", "inputs": inputs, "nodes": [outer], "outputs": [{"key": "new_weight", "value": 2}]}
    (tmp_path / "outer.json").write_text(json.dumps({"tidu": 1, "graphs": [graph]}))
    with pytest.raises(td.TiduError, match=r"graph 'outer', node 0 \(dot_general\): does not go by elements"):
        td.step(td.formula("loss = sum(w)", w="f64[2]"), "w", (), td.load(tmp_path / "outer.json"))


def test_it_is_linear_in_weights() -> None:
    """Counted: as many nodes for each of many weights, and none more."""

    def nodes(n: int) -> int:
        d = td.trace(lambda p: sum(np.sum(x * x) for x in p), p=["f64[2]"] * n)
        return td.step(d, "p", (), "adam", 0.1, clip_norm=1.0, accumulate=2).head.n_nodes

    assert nodes(30) - nodes(20) == nodes(20) - nodes(10)
