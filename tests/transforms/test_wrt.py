"""The inputs of --wrt: integers that are only indices are refused, and a note names parameters that a pattern leaves out."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tidu_cli
from tidu_cli.errors import TransformError
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Document
from tidu_cli.notes import heard_by

INDEX = tidu_cli.formula("table[n] * 2.0", table="f64[5]", n="i64[]")
BOTH = tidu_cli.formula("table[n] * n", table="f64[5]", n="i64[]")
AT = {"table": np.arange(5.0) ** 2, "n": 3}


@pytest.mark.parametrize("function", [tidu_cli.grad, tidu_cli.jvp, tidu_cli.vjp, tidu_cli.hvp, tidu_cli.jacobian, tidu_cli.hessian])
def test_an_integer_that_is_only_an_index_is_refused(function) -> None:
    with pytest.raises(TransformError, match=r"the derivative by input 'n', i64\[\], is zero.*\(gather\).*by table, or .*cut=NAME"):
        function(INDEX, wrt="n")
    with pytest.raises(TransformError, match="by input 'n'"):
        function(INDEX, wrt=["table", "n"])


def test_so_it_is_by_the_first_stage_and_by_numbers_without_axes() -> None:
    with pytest.raises(TransformError, match="by input 'n'"):
        tidu_cli.linearize(INDEX, "n")
    with pytest.raises(TransformError, match="by input 'n'"):
        tidu_cli.derivative(INDEX, "n")


def test_where_there_are_no_real_numbers_the_way_out_is_a_cut() -> None:
    steps = tidu_cli.formula("where(n > 2, 1.0, 0.0)", n="i64[]")
    with pytest.raises(TransformError, match=r"only through graph 'f', node 1 \(gt\), .* differentiate by a value within a model"):
        tidu_cli.grad(steps, "n")


def test_an_integer_that_is_also_a_number_is_taken() -> None:
    assert tidu_cli.evaluate(tidu_cli.grad(BOTH, "n"), **AT) == {"n@-1": 9.0}


def test_second_derivatives_may_be_zero() -> None:
    assert tidu_cli.evaluate(tidu_cli.hessian(BOTH, "n"), **AT) == {"y/n/n": 0.0}
    again = tidu_cli.grad(tidu_cli.grad(BOTH, "n"), "n")
    assert tidu_cli.evaluate(again, **AT) == {"n@-2": 0.0}


def test_an_output_that_does_not_depend_on_it_has_the_derivative_zero() -> None:
    two = tidu_cli.formula("a = table[n]; b = sum(table)", table="f64[5]", n="i64[]")
    assert tidu_cli.evaluate(tidu_cli.grad(two, "n", output="b"), **AT) == {"n@-1": 0.0}
    with pytest.raises(TransformError, match="by input 'n'"):
        tidu_cli.grad(two, "n", output="a")


def test_a_pattern_does_not_take_it() -> None:
    assert [str(o.key) for o in tidu_cli.grad(INDEX, "*").head.outputs] == ["table@-1"]


def with_parameters(document: Document, *names: str) -> Document:
    inputs = [replace(i, meta={"parameter": True}) if str(i.key) in names else i for i in document.head.inputs]
    return replace(document, graphs=(replace(document.head, inputs=tuple(inputs)),))


def notes(document: Document, *wrt: str) -> list[str]:
    heard: list[str] = []
    with heard_by(heard.append):
        tidu_cli.grad(document, wrt=wrt)
    return heard


NET = with_parameters(
    tidu_cli.formula(
        "sum(tanh(x * g_a + g_b) * h) + 0.0 * sum(floor(k)) + sum(stop_gradient(s))",
        **dict.fromkeys(("x", "g_a", "g_b", "h", "k", "s"), "f32[3]"),
    ),
    *("g_a", "g_b", "h", "k", "s"),
)


@pytest.mark.parametrize(
    ("wrt", "told"),
    [
        (["g_*"], "wrt takes 2 of 5 parameters and leaves 3; a gradient goes to h of these"),
        (["g_*", "h"], "wrt takes 3 of 5 parameters and leaves 2; a gradient goes to none of these"),
        (["[hks]"], "wrt takes 3 of 5 parameters and leaves 2: g_a, g_b"),
    ],
)
def test_parameters_that_patterns_leave_are_told(wrt: list[str], told: str) -> None:
    assert notes(NET, *wrt) == [told]


def test_nothing_is_told_of_names_and_where_nothing_is_left() -> None:
    assert notes(NET, "g_a") == notes(NET, "*") == []


def test_they_are_told_through_bindings_and_of_chosen_outputs() -> None:
    model = with_parameters(tidu_cli.formula("a = sum(w * x); b = sum(v * x)", w="f64[2]", v="f64[2]", x="f64[2]"), "w", "v")
    heard: list[str] = []
    with heard_by(heard.append):
        tidu_cli.grad(model, "x*", output="a")
        loss = tidu_cli.resolve(
            tidu_cli.formula("p = sum(w * x)", name="m", w="f64[2]", x="f64[2]"),
            tidu_cli.formula("p * q", p="f64[]", q="f64[]"),
            bind={"p": "p"},
        )
        graphs = tuple(
            replace(g, inputs=tuple(replace(i, meta={"parameter": str(i.key) in "wq"}) for i in g.inputs)) for g in loss.graphs
        )
        tidu_cli.grad(replace(loss, graphs=graphs), "x*")
    assert [text for text in heard if "parameters" in text] == [
        "wrt takes 0 of 2 parameters and leaves 2; a gradient goes to w of these",
        "wrt takes 0 of 2 parameters and leaves 2: w, q",
    ]


@pytest.mark.parametrize(
    "meta", [{"parameter": 1}, {"parameter": [True]}, {"weights": 3}, {"onnx": {"weights": 3}}, {"onnx": {"weights": "wx"}}]
)
def test_other_meta_means_nothing(meta: dict[str, object]) -> None:
    document = tidu_cli.formula("sum(x * y)", x="f64[2]", y="f64[2]")
    head = replace(document.head, meta=meta, inputs=tuple(replace(i, meta=meta) for i in document.head.inputs))
    document = replace(document, graphs=(head,))
    assert notes(document, "x*") == []
    with pytest.raises(tidu_cli.TiduError, match=re.escape("(inputs: x, y)") + "$"):
        tidu_cli.grad(document, "w*")
