"""Checks of graphs with records and times: laws array by array, wrong rules found, and the arrays at fault named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tests.checking.sets import changed
from tests.graphs.record_graphs import record_graphs
from tests.graphs.sketch import Value, function, key, op
from tests.tiers import examples
from tidu_cli.checking.closure import document_closure, examples_closure
from tidu_cli.checking.numeric.laws import check_numerically, check_primitive_numerically
from tidu_cli.checking.numeric.trials import Leaf
from tidu_cli.checking.numeric.twins import float_twin
from tidu_cli.checking.report import check_document
from tidu_cli.checking.static import findings
from tidu_cli.graph.graph import Document
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import RecordType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose

LAWS = ["jvp", "adjoint", "linear", "second", "symmetry"]
sin, sub = op("sin"), op("sub")


def declaring(primitives: PrimitiveSet, **types: str) -> PrimitiveSet:
    records: dict[str, RecordType] = {}
    for name, text in types.items():
        spelled = parse_value_type(text, records)
        assert isinstance(spelled, RecordType)
        records[name] = RecordType(name, spelled.fields)
    return replace(primitives, records=records)


def field(record: Value, name: str) -> Value:
    return record.sketch.apply("field", record, name=name)


def number(value: Value, dtype: str = "f64") -> Value:
    return value.sketch.apply("convert_element_type", value, new_dtype=dtype)


def verdicts(body: Callable[..., Any], inputs: dict[str, str], primitives: PrimitiveSet = BUILTIN, **rest: Any) -> dict[str, Any]:
    return {v.law: v for v in check_numerically(function("f", inputs, body, primitives=primitives), primitives, **rest)}


def broken(by_law: dict[str, Any]) -> set[str]:
    assert all(v.error is not None for v in by_law.values())
    return {law for law, v in by_law.items() if not v.ok}


@settings(max_examples=examples(40, check=23), suppress_health_check=list(HealthCheck))
@given(record_graphs())
def test_random_graphs_pass(pair: tuple[Document, Document]) -> None:
    for document in pair:
        primitives = document.cases.vocabulary
        assert not [f for f in findings(document, primitives) if f.serious]
        assert not document_closure(document, primitives).missing
        assert all(v.ok for v in check_numerically(document, primitives))


def _squared(p: Value) -> Value:
    return field(p, "x") * field(p, "x") * field(p, "y")


def test_all_laws_of_records() -> None:
    by_law = verdicts(_squared, {"p": "{x: f64[3], y: f64[3]}"})
    assert list(by_law) == LAWS and broken(by_law) == set()


@pytest.mark.parametrize("nested", [False, True])
def test_a_wrong_rule_is_found_and_the_array_named(nested: bool) -> None:
    right = BUILTIN["field"].rules.jvp
    assert right is not None

    def off(node: Any) -> Any:
        return [t and (t * 2.0 if node.attrs.name == "y" else t) for t in right(node)]

    wrong = changed("field", jvp=off)
    inner = "{x: f64[3], y: f64[3]}"
    body = (lambda p: _squared(field(p, "0"))) if nested else _squared
    by_law = verdicts(body, {"p": f"({inner},)" if nested else inner}, wrong)
    assert "jvp" in broken(by_law)
    assert list(map(str, by_law["jvp"].by)) == ["p.0.y" if nested else "p.y"]
    assert set(map(str, by_law["jvp"].at)) == ({"p.0.x", "p.0.y"} if nested else {"p.x", "p.y"})


def test_a_wrong_transpose_of_record_breaks_adjointness() -> None:
    swapped = changed("record", transpose=lambda node: [node.operands[0] and None, None])

    def body(x: Value, y: Value) -> Value:
        return x.sketch.apply("record", sin(x), y * x, type="(f64[], f64[])")

    assert broken(verdicts(body, {"x": "f64[]", "y": "f64[]"})) == set()
    assert broken(verdicts(body, {"x": "f64[]", "y": "f64[]"}, swapped)) == {"adjoint"}


def test_integers_in_records_are_judged_by_floats() -> None:
    by_law = verdicts(lambda p: sin(number(field(p, "n"))) * field(p, "w"), {"p": "{n: i64[2], w: f64[2], on: bool[]}"})
    assert list(by_law) == [*LAWS, "integers"] and broken(by_law) == set()


TIMES = {"t": "datetime[ms][2]", "u": "datetime[ms][2]"}


def _lateness(t: Value, u: Value) -> Value:
    return sin(number(sub(t, u)))


def test_all_laws_of_times() -> None:
    by_law = verdicts(_lateness, TIMES)
    assert list(by_law) == LAWS and broken(by_law) == set()


@pytest.mark.parametrize("name", ["sub", "convert_element_type", "difference"])
def test_a_wrong_rule_of_times_is_found(name: str) -> None:
    right = BUILTIN[name].rules.jvp
    assert right is not None

    def off(node: Any) -> Any:
        (t,) = right(node)
        is_wrong = name == "sub" or node.operands[0].type.dtype == "datetime[ms]"  # of sub, the rule sees durations
        return [t + t if is_wrong else t]

    wrong = changed(name, jvp=off)

    def body(t: Value, u: Value) -> Value:
        if name == "convert_element_type":
            return number(t, "duration[h]")
        return number(t.sketch.apply(name, t, u))

    assert broken(verdicts(body, TIMES)) == set()
    assert broken(verdicts(body, TIMES, wrong)) == {"jvp"}
    # Far from 1970 there are no digits left for difference quotients, but the same graph of durations is there to compare with.
    far = {key("t"): np.array([3 * 10**17, 10**17]), key("u"): np.array([10**17, 2 * 10**17])}
    by_law = verdicts(body, TIMES, wrong, given=far)
    assert by_law["jvp"].error is None and not by_law["integers"].ok
    assert verdicts(body, TIMES, given=far)["integers"].error is not None


def test_what_rounds_is_held_at_its_value() -> None:
    """A datetime is moved to the nearest unit, of which nothing is to be seen in difference quotients along the twin."""

    def body(t: Value, d: Value) -> Value:
        start = sub(t.sketch.apply("retract", t, d), t)
        return sin(number(start))

    by_law = verdicts(body, {"t": "datetime[ms][2]", "d": "duration[us][2]"})
    assert broken(by_law) == set()
    by_law = verdicts(lambda n, d: sin(number(n.sketch.apply("retract", n, d))), {"n": "i64[2]", "d": "f64[2]"})
    assert broken(by_law) == set() and list(by_law) == [*LAWS, "integers"]


def test_conversions_to_a_longer_unit_are_steps() -> None:
    by_law = verdicts(
        lambda t, w: number(sub(number(t, "datetime[s]"), number(t, "datetime[s]"))) + w, {"t": "datetime[ms][]", "w": "f64[]"}
    )
    assert broken(by_law) == set()


def test_twins_of_records_hold_durations_and_floats() -> None:
    document = function(
        "f",
        {"e": "{at: datetime[ms][2], n: i32[], on: bool[]}", "t": "datetime[ms][2]"},
        lambda e, t: {"y": sub(field(e, "at"), t), "on": field(e, "on"), "e": e},
    )
    pair = float_twin(document, BUILTIN)
    assert pair is not None
    twin, keys = pair
    assert [str(i.type) for i in twin.head.inputs[2:]] == ["{at: duration[ms][2], n: f64[], on: bool[]}", "duration[ms][2]"]
    assert set(keys) == {key("e"), key("t")}
    assert [str(o.type) for o in twin.head.outputs] == ["duration[ms][2]", "bool[]", "{at: duration[ms][2], n: f64[]}"]
    assert [o.value is None for o in twin.head.outputs] == [False, True, False]


def test_points_are_told_as_dates() -> None:
    off = changed("sub", jvp=lambda node: [next(t for t in node.tangents if t)])
    document = function("f", {"e": "{at: datetime[s][]}", "t": "datetime[s][]"}, lambda e, t: number(sub(field(e, "at"), t)))
    by_law = {v.law: v for v in check_numerically(document, off)}
    assert by_law["jvp"].at[Leaf(key("t"))].dtype == np.dtype("datetime64[s]")
    assert list(map(str, by_law["jvp"].by)) == ["t"]
    report = check_document(document, off, ["numeric"], given={key("e"): (np.array(5),), key("t"): np.array(2)})
    assert any("jvp has relative error" in failure for failure in report.failures)


@pytest.mark.parametrize("name", ["record", "field", "add", "difference", "retract", "sub", "convert_element_type", "reshape"])
def test_primitives_of_records_and_times_are_tried(name: str) -> None:
    assert not examples_closure([BUILTIN[name]], BUILTIN).missing
    results = check_primitive_numerically(BUILTIN[name], BUILTIN, ["f64", "c128"])
    assert results and all(v.ok and v.error is not None for v in results)


def test_a_missing_rule_of_records_is_found() -> None:
    document = function("f", {"p": "{x: f64[]}"}, lambda p: field(p, "x"))
    without = changed("field", jvp=None)
    assert any("missing JVP rule for field" in missing for missing in document_closure(document, without).missing)
    no_transpose = changed("record", transpose=None)
    made = function("f", {"x": "f64[]"}, lambda x: x.sketch.apply("record", x, type="(f64[],)"))
    assert any("missing transpose rule for record" in missing for missing in document_closure(made, no_transpose).missing)


def test_derivatives_of_records_pass_the_static_part() -> None:
    primitives = declaring(BUILTIN, Point="{x: f64[3], y: f64[3]}")
    document = function("f", {"p": "Point"}, _squared, primitives=primitives)
    for derived in (linearize(document, [key("p")]), transpose(linearize(document, [key("p")]))):
        assert not [f for f in findings(derived, primitives) if f.serious]
