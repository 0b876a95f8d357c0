"""to_jax: what it makes evaluates as tidu does, and JAX's transforms of it are tidu's; and how it is called, and refuses."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tidu_cli as tidu
from benchmarks.generate import chain
from tests.graphs.interpret import random_inputs, random_value
from tests.graphs.record_graphs import record_graphs
from tests.graphs.strategies import ANY, SMOOTH, documents, seeds
from tests.jax.lowering.test_functions import as_jax, at
from tests.sizes.opened import of_fixed_sizes
from tests.tiers import examples, few
from tidu_cli.checking.numeric.trials import one_node_document
from tidu_cli.errors import EvaluationError, MissingRuleError, UnknownNameError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.types import TensorType, leaves, parse_type
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.attrs import NoAttrs
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.materialize import materialize

pytestmark = [pytest.mark.jax, pytest.mark.usefixtures("jax")]

SAMPLES = Path(__file__).parents[3] / "samples"

law = settings(max_examples=examples(25, check=12), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
"""Few, as JAX compiles each operation of each example."""


def close(value: Any, expected: Any) -> None:
    value, expected = np.asarray(value), np.asarray(expected)
    assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(value, expected, rtol=1e-11 if value.dtype.itemsize > 4 else 1e-5, atol=1e-11)


def outputs_of(document: Document, values: dict[str, Any]) -> list[Any]:
    return list(tidu.evaluate(document, values).values())


def as_list(results: Any) -> list[Any]:
    return list(results.values()) if isinstance(results, dict) else [results]


@law
@given(documents(makers=ANY), seeds)
def test_evaluates_the_same(document: Document, seed: int) -> None:
    import jax

    values = {str(k): v for k, v in random_inputs(document, seed).items()}
    ours = outputs_of(document, values)
    function = tidu.to_jax(document)
    for results in (function(values), function(*values.values()), jax.jit(function)(**values)):
        for y, expected in zip(as_list(results), ours, strict=True):
            close(y, expected)


@law
@given(documents(makers=SMOOTH, max_nodes=6), seeds)
def test_derivatives_are_those_of_the_graph(document: Document, seed: int) -> None:
    import jax

    graph, rng = materialize(document).head, np.random.default_rng(seed)
    names = [str(i.key) for i in graph.inputs]
    x, v = ([random_value(i.type, rng) for i in graph.inputs] for _ in range(2))
    u = [random_value(o.type, rng) for o in graph.outputs]
    function = listed(document)
    forward = tidu.linearize(document, names)
    moving = dict(zip([f"{name}@1" for name in names], v, strict=True))
    _, tangents = jax.jvp(function, x, v)
    for y, expected in zip(tangents, outputs_of(forward, dict(zip(names, x, strict=True)) | moving), strict=True):
        close(y, expected)
    _, pull = jax.vjp(function, *x)
    pulled = [np.conj(ct) for ct in pull([np.conj(ct) for ct in u])]
    reverse = tidu.transpose(forward)
    seeds = {f"{o.key}@-1": ct for o, ct in zip(graph.outputs, u, strict=True)}
    theirs = dict(zip([f"{name}@-1" for name in names], pulled, strict=True))
    for key, expected in tidu.evaluate(reverse, dict(zip(names, x, strict=True)) | seeds).items():
        close(theirs[key], expected)


@law
@given(documents(makers=SMOOTH, max_nodes=6, max_graphs=2), seeds, st.integers(1, 3))
def test_vmap_is_the_evaluation_of_batches(document: Document, seed: int, size: int) -> None:
    import jax

    rng = np.random.default_rng(seed)
    graph = materialize(document).head
    axes = [0 if rng.integers(2) or k == 0 else None for k in range(len(graph.inputs))]
    values = [
        random_value(i.type, rng) if axis is None else np.stack([random_value(i.type, rng) for _ in range(size)])
        for i, axis in zip(graph.inputs, axes, strict=True)
    ]
    mapped = jax.vmap(listed(document), axes)(*values)
    names = [str(i.key) for i in graph.inputs]
    batch = {name: 0 for name, axis in zip(names, axes, strict=True) if axis == 0}
    ours = tidu.evaluate(document, dict(zip(names, values, strict=True)), batch=batch)
    for y, expected in zip(mapped, ours.values(), strict=True):
        close(y, expected)


@law
@given(documents(makers=ANY), seeds)
def test_comes_back_from_jax(document: Document, seed: int) -> None:
    values = {str(k): v for k, v in random_inputs(document, seed).items()}
    names = {name: f"x{k}" for k, name in enumerate(values)}
    back = tidu.from_jax(listed(document), *values.values(), names=list(names.values()))
    ours = outputs_of(document, values)
    for y, expected in zip(outputs_of(back, {names[k]: v for k, v in values.items()}), ours, strict=True):
        close(y, expected)


@law
@given(record_graphs(), seeds)
def test_records_are_dicts_and_tuples(graphs: tuple[Document, Document], seed: int) -> None:
    import jax

    document, rng = graphs[0], np.random.default_rng(seed)
    inputs = document.head.inputs
    values = {str(i.key): random_value(i.type, rng) for i in inputs}
    ours = tidu.evaluate(document, {str(i.key): evaluated(i.type, values[str(i.key)]) for i in inputs})
    given = {str(i.key): as_jax(i.type, values[str(i.key)]) for i in inputs}
    function = tidu.to_jax(document)
    for results in (function(given), jax.jit(function)(given)):
        compare_results(document, results, ours)


def compare_results(document: Document, theirs: Any, ours: dict[str, Any]) -> None:
    outputs = document.head.outputs
    results = {str(outputs[0].key): theirs} if len(outputs) == 1 else theirs
    for o in outputs:
        for path, leaf in leaves(o.type):
            y, expected = at(results[str(o.key)], path), at(ours[str(o.key)], path)
            expected = np.zeros_like(y) if expected is None else np.asarray(expected)
            close(y, expected.view(np.int64) if leaf.dtype.startswith("datetime") else expected)


def evaluated(type_: Any, value: Any) -> Any:
    """A value of kernels as `evaluate` takes it."""
    if isinstance(type_, TensorType):
        return value
    return {name: evaluated(t, part) for (name, t), part in zip(type_.fields, value, strict=True)}


def listed(document: Document) -> Callable[..., list[Any]]:
    """to_jax of a document, with a list of outputs."""
    function, alone = tidu.to_jax(document), len(document.head.outputs) == 1
    return lambda *xs: [function(*xs)] if alone else list(function(*xs).values())


# How it is called.


def sine() -> Document:
    return tidu.trace(lambda x, y: np.sin(x) * y, "f64[3]", "f64[3]", name="f")


def test_an_output_is_given_as_it_is_and_several_by_key(jax: Any) -> None:
    x = np.array([0.1, 0.2, 0.3])
    assert np.allclose(tidu.to_jax(sine())(x, y=[1, 2, 3]), np.sin(x) * [1, 2, 3])
    vjp = tidu.to_jax(tidu.vjp(sine(), ["x", "y"]))
    cotangents = vjp({"x": x, "y": x, "y@-1": x, "more": 1})
    assert [list(cotangents), cotangents["x@-1"].tolist()] == [["x@-1", "y@-1"], (np.cos(x) * x * x).tolist()]
    assert np.allclose(jax.grad(lambda x, y: tidu.to_jax(sine())(x, y).sum())(x, x), np.cos(x) * x)


def test_inputs_that_nothing_needs_may_be_left_out(jax: Any) -> None:
    function = tidu.to_jax(tidu.linearize(tidu.trace(lambda x: 2.0 * x, "f64[]"), "x"))
    assert function({"x@1": 3.0}) == 6.0
    assert function(1.0, 3.0) == 6.0


def test_structural_zeros_are_zeros(jax: Any) -> None:
    document = tidu.linearize(tidu.trace(lambda x, y: {"a": np.floor(x), "b": y}, "f64[2]", "f64[]"), ["x", "y"])
    assert np.array_equal(tidu.to_jax(document)({"y@1": 3.0})["a@1"], np.zeros(2))


def test_takes_numbers_and_what_is_narrower(jax: Any) -> None:
    f32, f64 = (tidu.to_jax(tidu.trace(lambda x: x * x, t)) for t in ("f32[]", "f64[]"))
    assert f32(3) == 9
    assert f32(0.5).dtype == np.float32
    assert f64(np.int32(3)) == 9
    assert f64(jax.numpy.float32(3)).dtype == np.float64
    assert jax.jit(f32)(3) == 9
    assert jax.grad(f32)(3.0) == 6
    assert f32(np.float16(3)).dtype == np.float32


def test_takes_times_of_numpy_and_gives_counts(jax: Any) -> None:
    document = one_node_document(BUILTIN.case("sub", NoAttrs(), None, [parse_type("datetime[ms][2]")] * 2))
    a = np.array(["2026-01-31T12:00", "2026-01-31"], "M8[ms]")
    counts = tidu.to_jax(document)(a, a - np.timedelta64(3, "s"))
    assert counts.tolist() == [3000.0, 3000.0]


@pytest.mark.parametrize(
    ("args", "named", "said"),
    [
        ((np.ones(4), np.ones(3)), {}, "input x: expected f64[3], got f64[4]; nothing is broadcast"),
        ((np.ones(3), np.ones(3) * 1j), {}, "input y: expected f64[3], got c128[3]"),
        ((np.ones(3),), {}, "missing inputs: y: f64[3]; give them in order, by name, or in a dict by key"),
        ((1, 2, 3), {}, "f takes 2 inputs (x, y), got 3"),
        ((np.ones(3),), {"x": 1}, "input x is given twice, by position and by name"),
        ((np.ones(3), [1, 2]), {}, "input y: expected f64[3], got a list of shape [2]"),
        ((np.ones(3), None), {}, "input y: expected f64[3], got null"),
        ((np.ones(3), "1"), {}, "input y: expected f64[3], got text"),
        ((np.ones(3), np.array(["a", "b", "c"])), {}, "input y: expected f64[3], got"),
        ((np.ones(3), object()), {}, "input y: expected f64[3], got"),
    ],
)
@pytest.mark.parametrize("how", ["called", "traced"])
def test_refuses_other_inputs(jax: Any, args: Sequence[Any], named: dict[str, Any], said: str, how: str) -> None:
    function = tidu.to_jax(sine())
    if how == "traced":
        if not all(isinstance(x, np.ndarray | int) and np.asarray(x).dtype.kind != "U" for x in args):
            return  # which jit does not take, or takes for a pytree
        function = jax.jit(function)
    with pytest.raises(EvaluationError) as caught:
        function(*args, **named)
    assert str(caught.value).startswith(said)


def test_refuses_keys_of_random_numbers(jax: Any) -> None:
    with pytest.raises(EvaluationError, match=r"input x: expected f64\[\], got key<fry>\[\]"):
        tidu.to_jax(tidu.trace(lambda x: x, "f64[]"))(jax.random.key(0))


def test_refuses_names_of_no_input(jax: Any) -> None:
    with pytest.raises(UnknownNameError, match="no input 'xx'; did you mean 'x'"):
        tidu.to_jax(tidu.trace(lambda x, y: x, "f64[]", "f64[]"))(xx=1.0)


def test_refuses_integers_that_floats_would_round(jax: Any) -> None:
    function = tidu.to_jax(tidu.trace(lambda x: x, "f32[]"))
    with pytest.raises(EvaluationError, match=r"expected f32\[\], got i64\[\]"):
        jax.jit(function)(np.int64(2**40 + 1))


def test_refuses_64_bits_without_x64(jax: Any) -> None:
    function = tidu.to_jax(sine())
    with jax.enable_x64(False), pytest.raises(EvaluationError) as caught:
        function(np.ones(3), np.ones(3))
    assert 'jax.config.update("jax_enable_x64", True)' in str(caught.value)
    assert str(caught.value).startswith("input x: f64[3] has 64 bits")
    with jax.enable_x64(False):
        assert tidu.to_jax(tidu.trace(lambda x: x + 1, "f32[]"))(np.float64(2)) == 3  # which JAX makes f32


def test_recipes_have_their_digits_without_x64(jax: Any) -> None:
    """They compute in f64, within functions of f32, and so do their derivatives; nothing is warned of."""
    from scipy import special

    function = tidu.to_jax(tidu.trace(lambda x: special.jv(1.5, x), "f32[3]"))
    x = np.array([1.0, 2.0, 30.0], np.float32)
    with jax.enable_x64(False):
        values = jax.jit(function)(x)
        slopes = jax.grad(lambda x: function(x).sum())(x)
        along = jax.vmap(function)(np.stack([x, x]))
    assert {values.dtype, slopes.dtype, along.dtype} == {np.dtype(np.float32)}
    np.testing.assert_allclose(values, special.jv(1.5, x.astype(float)), rtol=2e-7)
    np.testing.assert_allclose(along[1], special.jv(1.5, x.astype(float)), rtol=2e-7)
    np.testing.assert_allclose(slopes, special.jvp(1.5, x.astype(float)), rtol=1e-6)


def test_graphs_within_graphs_are_made_functions_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each level asks once for what is in it: asked twice, 40 levels would take as long as they could."""
    from tidu_cli.adapters.jax.lowering import functions

    def nested(depth: int) -> Callable[[Any], Any]:
        inner = nested(depth - 1) if depth else np.sin
        return lambda x: tidu.scan(lambda c, _: (inner(c), None), x, length=1)[0]

    asked, by_jax = [], functions._by_jax
    monkeypatch.setattr(functions, "_by_jax", lambda case, precise: asked.append(case.op) or by_jax(case, precise))
    for depth in (4, 8):
        asked.clear()
        tidu.to_jax(tidu.trace(nested(depth), "f64[]"))
        assert len(asked) <= 3 * (depth + 2)


