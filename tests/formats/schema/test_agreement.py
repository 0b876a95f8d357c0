"""The published schema accepts what readers accept, and refuses what they refuse, as far as a schema can say it."""

from __future__ import annotations

import base64
import json
import math
import random
import re
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings

from tests.formats.hostile.mutations import mutated
from tests.formats.plain import described, documents, read
from tests.formats.schema.agreement import BEYOND_SCHEMAS, disagreement, exact, refusal, refusal_of_shape, stock
from tests.fuzz.inputs.attr_values import drawn, one_node
from tests.tiers import campaign, examples

ROOT = Path(__file__).parents[3]
SAMPLES = {
    path.name: path for folder in ("samples", "samples/conformance/valid") for path in sorted((ROOT / folder).glob("*.json"))
}
INVALID = {path.name: path for path in sorted((ROOT / "samples" / "conformance" / "invalid").glob("*.json"))}


def plain(path: Path) -> Any:
    """What a file holds; None if that is no JSON (RFC 8259), which no schema sees."""
    try:
        return json.loads(path.read_bytes(), parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _finite(digits: str) -> float:
    if math.isinf(float(digits)):
        raise ValueError(digits)
    return float(digits)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def with_input(**fields: Any) -> dict[str, Any]:
    return {"tidu": 1, "graphs": [{"name": "f", "inputs": [{"key": "x", "type": "f64[]", **fields}], "nodes": [], "outputs": []}]}


def with_op(name: str, **fields: Any) -> dict[str, Any]:
    port = [{"key": "x", "type": fields.pop("type", "f64[]")}]
    graph = {"inputs": [{"key": "x"}], "nodes": [{"op": "sin", "inputs": [0]}], "outputs": [{"key": "y", "value": 1}]}
    op = {"inputs": port, "outputs": [{"key": "y", "type": "f64[]"}], "forward": graph, **fields}
    return {**with_input(), "ops": {name: op}}


def key_of(levels: int) -> Any:
    key: Any = "x"
    for number in range(levels):
        key = {"tangent" if number % 2 else "cotangent": {"of": key, "pass": number + 1}}
    return key


def with_body(node: Any = None, output: Any = None, **fields: Any) -> dict[str, Any]:
    """A loop whose body has this node, or output, or these fields."""
    nodes = [{"op": "sin", "inputs": [0]}] if node is None else [node]
    outputs = [{"key": "y", "value": 1}] if output is None else [output]
    body = {"inputs": [{"key": "x", "type": "f64[]"}], "nodes": nodes, "outputs": outputs, **fields}
    return with_attrs("scan", "f64[]", length=3, num_consts=0, num_carry=1, body=body)


def with_attrs(op: str, *types: str, **attrs: Any) -> dict[str, Any]:
    return one_node(op, list(types), attrs)


@pytest.mark.parametrize("path", [*SAMPLES.values(), *INVALID.values()], ids=lambda path: path.name)
def test_samples(path: Path) -> None:
    data = plain(path)
    assert data is None or disagreement(data) is None


@pytest.mark.parametrize(
    "data",
    [
        *(with_op(name) for name in ("1op", "a.jvp", "sin", "", "op\n")),
        *(with_op("own", type=text) for text in ("f64[1.5]", "f64[1 2]", "f64[N]", "T[...,...]", "f65[n]", " {x: f64[]}")),
        with_op("own", jvp={}, backward={}),
        with_op("own", attrs={"active": 1}),
        *(with_input(type=text) for text in ("f64[1.5]", "{x: f64[1.5]}", "f64[01]", "f64[]\n", " f64[]", "f64", "duration[x]")),
        *(with_input(type=text) for text in (" {x: f64[]}", "{x: f64[]} ", "\n(f64[],)", "{x: f64}", "{f64[]: x}", "x: f64[]")),
        with_input(type=f"f64[{','.join('1' * 65)}]"),
        *(with_input(key=key_of(levels)) for levels in (65, 66, 80)),
        {**with_input(), "types": {"f64": {"x": "f64[]"}}},
        {**with_input(), "types": {"P": {"x y": "f64[]"}}},
        *(with_attrs("sort", "f64[3]", dimension=0, is_stable=value) for value in ("yes", 1, 1.0, 0, "true", None)),
        *(with_attrs("sort", "f64[3]", dimension=value) for value in (True, 1.5, "0", None, -1, 2**63)),
        with_attrs("reduce_sum", "f64[3,3]", axes=[0, 0]),
        with_attrs("field", "(f64[],)", name=0),
        with_attrs("constant", value={"type": "i8[1]", "data": [128]}),
        with_attrs("constant", value={"type": "bool[1]", "data": [1]}),
        with_attrs("constant", value={"type": "f64[1]", "data": [True]}),
        with_attrs("constant", value={"type": "f64[]", "base64": "AAAAAAAAAAA"}),
        with_attrs("record", "f64[]", type="f64[]"),
        with_attrs("sin", "f64[]", "f64[]"),
        with_attrs("add", "f64[]"),
        with_attrs("select_n"),
        with_attrs("scan", "f64[]", length=3, num_consts=0, num_carry=1),
        with_attrs("scan", "f64[]", length=3, num_consts=0, num_carry=1, body=None),
        with_attrs("scan", "f64[]", length=3, num_consts=0, num_carry=1, body=[]),
        with_attrs("cond", "i32[]", branches={}),
        with_attrs("cond", "i32[]", branches=[1]),
        with_body(field=1),
        with_body(linear={"pass": 1}),
        with_body(inputs=None),
        with_body(name=1),
        with_body({"op": "sin", "inputs": [0], "field": 1}),
        with_body({"op": "sin", "inputs": [[0, 0]]}),
        with_body({"op": "sin", "inputs": ["sha256:" + "0" * 64]}),
        with_body({"op": "sin", "inputs": [0], "role": {"linearized": {"active_mask": [True]}}}),
        with_body({"op": "sort", "inputs": [0], "attrs": {}}),
        with_body(output={"key": "y", "value": None, "type": "f64[]"}),
        with_body(output={"key": "y", "value": [0, 0]}),
        with_body(nodes={"table": [{"op": "sin", "inputs": 1, "outputs": 1}], "code": [0], "args": [-1], "external": [[0, 0]]}),
    ],
)
def test_both_refuse(data: Any) -> None:
    assert refusal(data) is not None and not exact().is_valid(data) and not stock().is_valid(data)


@pytest.mark.parametrize(
    "data",
    [
        with_op("own"),
        with_body(),
        with_body(name="step", meta={"a": 1}),
        with_body({"op": "sin", "inputs": [0], "meta": {"a": 1}, "types": ["f64[]"]}),
        with_body(nodes={"table": [{"op": "sin", "inputs": 1, "outputs": 1}], "code": [0], "args": [0]}),
        with_op("Own_2-x", type="f64[ n, ...,3 ]"),
        *(
            with_input(type=text)
            for text in ("{ x : f64[] ,\ty: (i8[2], {z: bool[]}) }", "(f64[],)", "{}", "datetime[ms]", "f64[0]")
        ),
        with_input(type=f"f64[{','.join('1' * 64)}]"),
        with_input(key=key_of(64)),
        {**with_input(type="P"), "types": {"P": {"f64": "f64[]"}}},
        with_attrs("sort", "f64[3]", dimension=0, is_stable=False),
        with_attrs("constant", value={"type": "u64[1]", "data": [2**64 - 1]}),
        with_attrs("constant", value={"type": "bf16[2]", "data": ["NaN", 1]}),
        with_attrs("constant", value={"type": "c64[1]", "data": [1e30, "-Infinity"]}),
        with_attrs("difference", "datetime[ms][2]", "datetime[ms][2]", tangent="{instant: {periods: f64}}"),
    ],
)
def test_both_accept(data: Any) -> None:
    assert refusal(data) is None and stock().is_valid(data)


def test_what_no_schema_can_say_of_numbers() -> None:
    data = with_attrs("sort", "f64[3]", dimension=0.0)
    assert stock().is_valid(data) and not exact().is_valid(data)
    assert "attr 'dimension': input should be a valid integer" in str(refusal(data))


@pytest.mark.parametrize(
    ("what", "data"),
    [
        ("names", with_input(type="Point")),
        ("how records nest", with_input(type="{x: f64[])")),
        ("how large a type is", with_input(type="f64[9223372036854775807]")),
        ("meta", with_input(meta={"a": 2**64})),
        ("how many numbers a constant has", with_attrs("constant", value={"type": "f64[2]", "data": [1]})),
        ("what bytes are", with_attrs("constant", value={"type": "bool[1]", "base64": "Ag=="})),
        ("dates", with_attrs("constant", value={"type": "datetime[ms][1]", "data": ["2026-02-30"]})),
        ("what attrs are together", with_attrs("dot_general", "f64[1]", "f64[1]", dimension_numbers=[[[0], []], [[], []]])),
        ("what is named twice", with_op("own", outputs=[{"key": "x", "type": "f64[]"}])),
    ],
)
def test_what_no_schema_can_say(what: str, data: Any) -> None:
    # Each exception to the laws below is one, and docs/format.md names it.
    assert exact().is_valid(data) and re.search(BEYOND_SCHEMAS[what], str(refusal_of_shape(data)))
    assert what in BEYOND_SCHEMAS and refusal(data) is not None


@given(documents())
@settings(max_examples=examples(30))
def test_documents_are_valid(data: Any) -> None:
    assert refusal(data) is None and stock().is_valid(data)


def _mutants(seed: int, count: int) -> None:
    rng = random.Random(seed)
    pool = [
        data for data in map(plain, [*SAMPLES.values(), *INVALID.values()]) if data is not None and len(json.dumps(data)) < 8000
    ]
    for _ in range(count):
        data = mutated(rng, rng.choice(pool))
        assert disagreement(data) is None, json.dumps(data)
    for _, data in drawn(seed, count // 4):
        assert disagreement(data) is None, json.dumps(data)


@pytest.mark.check
def test_mutants() -> None:
    _mutants(1, 400 if campaign() else 100)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_mutants(seed: int) -> None:
    _mutants(seed, 5000)


NUMPY = {f"{kind}{8 * size}": f"<{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)}


def _as_json(value: Any) -> Any:
    """Plain data of msgpack as JSON has it: the bins of constants as base64, and those of columns as lists."""
    if isinstance(value, list):
        return [_as_json(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if isinstance(data := value.get("data"), bytes):
        if "dtype" in value:
            return np.frombuffer(data, NUMPY[value["dtype"]]).tolist()
        return {"type": value["type"], "base64": base64.b64encode(data).decode()}
    return {key: _as_json(entry) for key, entry in value.items()}


@pytest.mark.parametrize("path", sorted((ROOT / "samples/conformance/valid").glob("*.msgpack")), ids=lambda path: path.name)
def test_msgpack_with_bins_written_out_is_valid(path: Path) -> None:
    data = _as_json(msgpack.unpackb(path.read_bytes()))
    assert stock().is_valid(data) and refusal(data) is None


def test_floats_of_32_bits_are_floats() -> None:
    data = with_attrs("constant", value={"type": "f64[1]", "data": [0.5]})
    assert described(read(msgpack.packb(data, use_single_float=True))) == described(read(data))
