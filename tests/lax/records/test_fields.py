"""Attrs are read without pydantic as their models read them, and in doubt by the models."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError, field_validator

from tidu_cli.errors import TypeRuleError
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules import fields
from tidu_cli.rules.attrs import Attrs
from tidu_cli.rules.fields import DOUBT, Bounded, Sized, field_names, layout_of, made
from tidu_cli.rules.validation import model_of, validated

CLASSES = list(dict.fromkeys(p.domain.attrs for p in BUILTIN))
EXAMPLES = [
    (p.name, e.attrs) for p in BUILTIN for e in p.catalogue.examples if not callable(e.attrs) and "T" not in json.dumps(e.attrs)
]

numbers = st.integers(-2, 5) | st.sampled_from([2**31, -(2**31), 2**62, 2**64, 10**30])
values = st.recursive(
    numbers
    | st.booleans()
    | st.floats(allow_nan=False)
    | st.none()
    | st.sampled_from(["f64", "f65", "i32", "clip", "NaN", "TO_NEAREST_EVEN", "", "{x: f64[]}", "duration[h]", "1", "true"])
    | st.just({"type": "f64[2]", "data": [1.0, 2.0]}),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


def agrees(attrs: type[Attrs], data: dict[str, Any]) -> None:
    quick = fields.read_quickly(attrs, data, {})
    if quick is DOUBT:
        return
    assert quick == validated(attrs, data, {})
    assert [type(v) for v in quick.values()] == [type(v) for v in validated(attrs, data, {}).values()]


@pytest.mark.parametrize("attrs", CLASSES, ids=lambda attrs: attrs.__name__)
def test_built_in_attrs_take_no_pydantic(attrs: type[Attrs]) -> None:
    assert layout_of(attrs).fields is not None
    assert field_names(attrs) == tuple(model_of(attrs).model_fields)


@pytest.mark.parametrize(("op", "data"), EXAMPLES, ids=[f"{op}-{k}" for k, (op, _) in enumerate(EXAMPLES)])
def test_examples(op: str, data: dict[str, Any]) -> None:
    attrs = BUILTIN[op].domain.attrs
    assert fields.read_quickly(attrs, data, {}) is not DOUBT
    agrees(attrs, data)
    parsed = BUILTIN.parse_attrs(op, data)
    for binary in (False, True):
        assert BUILTIN.parse_attrs(op, parsed.to_data(binary=binary)) == parsed
    assert type(parsed)(**dict(parsed)) == parsed and hash(type(parsed)(**dict(parsed))) == hash(parsed)


@given(st.sampled_from(CLASSES), st.data())
def test_any_values(attrs: type[Attrs], data: Any) -> None:
    names = [*field_names(attrs), "other"]
    agrees(attrs, data.draw(st.dictionaries(st.sampled_from(names), values)))


@given(st.sampled_from(EXAMPLES), st.data())
def test_examples_with_one_other_value(example: tuple[str, dict[str, Any]], data: Any) -> None:
    op, attrs = example
    if attrs:
        name = data.draw(st.sampled_from(sorted(attrs)))
        old = attrs[name]
        inner = (
            st.sampled_from(old).flatmap(lambda one: st.sampled_from([[*old, one], old[1:]]))
            if isinstance(old, list) and old
            else values
        )
        agrees(BUILTIN[op].domain.attrs, {**attrs, name: data.draw(values | inner)})


def alike(written: Any, given: Any) -> bool:
    """Whether one is the other, to the kind of each value; floats may have been given as integers, of any digits."""
    if isinstance(given, list):
        return isinstance(written, list) and len(written) == len(given) and all(map(alike, written, given))
    if isinstance(given, dict):
        return isinstance(written, dict) and written.keys() <= given.keys() and all(alike(written[k], given[k]) for k in written)
    if type(written) is float and type(given) is int:
        return written == float(given)
    return type(written) is type(given) and bool(written == given)


@given(st.sampled_from([e for e in EXAMPLES if "value" not in e[1] and "type" not in e[1]]), st.data())
def test_models_convert_nothing(example: tuple[str, dict[str, Any]], data: Any) -> None:
    op, attrs = example
    cls = BUILTIN[op].domain.attrs
    changed = {**attrs, data.draw(st.sampled_from([*field_names(cls), "other"])): data.draw(values)}
    try:
        parsed = made(cls, validated(cls, changed, {}))
    except TypeRuleError:
        return
    written = parsed.to_data(binary=False)
    assert alike(written, changed)
    defaults = layout_of(cls).defaults
    assert all(name in defaults for name in changed.keys() - written.keys())


@pytest.mark.parametrize("value", ["yes", "true", 1, 0, 1.0, None, [True]])
def test_a_bool_is_a_bool(value: object) -> None:
    with pytest.raises(TypeRuleError, match="attr 'reverse': input should be a valid boolean"):
        BUILTIN.parse_attrs("cumsum", {"axis": 0, "reverse": value})


@pytest.mark.parametrize("value", [True, 1.0, "1", None, 2**63, -(2**63) - 1])
def test_an_integer_is_an_integer_of_64_bits(value: object) -> None:
    class Counted(Attrs):
        """With an annotation of Python's alone, as packages have them."""

        n: int
        rate: float = 0.0
        on: bool = False

    with pytest.raises(TypeRuleError, match="attr 'n': input should be"):
        Counted.parse({"n": value}, {})
    for n in (-(2**63), 2**63 - 1):
        assert Counted.parse({"n": n, "rate": 1}, {}).to_data(binary=True) == {"n": n, "rate": 1.0}
    for wrong in ("1", True, float("nan"), float("inf")):
        with pytest.raises(TypeRuleError, match="attr 'rate': input should be"):
            Counted.parse({"n": 1, "rate": wrong}, {})
    with pytest.raises(TypeRuleError, match="attr 'on': input should be a valid boolean"):
        Counted.parse({"n": 1, "on": 1}, {})


