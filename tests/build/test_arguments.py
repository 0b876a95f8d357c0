"""Arguments of traced functions: constants of Python, what data say of types, and structures by dotted names."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidu_cli
from tests.tiers import examples
from tidu_cli.adapters.numpy.data import with_data
from tidu_cli.adapters.numpy.parameters import arguments_of, bound, tree_of
from tidu_cli.adapters.numpy.tracing import build_function
from tidu_cli.errors import TiduError
from tidu_cli.formats.values import read_values
from tidu_cli.graph.types import TensorType, parse_type
from tidu_cli.port_data import Data, Static
from tidu_cli.runtime.evaluate import evaluate


class Layer(NamedTuple):
    w: Any
    b: Any = 0.0


@dataclasses.dataclass(frozen=True)
class Config:
    rate: float = 0.5
    steps: int = 2
    mode: str = "euler"
    sizes: tuple[int, ...] = (1, 2)


@dataclasses.dataclass
class Params:
    layers: list[Layer]
    config: Config | None = None


def called_with(function, given, data=None):
    """What a function is called with, where each type stands for itself."""
    given = with_data(function, given, data)
    values = {key: x.value if isinstance(x, Static) else str(x) for key, x in given.items()}
    arguments = bound(function, arguments_of(function, tree_of(given)), values)
    return function(*arguments.args, **arguments.kwargs)


def typed(**given):
    return {k.replace("__", "."): parse_type(v) if isinstance(v, str) else v for k, v in given.items()}


def everything(a, /, b, *rest, c=1, d, **more):
    return a, b, rest, c, d, more


def configured(x, config: Config = Config(steps=7)):
    return x, config


def nested(params: Params, pair: tuple[Any, int], table: dict[int, Any]):
    return params, pair, table


def test_each_kind_of_parameter():
    given = typed(a="f64[]", b=Static(2), rest__0="f64[1]", rest__1=Static("x"), d=Static(None), e="f64[3]")
    assert called_with(everything, given) == ("f64[]", 2, ("f64[1]", "x"), 1, None, {"e": "f64[3]"})
    assert called_with(everything, typed(a="f64[]", b="f64[]", d="f64[]")) == ("f64[]", "f64[]", (), 1, "f64[]", {})
    assert called_with(everything, typed(a="f64[]", b="f64[]", c="f64[2]", d="f64[]"))[3] == "f64[2]"


def test_parts_of_a_default_are_replaced_and_the_others_stay():
    assert called_with(configured, typed(x="f64[]", config__rate="f64[]")) == ("f64[]", Config("f64[]", 7))
    assert called_with(configured, typed(x="f64[]")) == ("f64[]", Config(steps=7))


def test_a_constant_becomes_what_the_annotation_says_and_may_have_inputs_in_it():
    whole = Static({"steps": 3, "sizes": [4, 5]})
    assert called_with(configured, typed(x="f64[]", config=whole)) == ("f64[]", Config(steps=3, sizes=(4, 5)))
    for order in (("config", "config.rate"), ("config.rate", "config")):
        parts = {"config": whole, "config.rate": parse_type("f64[]")}
        arguments = called_with(configured, {"x": parse_type("f64[]"), **{k: parts[k] for k in order}})
        assert arguments == ("f64[]", Config("f64[]", 3, sizes=(4, 5)))


def test_structures_are_made_of_annotations():
    given = {
        "params.layers.0.w": parse_type("f64[2]"), "params.layers.1.0": parse_type("f64[3]"), "params.config.steps": Static(9),
        "pair.0": parse_type("f64[]"), "pair.1": Static(4), "table.7": parse_type("f32[]"),
    }  # fmt: skip
    params, pair, table = called_with(nested, given)
    assert params == Params([Layer("f64[2]"), Layer("f64[3]")], Config(steps=9))
    assert pair == ("f64[]", 4) and isinstance(pair, tuple)
    assert table == {7: "f32[]"}


class Plain:
    def __init__(self, rate, layer: Layer, steps: int = 1):
        self.rate, self.layer, self.steps = rate, layer, steps


def of_a_class(p: Plain | None = None):
    return p


def test_other_classes_are_made_by_their_parameters():
    data = {"p": {"rate": 0.5, "layer": {"w": [1]}, "steps": 4}}
    for made in (called_with(of_a_class, {}, Data(data)), called_with(of_a_class, {"p": Static(data["p"])})):
        assert isinstance(made, Plain) and isinstance(made.layer, Layer) and made.steps == 4
    assert called_with(of_a_class, {}, Data(data)).layer == Layer("f64[1]")
    with pytest.raises(TiduError, match=r"Plain: .*'other'"):
        called_with(of_a_class, typed(p__other="f64[]"))


@pytest.mark.parametrize(
    ("function", "given", "message"),
    [
        (everything, {"a": "f64[]"}, "everything needs 'b'"),
        (configured, {"x": "f64[]", "confg": "f64[]"}, "no parameter 'confg'; did you mean 'config'?"),
        (configured, {"x": "f64[]", "config.rat": "f64[]"}, "'config' has no part 'rat' (parts: rate, steps, mode, sizes)"),
        (configured, {"x": Static(3), "x.a": "f64[]"}, "input 'x.a' is inside of 'x', which is 3"),
        (configured, {"x": "f64[]", "x.a": "f64[]"}, "input 'x.a' is inside of 'x', which is an array"),
        (everything, {"a": "f64[]", "b": "f64[]", "d": "f64[]", "rest": "f64[2]"}, "give rest.0, rest.1, ..."),
        (nested, {"params.q": "f64[]", "pair": Static([1]), "table": Static({})}, "Params: "),
    ],
)
def test_what_does_not_fit(function, given, message):
    with pytest.raises(TiduError) as refusal:
        called_with(function, {k: x if isinstance(x, Static) else parse_type(x) for k, x in given.items()})
    assert message in str(refusal.value) and "\n" not in str(refusal.value)


# Data.


def hinted(x, n: int, ratio: float = 1, steps=3, mode="a", flag=False, shape=(1, 2), nothing=None, items: list[float] = ()):
    return dict(locals())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"x": 3}, "f64[]"),
        ({"x": 2.5}, "f64[]"),
        ({"x": [1, 2]}, "f64[2]"),
        ({"x": [[1], [2]]}, "f64[2,1]"),
        ({"x": [True, False]}, "bool[2]"),
        ({"x": [{"re": 1, "im": 2}, 3]}, "c128[2]"),
        ({"x": {"re": 1, "im": 2}}, "c128[]"),
        ({"x": {"type": "f32[2]", "data": [1, 2]}}, "f32[2]"),
        ({"x": "NaN"}, "f64[]"),
        ({"x": ["NaN", 1]}, "f64[2]"),
        ({"x": [[1, 2], [3]]}, ["f64[2]", "f64[1]"]),
        ({"x": [{"w": 1}, {"w": [2]}]}, [{"w": "f64[]"}, {"w": "f64[1]"}]),
        ({"x": []}, []),
        ({"x": True}, True),
        ({"x": None}, None),
        ({"x": "text"}, "text"),
        ({"x": ["a", 1]}, ["a", "f64[]"]),
        ({"x": np.float32(1)}, "f32[]"),
        ({"x": np.arange(3)}, "i64[3]"),
        ({"x": np.array("rk4")}, "rk4"),
        ({"ratio": 2}, "f64[]"),
        ({"steps": 5}, 5),
        ({"n": 5}, 5),
        ({"n": np.array(5)}, 5),
        ({"n": 5.5}, "f64[]"),
        ({"shape": [3, 4]}, (3, 4)),
        ({"shape": [3]}, (3,)),
        ({"shape": [3, 4, 5]}, (3, 4, 5)),
        ({"items": [1, 2]}, ["f64[]", "f64[]"]),
        ({"mode": "b"}, "b"),
    ],
)  # fmt: skip
def test_what_a_value_says(value, expected):
    (name,) = value
    said = called_with(hinted, {}, Data({"x": 1.0, "n": 1, **value}))[name]
    assert said == expected and type(said) is type(expected)


def test_what_is_given_wins_over_data():
    data = {"config": {"rate": 1, "steps": 4, "mode": "exp"}, "x": [1, 2]}
    arguments = called_with(configured, typed(config__rate="f32[]", x="f32[2]"), Data(data))
    assert arguments == ("f32[2]", Config("f32[]", 4, "exp"))
    assert called_with(configured, {"config": Static({})}, Data(data)) == ("f64[2]", Config())


def test_names_that_the_function_does_not_take():
    data = Data({"x": 1.0, "other": 2.0})
    called_with(configured, {}, data)
    assert data.untaken == ["other"]
    for values, asked in (({"x": 1.0, "confg": 2}, ()), ({"x": 1.0, "zzz": 2}, ("zzz",))):
        with pytest.raises(TiduError, match="configured has no parameter"):
            called_with(configured, {}, Data(values, frozenset(asked)))


TREES = st.recursive(
    st.floats(-9, 9) | st.lists(st.integers(-9, 9), min_size=1, max_size=3) | st.sampled_from([None, "text", True]),
    lambda inner: st.dictionaries(st.sampled_from("abcdef"), inner, max_size=3) | st.lists(inner, max_size=3),
    max_leaves=8,
)

TOTAL = """
import numpy as np