def test_a_loop_is_traced_once(jax: Any) -> None:
    document = tidu.trace(lambda x: tidu.scan(lambda c, _: (np.sin(c) + x, c), x, length=5)[0], "f64[]")
    function = tidu.to_jax(document)
    counts = []
    for x in (0.1, 0.2):
        with jax.log_compiles(True), caught_logs() as lines:
            function(x)
        counts.append(sum("Compiling" in line for line in lines))
    assert counts[0] > 0
    assert counts[1] == 0


@contextmanager
def caught_logs() -> Iterator[list[str]]:
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("jax")
    logger.addHandler(handler)
    yield lines
    logger.removeHandler(handler)


FILES = sorted([*SAMPLES.glob("*.json"), *(p for p in SAMPLES.glob("conformance/valid/*.json") if "packed" not in p.name)])


@pytest.mark.parametrize("file", few([p for p in FILES if "detached" not in p.name], 20), ids=lambda p: p.stem)
def test_samples_evaluate_the_same(file: Path, jax: Any) -> None:
    """Also custom operations, loops within loops, and records that hold records."""
    document = materialize(of_fixed_sizes(tidu.load(file)))
    types = {str(i.key): i.type for i in document.head.inputs}
    values = {str(k): v for k, v in random_inputs(document, 0).items()}
    ours = tidu.evaluate(document, {k: evaluated(types[k], v) for k, v in values.items()})
    theirs = jax.jit(tidu.to_jax(document))({k: as_jax(types[k], v) for k, v in values.items()})
    compare_results(document, theirs, ours)


