"""What pages say: names, formulas, and the sweep told step by step."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cli.running import F, document, graph
from tidu_cli.checking.numeric.exact_laws import cotangent_owners
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.keys import parse_key
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import dtype_name
from tidu_cli.render.folding import key_words
from tidu_cli.render.phrases import value_text
from tidu_cli.render.picture import picture
from tidu_cli.render.words import Words
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose


def read(data):
    return parse_document(data, "test")[0]


def f():
    with open(F, "rb") as file:
        return read(file.read())


def captions(document, owners=None, **options):
    """What is said of each item of the head."""
    return [caption for _, caption in Words(picture(document, **options), owners).captions()]


REVERSE = [
    "c1 = x · c0: the second and third contribution to the cotangent of x",
    "c2 = v1 · c0: the first contribution to the cotangent of x",
    "c3 = c2 + c1: the cotangent of x gets its second contribution",
    "c4 = c3 + c1: the cotangent of x gets its third and last contribution",
]


def test_the_reverse_sweep_of_the_worked_example():
    assert captions(transpose(linearize(f(), [parse_key("x")]))) == REVERSE


def test_the_forward_sweep():
    assert captions(linearize(f(), [parse_key("x")])) == [
        "t1 = t0 + t0: the tangents t0 and t0 add up",
        "t2 = v1 · t0: t0 goes forward through the product, with v1 held fixed",
        "t3 = t1 · x: t1 goes forward through the product, with x held fixed",
        "t4 = t2 + t3: the tangents t2 and t3 add up; this is the tangent of y",
    ]


def test_a_materialized_sweep_and_a_primal_graph():
    one = captions(materialize(transpose(linearize(f(), [parse_key("x")]))))
    assert [caption.partition(":")[2] for caption in one if caption.startswith("c")] == [c.partition(":")[2] for c in REVERSE]
    assert captions(f()) == ["v1 = x + x: sum", "v2 = v1 · x: product; this is y"]


def test_cotangents_of_intermediate_values():
    text = document(graph([("exp", 0), ("mul", 1, 1)], outputs=[("y", 2)]))
    reverse = transpose(linearize(read(text), [parse_key("x")]))
    told = captions(reverse)
    assert "gets its second and last contribution" in told[2] and "of an intermediate value" in told[2]
    assert told[3].endswith("this is the cotangent of x")
    told = captions(reverse, cotangent_owners(reverse))
    assert told[2].endswith("the cotangent of v1 gets its second and last contribution")


def test_a_fold_is_told_as_one_step():
    told = captions(read(document(graph([("exp", 0), ("log1p", 1), ("neg", 2)], outputs=[("y", 3)]))), collapse=True)
    assert told == ["v3, by 3 nodes (exp, log1p, neg); this is y"]


@pytest.mark.parametrize(
    ("node", "told"),
    [
        ({"op": "integer_pow", "inputs": [0], "attrs": {"y": 3}}, "x^3"),
        ({"op": "sin", "inputs": [0]}, "sin x"),
        ({"op": "max", "inputs": [0, 0]}, "max(x, x)"),
        ({"op": "erf", "inputs": [0]}, "erf(x)"),
        ({"op": "constant", "inputs": [], "attrs": {"value": {"type": "f64[]", "data": [2.5]}}}, "2.5"),
    ],
)
def test_formulas_of_names(node, told):
    inputs, outputs = [{"key": "x", "type": "f64[]"}], [{"key": "y", "value": 1}]
    words = Words(picture(read(document({"name": "f", "inputs": inputs, "nodes": [node], "outputs": outputs}))))
    assert words.formula(0, 0) == told


def test_names_of_several_graphs_are_apart():
    words = Words(picture(linearize(transpose(linearize(f(), [parse_key("x")])), [parse_key("x")])))
    names = [name for own in words.names for name in own if name != "x"]
    assert len(names) == len(set(names))


def test_keys_in_words():
    assert key_words(parse_key("x@-1@2")) == "the tangent of the cotangent of x"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float64(1 / 3), "0.333333"),
        (np.array(True), "true"),
        (np.int32(-7), "-7"),
        (np.complex128(1 - 2j), "1-2i"),
        (np.array([[1.0, 2], [3, 4]]), "[[1, 2], [3, 4]]"),
        (np.arange(5.0), "[0, 1, 2, 3, …]"),
        (np.zeros((2, 0)), "[]"),
        (np.float64("nan"), "nan"),
    ],
)
def test_numbers(value, text):
    array = np.asarray(value)
    assert value_text(array, TensorType(dtype_name(array.dtype), array.shape)) == text