class Plain(Attrs):
    """Without anything of pydantic's."""

    n: Annotated[int, Bounded(ge=1)]
    shape: Annotated[tuple[int, ...], Sized(1)] = (1,)


class Mixed(Attrs):
    """With pydantic's own annotations and a validator, as packages may have."""

    rate: Annotated[float, Field(gt=0)]
    inner: Plain
    names: list[str] = Field(default_factory=list)

    @field_validator("rate")
    @classmethod
    def _not_seven(cls, rate: float) -> float:
        if rate == 7:
            raise ValueError("seven is taken")
        return rate


def test_attrs_with_pydantics_annotations() -> None:
    assert layout_of(Mixed).fields is None
    attrs = Mixed.parse({"rate": 1, "inner": {"n": 2, "shape": [3]}}, {})
    assert (attrs.rate, attrs.inner, attrs.names) == (1.0, Plain(n=2, shape=(3,)), [])
    assert attrs.to_data(binary=False) == {"rate": 1.0, "inner": {"n": 2, "shape": [3]}}
    assert Mixed(rate=1.0, inner=Plain(n=2, shape=(3,))) == attrs
    for wrong, message in (
        ({"rate": 7, "inner": {"n": 1}}, "attr 'rate': seven is taken"),
        ({"rate": 0, "inner": {"n": 1}}, "attr 'rate': input should be greater than 0"),
        ({"rate": 1, "inner": {"n": 0}}, "attr 'inner.n': input should be greater than or equal to 1"),
        ({"rate": 1, "inner": {"n": 1, "m": 1}}, r"unknown attr 'inner\.m'"),
    ):
        with pytest.raises(TypeRuleError, match=message):
            Mixed.parse(wrong, {})


def test_the_model_has_the_last_word() -> None:
    with pytest.raises(TypeRuleError, match="attr 'n': input should be a valid integer"):
        Plain(n="many")
    with pytest.raises(TypeRuleError, match="missing attr 'n'"):
        Plain.parse({}, {})
    with pytest.raises(TypeRuleError, match=r"attr 'shape': tuple should have at least 1 item"):
        Plain(n=1, shape=())
    with pytest.raises(TypeRuleError, match="unknown attr 'shap'; did you mean 'shape'"):
        Plain.parse({"n": 1, "shap": 1}, {})
    with pytest.raises(ValidationError):
        model_of(Plain).model_validate({"n": 0})


def test_attrs_are_frozen_and_told_apart() -> None:
    class Other(Plain):
        """Of the same fields."""

    attrs = Plain(n=2)
    with pytest.raises(AttributeError, match="frozen"):
        attrs.n = 3  # type: ignore[misc]
    with pytest.raises(AttributeError, match="frozen"):
        del attrs.n
    assert attrs != Other(n=2) and attrs != Plain(n=3) and attrs == Plain(n=2, shape=[1])
    assert attrs.to_data(binary=False) == {"n": 2}
    assert repr(attrs) == "Plain(n=2, shape=(1,))"