def total(p, k):
    if hasattr(p, "shape"):
        return k * np.sum(p)
    if isinstance(p, dict):
        return k + sum(total(x, 2 * k) for x in p.values())
    if isinstance(p, list):
        return k + sum(total(x, 3 * k) for x in p)
    return k * (len(p) if isinstance(p, str) else 0.5 if p is None else p)
"""


def with_arrays(tree):
    """A tree of JSON with the lists that NumPy takes for arrays of numbers as such."""
    if isinstance(tree, dict):
        return {k: with_arrays(x) for k, x in tree.items()}
    if isinstance(tree, list):
        try:
            array = np.asarray(tree)
        except ValueError:  # ragged
            array = np.asarray(None)
        kinds = {type(x) is bool for x in np.asarray(tree, object).ravel()}
        return array if array.size and array.dtype.kind in "fib" and len(kinds) == 1 else [with_arrays(x) for x in tree]
    return tree


@settings(max_examples=examples(60, check=38), deadline=None)
@given(TREES)
def test_a_built_function_gives_what_the_function_gives(tmp_path_factory, tree):
    """Of any tree of JSON, with its values from the same data."""
    folder = tmp_path_factory.mktemp("total")
    (folder / "f.py").write_text(TOTAL)
    data = json.dumps({"p": tree, "k": 1.5}).encode()
    document = build_function(f"{folder}/f.py:total", {}, data=Data(json.loads(data)))
    values = evaluate(document.head, read_values(data, "v", {key: i.type for key, i in document.inputs.items()}))
    space: dict[str, Any] = {}
    exec(TOTAL, space)
    (total,) = values.values()
    np.testing.assert_allclose(total, space["total"](with_arrays(tree), 1.5), rtol=1e-12)


# In Python.


def test_constants_in_python():
    def f(x, n, mode, act, table, nothing):
        assert nothing is None and mode == "double"
        for _ in range(n):
            x = act(x) * 2
        return x + table

    static = tidu_cli.static
    document = tidu_cli.trace(f, "f64[2]", static(3), mode=static("double"), act=np.sin, table=static(np.ones(2)), nothing=None)
    assert [str(i.key) for i in document.head.inputs] == ["x"]
    expected = np.array([0.1, 0.2])
    for _ in range(3):
        expected = np.sin(expected) * 2
    np.testing.assert_allclose(tidu_cli.evaluate(document, x=[0.1, 0.2])["y"], expected + 1, rtol=1e-15)


def test_constants_within_structures_in_python():
    document = tidu_cli.trace(lambda p: p["x"] ** p["n"], {"x": "f64[]", "n": tidu_cli.static(3)})
    assert tidu_cli.evaluate(document, p={"x": 2.0})["y"] == 8


def test_text_that_is_no_type_is_told_how_to_be_a_constant():
    with pytest.raises(TiduError, match=r"tidu.static\('linear'\)"):
        tidu_cli.trace(lambda x: x, "linear")
    with pytest.raises(TiduError, match=r"tidu.static\(value\)"):
        tidu_cli.trace(lambda x: x, {1, 2})


def test_numbers_are_types_as_they_were():
    document = tidu_cli.trace(lambda a, b, c: a * b + c, 2, 2.5, True)
    assert [i.type for i in document.head.inputs] == [TensorType("i64"), TensorType("f64"), TensorType("bool")]


def test_values_nest_as_arguments_do():
    def f(params, config):
        return params["layers"][1].w * params["layers"][0].w + config.rate

    document = tidu_cli.trace(f, {"layers": [Layer("f64[]", None), Layer("f64[]", None)]}, Config("f64[]", None, None, None))
    layers = [Layer(2.0), Layer(3.0)]
    values = {"params": {"layers": layers}, "config": Config(1.0)}
    assert tidu_cli.evaluate(document, values)["y"] == 7
    assert tidu_cli.compile(document)(values)["y"] == 7
    assert tidu_cli.compile(document)(params={"layers": layers}, config=Config(1.0))["y"] == 7
    with pytest.raises(TiduError, match=r"the key 'config\.rate' occurs twice"):
        tidu_cli.evaluate(document, {**values, "config.rate": 1.0})
    gradient = tidu_cli.grad(document, "params")
    assert {k: float(v) for k, v in tidu_cli.evaluate(gradient, values).items()} == {
        "params.layers.0.w@-1": 3,
        "params.layers.1.w@-1": 2,
    }
