"""Programs with records: the bits of the plain interpreter, memory that is the caller's own, and how much of it they take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.graphs import interpret
from tests.graphs.sketch import Sketch, Value, document, function, key, op
from tests.graphs.strategies import seeds
from tests.tiers import examples
from tests.waiting import cpu_seconds
from tidu_cli.graph.graph import Document
from tidu_cli.graph.types import RecordType, TensorType, Type
from tidu_cli.runtime.evaluate import evaluate
from tidu_cli.runtime.memory import estimate_memory, evaluation
from tidu_cli.runtime.plans.program import compile_graph
from tidu_cli.transforms.materialize import materialize

law = settings(max_examples=examples(200, check=80), suppress_health_check=list(HealthCheck))
add, field, mul, record = map(op, ("add", "field", "mul", "record"))
ARRAY, PAIR = "f64[4]", "{a: f64[4], b: f64[4]}"
NESTED = f"({PAIR}, f64[4])"
KINDS = ("add", "add", "mul", "record", "nest", "part", "field", "field", "view", "barrier", "still", "retract")


def made_of(draw: Any, *inputs: Value) -> dict[str, Value]:
    """Arrays and records of them, made by what reuses memory, what makes views and what passes arrays on."""
    pool = list(inputs)
    for _ in range(draw(st.integers(1, 20))):
        kind = draw(st.sampled_from(KINDS))
        a = draw(st.sampled_from(pool[-4:]))
        alike = [v for v in pool if v.type == a.type]
        arrays = [v for v in pool if isinstance(v.type, TensorType)]
        pairs = [v for v in pool if str(v.type) == PAIR]
        b, x, y = draw(st.sampled_from(alike[-4:])), draw(st.sampled_from(arrays[-4:])), draw(st.sampled_from(arrays[-4:]))
        sketch = a.sketch
        if kind == "add":
            pool.append(add(a, b))
        elif kind == "mul":
            pool.append(mul(x, y))
        elif kind == "record":
            pool.append(record(x, y, type=PAIR))
        elif kind == "part":
            pool.append(record(x, type=PAIR, fields=(draw(st.sampled_from("ab")),)))
        elif kind == "nest" and pairs:
            pool.append(record(pairs[-1], x, type=NESTED))
        elif kind == "field" and isinstance(a.type, RecordType):
            pool.append(field(a, name=draw(st.sampled_from(a.type.names))))
        elif kind == "view":
            flat = sketch.apply("reshape", x, new_sizes=(2, 2))
            pool.append(sketch.apply("reshape", flat, new_sizes=(4,)))
        elif kind == "barrier":
            pool += sketch.apply_all("optimization_barrier", a, x)
        elif kind == "still":
            pool.append(sketch.apply("stop_gradient", x))
        elif kind == "retract":
            pool.append(sketch.apply("retract", a, b))
    chosen = draw(st.lists(st.sampled_from(pool), max_size=2))
    return {f"u{k}": value for k, value in enumerate([pool[-1], pool[-2], *chosen])}


@st.composite
def graphs(draw: Any) -> Document:
    return function("f", {"x": ARRAY, "p": PAIR, "n": NESTED}, lambda *values: made_of(draw, *values))


def arrays(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, tuple):
        for part in value:
            yield from arrays(part)
    else:
        yield value


@law
@given(graphs(), seeds)
def test_the_bits_are_those_of_the_plain_interpreter_and_nothing_is_shared(doc: Document, seed: int) -> None:
    at = interpret.random_inputs(doc, seed)
    before = [np.copy(x) for value in at.values() for x in arrays(value)]
    values = compile_graph(doc.head).run(at)
    due = interpret.evaluate(doc, at)
    given_arrays = [x for value in at.values() for x in arrays(value)]
    for value, expected in zip(values, due.values(), strict=True):
        ours, theirs = list(arrays(value)), list(arrays(expected))
        assert [x.tobytes() for x in ours] == [np.asarray(x).tobytes() for x in theirs]
    assert [x.tobytes() for x in given_arrays] == [x.tobytes() for x in before]
    results = [x for value in values for x in arrays(value)]
    everything = results + given_arrays
    assert not any(np.shares_memory(x, y) for k, x in enumerate(results) for y in everything[k + 1 :])
    assert all(x.flags.writeable for x in results)


@law
@given(graphs())
def test_the_peak_is_what_the_runtime_estimates(doc: Document) -> None:
    one = materialize(doc)
    costs = evaluation(one)
    assert costs.peak == estimate_memory(compile_graph(one.head)).peak


def test_records_and_their_fields_take_no_memory_of_their_own() -> None:
    types = {"x": "f64[1000]"}
    plain = function("f", types, lambda x: mul(add(x, x), x))

    def packed(x: Value) -> Value:
        r = record(add(x, x), x, type="(f64[1000], f64[1000])")
        return mul(field(r, name="0"), field(r, name="1"))

    assert evaluation(function("f", types, packed)).peak == evaluation(plain).peak == 3 * 8000


def test_a_record_holds_what_is_in_it() -> None:
    def late(x: Value, name: str) -> Value:
        r = record(add(x, x), mul(x, x), type="{a: f64[1000], b: f64[1000]}")
        a = field(r, name="a")
        for _ in range(4):
            a = x.sketch.apply("sin", a)
        return mul(a, field(r, name=name)) if name else a

    peaks = {name: evaluation(function("f", {"x": "f64[1000]"}, lambda x, n=name: late(x, n))).peak for name in ("", "a", "b")}
    # x, two sines, and the record with both of its fields, as long as something reads it.
    assert peaks == {"": 3 * 8000, "a": 5 * 8000, "b": 5 * 8000}


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_field_that_is_taken_early_is_held_alone(name: str) -> None:
    def late(x: Value) -> Value:
        r = record(add(x, x), mul(x, x), type="{a: f64[1000], b: f64[1000]}")
        kept, other = field(r, name=name), field(r, name="ab".replace(name, ""))
        for _ in range(4):
            other = x.sketch.apply("sin", other)
        return mul(other, kept)

    # x, two sines, and the field.
    assert evaluation(function("f", {"x": "f64[1000]"}, late)).peak == 4 * 8000


def test_a_field_outlives_its_record() -> None:
    """A record that one operation makes takes its memory once, whoever holds a field of it longer."""

    def body(p: Value) -> Value:
        total = p.sketch.apply("add", p, p)
        late, twice = field(total, name="big"), p.sketch.apply("add", total, total)
        early = p.sketch.apply("reduce_sum", field(twice, name="big"), axes=(0,))
        return mul(early, p.sketch.apply("reduce_sum", late, axes=(0,)))

    # p, the sum with itself, and the sum of that: three records.
    assert evaluation(function("f", {"p": "{big: f64[1000], small: f64[2]}"}, body)).peak == 3 * 8016


def test_the_largest_values_are_named_by_field() -> None:
    def body(p: Value) -> Value:
        total = p.sketch.apply("add", p, p)
        return p.sketch.apply("reduce_sum", field(total, name="big"), axes=(0,))

    graph = function("f", {"p": "{big: f64[1000], small: f64[2]}"}, body).head
    assert [what for _, what in estimate_memory(compile_graph(graph)).largest] == [
        "input p {big: f64[1000], small: f64[2]}",
        "graph 'f', node 0 (add).big f64[1000]",
        "graph 'f', node 0 (add).small f64[2]",
    ]


def test_zero_fields_of_results_are_arrays_of_zeros() -> None:
    doc = function("f", {"x": "f64[2]"}, lambda x: {"r": record(x, type="{a: f64[2], b: (f64[], f64[3])}", fields=("a",))})
    (value,) = evaluate(doc.head, {key("x"): np.array([1.0, 2.0])}).values()
    assert value["a"].tolist() == [1, 2] and value["b"][0] == 0 and value["b"][1].tolist() == [0, 0, 0]
    assert value["b"][0].shape == () and value["b"][0].dtype == np.float64


def test_a_structurally_zero_record() -> None:
    sketch = Sketch({"x": "f64[]"})
    type_: Type = function("g", {"p": "{a: f64[2], b: duration[h][]}"}, lambda p: p).head.inputs[0].type
    doc = document(sketch.builder.build("f", [sketch.output("z", None, type_)]))
    (value,) = evaluate(doc.head, {}).values()
    assert value["a"].tolist() == [0, 0] and value["b"] == 0


def test_no_array_is_reused_that_a_record_holds() -> None:
    """p lives on in r; without that, its memory would become that of the sum."""

    def body(x: Value) -> dict[str, Value]:
        p = mul(x, x)
        return {"r": record(p, x, type=PAIR), "s": add(p, x)}

    def through_a_field(x: Value) -> dict[str, Value]:
        r = record(mul(x, x), x, type=PAIR)
        return {"s": add(field(r, name="a"), x), "r": r}

    x = np.arange(4.0)
    for case in (body, through_a_field):
        records = evaluate(function("f", {"x": ARRAY}, case).head, {key("x"): x})
        assert records[key("r")]["a"].tolist() == (x * x).tolist()
        assert records[key("s")].tolist() == (x * x + x).tolist()


@pytest.mark.campaign
def test_time_is_linear_in_the_length_of_a_chain_of_records() -> None:
    def chain(length: int) -> Document:
        def body(p: Value) -> Value:
            for k in range(length):
                names = ("a", "b") if k % 2 else ("b", "a")
                p = record(field(p, name=names[0]), field(p, name=names[1]), type=PAIR)
            return p

        return function("f", {"p": PAIR}, body)

    def once(doc: Document) -> None:
        program = compile_graph(doc.head)
        program.run({key("p"): (np.zeros(4), np.zeros(4))})
        estimate_memory(program)
        evaluation(doc)

    short, long = chain(2_000), chain(8_000)
    taken_by_long, taken_by_short = (min(cpu_seconds(lambda d=d: once(d)) for _ in range(5)) for d in (long, short))
    assert taken_by_long < 8 * taken_by_short
