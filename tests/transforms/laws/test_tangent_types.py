"""The table of tangent types, and linearize's choice among them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.graphs.interpret import evaluate
from tests.graphs.sketch import Sketch, document, function, key, listing, op, type_of
from tidu_cli.errors import TransformError
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import ITEMSIZE, TIMES, RecordType, TensorType
from tidu_cli.lax.vocabulary import BUILTIN, with_records
from tidu_cli.rules.tangents import TABLE, admitted, chosen, natural
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose

N, X = key("n"), key("x")


def test_the_table_has_every_dtype_once() -> None:
    listed = [dtype for row in TABLE for dtype in row.primals]
    assert sorted(listed) == sorted([*ITEMSIZE, *TIMES])
    for dtype in listed:
        t = TensorType(dtype, (2,))
        assert natural(t) in (*admitted(t), None) and (natural(t) is None) == (dtype == "bool")


@pytest.mark.parametrize(
    ("primal", "chosen"), [("f64", "f32"), ("f32", "f64"), ("f64", "bf16"), ("c128", "c64"), ("i64", "f32"), ("i8", "f32")]
)
def test_a_chosen_type_is_that_of_tangents_and_cotangents(primal: str, chosen: str) -> None:
    doc = function("f", {"n": f"{primal}[2]"}, lambda n: n * n)
    tangent, wanted = TensorType(chosen, (2,)), natural(TensorType(primal, (2,)))
    linear = linearize(doc, [N], tangent_types={N: tangent})
    assert [i.type for i in linear.head.inputs] == [tangent] and [o.type for o in linear.head.outputs] == [wanted]
    assert listing(linear.head)[0] == "convert_element_type(0) T"
    vjp = transpose(linear)
    assert [i.type for i in vjp.head.inputs] == [wanted] and [o.type for o in vjp.head.outputs] == [tangent]
    at = {N: np.array([3, 4])}
    assert evaluate(linear, at | {N.tangent(1): np.array([1, 2])})[key("y@1")].tolist() == [6, 16]
    assert evaluate(vjp, at | {key("y@-1"): np.array([1, 2])})[key("n@-1")].tolist() == [6, 16]


def test_the_natural_type_needs_no_conversion() -> None:
    doc = function("f", {"n": "i32[]"}, lambda n: n * n)
    chosen = linearize(doc, [N], tangent_types={N: type_of("f64[]")})
    assert listing(chosen.head) == listing(linearize(doc, [N]).head)


def test_an_input_that_no_output_needs_is_not_converted() -> None:
    doc = function("f", {"n": "i32[]", "x": "f64[]"}, lambda n, x: x)
    linear = linearize(doc, [N, X], tangent_types={N: type_of("f32[]")})
    assert not linear.head.n_nodes


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({"n": "f16[2]"}, "input 'n' has type i32[2], which admits no tangent f16[2]; choose f32[2] or f64[2]"),
        ({"n": "f32[]"}, "input 'n' has type i32[2], which admits no tangent f32[]; choose f32[2] or f64[2]"),
        ({"n": "i32[2]"}, "input 'n' has type i32[2], which admits no tangent i32[2]; choose f32[2] or f64[2]"),
        (
            {"x": "c128[2]"},
            "input 'x' has type f64[2], which admits no tangent c128[2]; choose f16[2] or bf16[2] or f32[2] or f64[2]",
        ),
        ({"m": "f32[2]"}, "a tangent type is given for 'm', which is none of the inputs to differentiate by"),
    ],
)
def test_a_type_that_is_not_admitted_is_refused(types: dict[str, str], message: str) -> None:
    doc = function("f", {"n": "i32[2]", "x": "f64[2]", "m": "i32[2]"}, lambda n, x, m: x)
    with pytest.raises(TransformError, match=f"^{re.escape(message)}$"):
        linearize(doc, [N, X], tangent_types={key(k): type_of(t) for k, t in types.items()})


def test_a_bool_has_only_the_zero_tangent() -> None:
    doc = function("f", {"b": "bool[]", "x": "f64[]"}, lambda b, x: op("select_n")(b, x, -x))
    with pytest.raises(TransformError, match=r"^input 'b' has type bool\[\], whose only tangent is zero; "):
        linearize(doc, [key("b")])


@pytest.mark.parametrize("declared", ["P", "P{q: f64[2], at: duration[ms][]}", "{q: f64[2], at: datetime[ms][]}"])
@pytest.mark.parametrize("text", ["{q: f64}", "{q: f64[2]}", "{q: f32}"])
def test_fields_of_a_record_and_of_a_records_tangent_are_chosen_by_name(declared: str, text: str) -> None:
    """Whether an input is a record or is itself declared as the tangent of one; shapes and the name may be left out."""
    records = {"P": parse_record("P", "{q: f64[2], at: datetime[ms]}")}
    primal = parse_value_type(declared, records)
    type_ = chosen(primal, parse_value_type(text, records, open_shapes=True))
    assert str(type_) == f"{'P' if declared.startswith('P') else ''}{{q: {text[4:7]}[2]}}"
    sketch = Sketch({"p": primal}, primitives=with_records(BUILTIN, records, {}))
    (p,) = sketch.inputs
    doc = document(sketch.build("f", {"y": sketch.apply("reduce_sum", sketch.apply("field", p, name="q"), axes=(0,))}))
    vjp = transpose(linearize(doc, [key("p")], tangent_types={key("p"): type_}))
    assert vjp.head.outputs[0].type == type_
    assert [x.tolist() for x in evaluate(vjp, {key("y@-1"): 2.0})[key("p@-1")]] == [[2.0, 2.0]]


def parse_record(name: str, fields: str) -> RecordType:
    spelled_out = parse_value_type(fields)
    assert isinstance(spelled_out, RecordType)
    return RecordType(name, spelled_out.fields)