def test_large_graphs_are_functions_too(jax: Any) -> None:
    document = chain(3000)
    function = tidu.to_jax(document)
    close(function(0.3), tidu.evaluate(document, {"x0": 0.3})["y"])
    assert len(jax.make_jaxpr(function)(np.float64(0.3)).jaxpr.eqns) == 3000


def test_what_only_numpy_computes_is_refused_by_its_place(jax: Any) -> None:
    sine = replace(BUILTIN["sin"], name="my_sine")
    primitives = PrimitiveSet.of([*BUILTIN, sine])
    case = primitives.case("my_sine", NoAttrs(), None, [parse_type("f64[]")])
    with pytest.raises(MissingRuleError) as caught:
        tidu.to_jax(one_node_document(case, primitives))
    assert str(caught.value).startswith("graph 'my_sine', node 0 (my_sine): no function of JAX computes it")


def test_cotangents_add_up_as_in_numpy(jax: Any) -> None:
    """1 per hour and 2 per millisecond: the kernel with jax.numpy's functions."""
    types = [parse_type("duration[h][2]"), parse_type("duration[ms][2]")]
    document = one_node_document(BUILTIN.case("add_cotangents", NoAttrs(), None, types))
    total = tidu.to_jax(document)(np.ones(2), np.full(2, 2.0))
    assert total.tolist() == [2 + 1 / 3_600_000] * 2
