"""Open sizes of models: names of dimensions, the arithmetic of shapes, bounds that nodes need, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import tidu_cli as api
from tests.onnx.models import model
from tests.onnx.operators.evaluators import by_runtime, difference
from tests.onnx.sizes.open_models import Nodes
from tidu_cli.adapters.onnx.contents import Choices
from tidu_cli.adapters.onnx.loading import loaded
from tidu_cli.adapters.onnx.reading.importer import import_model
from tidu_cli.adapters.onnx.writing.model import onnx_bytes
from tidu_cli.errors import DocumentError, TiduError, UnknownNameError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.open_sizes import bounds_to_file


def read(proto: Any, **choices: Any) -> Any:
    """The document of a model."""
    return import_model(loaded(proto.SerializeToString()), Choices.of(**choices)).document


def to_plain(document: Any) -> Any:
    """A document as its file has it."""
    return json.loads(format_document(document, "json"))


def types(document: Any) -> list[str]:
    """The types of inputs."""
    return [str(i.type) for i in document.head.inputs]


def plain(*shapes: list[Any]) -> Any:
    """A model of inputs of these shapes, x0, x1, ..., with an output each."""
    nodes = [helper.make_node("Neg", [f"x{k}"], [f"y{k}"]) for k in range(len(shapes))]
    return model(nodes, [(f"x{k}", shape) for k, shape in enumerate(shapes)], [(f"y{k}", None) for k in range(len(shapes))])


# Names.


@pytest.mark.parametrize(
    ("shape", "type_"),
    [
        (["batch", 3], "f32[batch,3]"),
        ([None, None], "f32[x0_0,x0_1]"),
        ([-1, "?"], "f32[x0_0,x0_1]"),
        (["p2o.Dim.0", "a b"], "f32[p2o_Dim_0,a_b]"),
        (["max", "3d"], "f32[_max,_3d]"),
        (["x.y", "x_y"], "f32[x_y_,x_y]"),
        (["n", "n + 1"], "f32[n,n+1]"),
        (["n", "2*n"], "f32[n,2*n]"),
        (["n", "m+1"], "f32[n,m_1]"),
        (["n", "n-7"], "f32[n,n_7]"),
        (["名", "名"], "f32[n,n]"),
        (["a" * 300], f"f32[{'a' * 60}]"),
    ],
)
def test_dimensions_have_names(shape: list[Any], type_: str) -> None:
    assert types(read(plain(shape))) == [type_]


def test_a_name_is_one_size_of_all_inputs() -> None:
    document = read(plain(["n", 3], ["n.", "n"]))
    assert types(document) == ["f32[n,3]", "f32[n_,n]"]
    with pytest.raises(TiduError, match="input x1: the size n is 2"):
        api.evaluate(document, {"x0": np.zeros((2, 3), "f4"), "x1": np.zeros((4, 5), "f4")})


def test_sizes_may_be_chosen_as_before() -> None:
    proto = plain(["n", "n + 1"], [None, 3])
    assert types(read(proto, dims={"n": 4})) == ["f32[4,5]", "f32[x1_0,3]"]
    assert types(read(proto, dims={"n + 1": 4})) == ["f32[n,4]", "f32[x1_0,3]"]
    assert types(read(proto, input_types={"x1": "f32[7,3]"})) == ["f32[n,n+1]", "f32[7,3]"]
    assert types(read(proto, input_types={"x1": "f32[2*n,3]"})) == ["f32[n,n+1]", "f32[2*n,3]"]
    with pytest.raises(UnknownNameError, match=r"no open dimension 'x1_0' \(open dimensions: n, n \+ 1\)"):
        read(proto, dims={"x1_0": 4})


def test_models_without_open_sizes_know_nothing_of_them() -> None:
    document = read(plain([2, 3]))
    assert "sizes" not in to_plain(document)
    assert b"Shape" not in onnx_bytes(document)


# The arithmetic of shapes.


def vector(f: Nodes, *axes: int) -> str:
    """Sizes of x, as a vector."""
    return str(f("Gather", f("Shape", "x"), f.ints(*axes)))


def scalar(f: Nodes, axis: int) -> str:
    """A size of x."""
    return str(f("Gather", f("Shape", "x"), f.constant(np.int64(axis))))


def cast(f: Nodes, x: str, to: int) -> str:
    return str(f("Cast", x, to=to))


def rounded(f: Nodes) -> str:
    """A size doubled in floats, as exporters of older operator sets write the sizes of images."""
    doubled = f("Mul", cast(f, scalar(f, 0), TensorProto.FLOAT), f.constant(np.float32(2)))
    return cast(f, f("Floor", doubled), TensorProto.INT64)


COMPUTED: dict[str, tuple[Any, str]] = {
    "sum and product": (lambda f: f("Add", f("Mul", vector(f, 0, 1), f.ints(2, 3)), f.ints(1)), "[2*N+1, 3*M+1]"),
    "difference": (lambda f: f("Sub", vector(f, 0), f.ints(1)), "[N-1]"),
    "quotient": (lambda f: f("Div", vector(f, 0, 1), f.ints(2)), "[N//2, M//2]"),
    "remainder": (lambda f: f("Mod", vector(f, 0), f.ints(4)), "[N%4]"),
    "joined": (lambda f: f("Concat", vector(f, 1), f.ints(4), vector(f, 0), axis=0), "[M, 4, N]"),
    "parts": (lambda f: f("Slice", f("Shape", "x"), f.ints(-2), f.ints(2**63 - 1)), "[N, M]"),
    "one axis": (lambda f: f("Shape", "x", start=1), "[M]"),
    "extremes": (lambda f: f("Min", f("Max", vector(f, 0), f.ints(4)), vector(f, 1)), "[min(M,max(N,4))]"),
    "number of elements": (lambda f: f("Size", "x"), "M*N"),
    "product of all": (lambda f: f("ReduceProd", f("Shape", "x"), keepdims=0), "M*N"),
    "sum of all": (lambda f: f("ReduceSum", f("Shape", "x"), keepdims=1), "[M+N]"),
    "axes": (lambda f: f("Squeeze", f("Unsqueeze", scalar(f, 1), f.ints(0)), f.ints(0)), "M"),
    "casts": (lambda f: cast(f, f("Neg", cast(f, scalar(f, 0), TensorProto.INT32)), TensorProto.INT64), "N"),
    "what may be below 0": (lambda f: f("Sub", vector(f, 0), f.ints(4)), "[N-1]"),
    "floats": (rounded, "2*N"),
    "choice": (
        lambda f: f("Where", f("Equal", vector(f, 0, 1), f.ints(-1)), f.ints(1, 1), vector(f, 0, 1)),
        "[N, M]",
    ),
    "written into": (lambda f: f("ScatterND", f("Shape", "x"), f.constant(np.array([[0]])), f.ints(7)), "[7, M]"),
    "taken apart": (lambda f: f("Split", f("Shape", "x"), f.ints(1, 1), n=2)[1], "[M]"),
    "turned": (lambda f: f("Transpose", f("Reshape", f("Shape", "x"), f.ints(1, 2))), "[[N], [M]]"),
    "reversed": (lambda f: f("Slice", f("Shape", "x"), f.ints(-1), f.ints(-3), f.ints(0), f.ints(-1)), "[M, N]"),
}


def arithmetic(name: str) -> Any:
    """A model that gives what is computed of the sizes of x, f32[N,M]."""
    f = Nodes(0)
    f.result(COMPUTED[name][0](f), "y")
    outputs = [("y", None, TensorProto.INT64)]
    return model(f.nodes, [("x", ["N", "M"])], outputs, initializer=f.initializer, opset=18)


@pytest.mark.parametrize("name", COMPUTED)
def test_arithmetic_of_shapes_is_of_names(name: str) -> None:
    """What a constant of the shape would be has the size that is expected; and the number is what the runtime computes."""
    proto = arithmetic(name)
    document = read(proto)
    found = [str(document.cases[code].attrs.expression) for code in document.head.code if document.cases[code].op == "size"]
    due = COMPUTED[name][1]
    assert set(found) == {text.strip("[]") for text in due.replace(", ", "|").split("|")} - {"4", "7"}
    for shape in ((1, 1), (3, 5), (8, 2)):
        x = np.zeros(shape, "f4")
        (y,) = by_runtime(proto.SerializeToString(), {"x": x}).values()
        for values in (api.evaluate(document, {"x": x}), by_runtime(onnx_bytes(document), {"x": x})):
            np.testing.assert_array_equal(values["y"], y)


def shaped(build: Any, shape: Any = ("N", "M")) -> Any:
    """A model whose result is computed of x, f32[N,M]."""
    f = Nodes(0)
    f.result(build(f), "y")
    return model(f.nodes, [("x", list(shape))], [("y", None)], initializer=f.initializer, opset=18)


ones = numpy_helper.from_array(np.ones(1, np.float32))
SHAPED: dict[str, tuple[Any, str]] = {
    "reshape by -1": (lambda f: f("Reshape", "x", f.ints(-1)), "f32[M*N]"),
    "reshape by 0": (lambda f: f("Reshape", "x", f.ints(0, 1, -1)), "f32[N,1,M]"),
    "constant of shape": (lambda f: f("ConstantOfShape", f("Add", vector(f, 1), f.ints(1)), value=ones), "f32[M+1]"),
    "expand": (lambda f: f("Expand", f("Slice", "x", f.ints(0), f.ints(1), f.ints(1)), f.ints(1, 3)), "f32[N,3]"),
    "range": (lambda f: cast(f, f("Range", f.constant(0), scalar(f, 0), f.constant(2)), 1), "f32[(N+1)//2]"),
    "tile": (lambda f: f("Tile", "x", f("Concat", f.ints(2), vector(f, 0), axis=0)), "f32[2*N,M*N]"),
    "slice to the end": (lambda f: f("Slice", "x", f.ints(1), f.ints(2**63 - 1), f.ints(0)), "f32[N-1,M]"),
    "slice from the end": (lambda f: f("Slice", "x", f.ints(-2), f.ints(2**31 - 1), f.ints(1)), "f32[N,M-max(M-2,0)]"),
    "slice of as many": (lambda f: f("Slice", "x", f.ints(0), f.ints(3), f.ints(1)), "f32[N,min(M,3)]"),
    "every second": (lambda f: f("Slice", "x", f.ints(0), f.ints(2**63 - 1), f.ints(1), f.ints(2)), "f32[N,(M+1)//2]"),
    "back": (lambda f: f("Slice", "x", f.ints(-1), f.ints(-(2**63) + 1), f.ints(0), f.ints(-1)), "f32[N,M]"),
    "pad": (lambda f: f("Pad", "x", f.ints(1, 0, 0, 2)), "f32[N+1,M+2]"),
    "pad by a size": (lambda f: f("Pad", "x", f("Concat", vector(f, 1), f.ints(0, 0, 0), axis=0)), "f32[M+N,M]"),
    "split": (lambda f: f("Concat", *f("Split", "x", axis=1, num_outputs=1, n=1).split(), axis=0), "f32[N,M]"),
    "first": (lambda f: f("Gather", "x", f.constant(0), axis=0), "f32[M]"),
    "last": (lambda f: f("Gather", "x", f.constant(-1), axis=1), "f32[N]"),
    "resize": (
        lambda f: f(
            "Squeeze", f("Resize", f("Unsqueeze", "x", f.ints(0, 1)), "", f.constant(np.array([1, 1, 2, 1.5], "f4"))), f.ints(0, 1)
        ),
        "f32[2*N,M+(M//2)]",
    ),
    "resize by sizes": (
        lambda f: f(
            "Squeeze",
            f(
                "Resize",
                f("Unsqueeze", "x", f.ints(0, 1)),
                "",
                "",
                f("Concat", f.ints(1, 1), f("Mul", vector(f, 0, 1), f.ints(3, 1)), axis=0),
                mode="linear",
            ),
            f.ints(0, 1),
        ),
        "f32[3*N,M]",
    ),
    "mean": (lambda f: f("ReduceMean", "x", f.ints(0)), "f32[1,M]"),
    "triangle": (lambda f: f("Trilu", "x", f.constant(1)), "f32[N,M]"),
    "one-hot": (
        lambda f: f("OneHot", f("ArgMax", "x", axis=1, keepdims=0), scalar(f, 1), f.constant(np.array([0, 1], "f4"))),
        "f32[N,M]",
    ),
    "sizes in floats": (lambda f: f("Div", "x", f("Sqrt", cast(f, scalar(f, 1), 1))), "f32[N,M]"),
    "flatten": (lambda f: f("Flatten", f("Unsqueeze", "x", f.ints(1)), axis=2), "f32[N,M]"),
}


@pytest.mark.parametrize("name", SHAPED)
def test_shapes_are_of_names(name: str) -> None:
    proto = shaped(SHAPED[name][0])
    document = read(proto)
    assert str(document.head.outputs[0].type) == SHAPED[name][1]
    for shape in ((2, 2), (3, 5), (8, 4)):
        x = np.random.default_rng(0).standard_normal(shape).astype("f4")
        (y,) = by_runtime(proto.SerializeToString(), {"x": x}).values()
        gradient = api.vjp(document, "x", "y")
        for values in (api.evaluate(document, {"x": x}), by_runtime(onnx_bytes(document), {"x": x})):
            np.testing.assert_allclose(values["y"], y, 1e-6, 1e-6)
        point = {"x": x, **{str(i.key): np.ones_like(y) for i in gradient.inputs.values() if i.key.path}}
        expected = api.evaluate(gradient, point)
        for key, value in by_runtime(
            onnx_bytes(gradient), {k: v for k, v in point.items() if k in map(str, gradient.inputs)}
        ).items():
            np.testing.assert_allclose(value, expected[key], 1e-5, 1e-6)


EXPRESSIONS = [
    *("N", "2*N+M", "N*M-1", "N//2", "(N+1)//2*M", "N%3", "N%M", "N//M", "max(N,M)", "min(2*N,M+3)", "(N-5)//2+3", "max(N-4,0)"),
    *("5-N%4", "K", "K//8*3", "K//2", "(N-M)//3+M", "max((N-M)//K+1,0)"),
]


def test_expressions_are_computed_at_run_time_as_sizes_are() -> None:
    """K is a multiple of 4 of at least 4; N is read off an axis of N, M off one of 2*M+1."""
    nodes = [{"op": "size", "inputs": [], "attrs": {"expression": text, "dtype": "i64"}} for text in EXPRESSIONS]
    inputs = [{"key": "x", "type": "f32[N,2*M+1]"}, {"key": "y", "type": "f32[K]"}]
    outputs = [{"key": f"s{k}", "value": k + 2} for k in range(len(nodes))]
    graph = {"name": "f", "inputs": inputs, "nodes": nodes, "outputs": outputs}
    plain_ = {"tidu": 1, "sizes": {"K": {"min": 4, "multiple_of": 4}}, "graphs": [graph]}
    document, _ = parse_document(json.dumps(plain_).encode(), "f.json")
    data = onnx_bytes(document)
    for n, m, k in ((1, 1, 4), (2, 5, 8), (7, 3, 20), (4, 4, 32)):
        given = {"x": np.zeros((n, 2 * m + 1), "f4"), "y": np.zeros(k, "f4")}
        due = api.evaluate(document, given)
        for key, value in by_runtime(data, given).items():
            assert value == due[key], EXPRESSIONS[int(key[1:])]


# Bounds.


BOUNDED: dict[str, tuple[Any, dict[str, Any]]] = {
    "windows fit": (
        lambda f: f("MaxPool", f("Unsqueeze", "x", f.ints(0, 1)), kernel_shape=[3, 2]),
        {"N": {"min": 3}, "M": {"min": 2}},
    ),
    "a place is there": (lambda f: f("Gather", "x", f.constant(4), axis=0), {"N": {"min": 5}}),
    "a place from the end": (lambda f: f("Gather", "x", f.constant(-4), axis=0), {"N": {"min": 4}}),
    "a table is long enough": (
        lambda f: f("Add", "x", f("Slice", f.weight(16, 1), f.ints(0), vector(f, 0), f.ints(0))),
        {"N": {"max": 16}},
    ),
    "halves fit": (
        lambda f: f("Add", "x", f("Tile", f("Slice", "x", f.ints(0), f("Div", vector(f, 1), f.ints(2)), f.ints(1)), f.ints(1, 2))),
        {"M": {"multiple_of": 2}},
    ),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_names_have_the_bounds_that_nodes_need(name: str) -> None:
    proto = shaped(BOUNDED[name][0])
    document = read(proto)
    assert to_plain(document)["sizes"] == BOUNDED[name][1]
    x = np.random.default_rng(0).standard_normal((8, 8)).astype("f4")
    (y,) = by_runtime(proto.SerializeToString(), {"x": x}).values()
    np.testing.assert_allclose(api.evaluate(document, {"x": x})["y"], y, 1e-6)


# Refusals.


REFUSED: dict[str, tuple[Any, str]] = {
    "broadcasting": (
        lambda f: f("Add", "x", f.weight(5, 1)),
        r"node 0 \(Add\): .*sizes N and 5 are the same.*: load_onnx\(MODEL, dims=\{'N': 5\}\)",
    ),
    "reshape": (lambda f: f("Reshape", "x", f.ints(6, 4)), r"node 0 \(Reshape\): .*N, M.* dims=\{'N': 8, 'M': 8\}"),
    "cubic": (
        lambda f: f("Resize", f("Unsqueeze", "x", f.ints(0, 1)), "", f.constant(np.array([1, 1, 2, 2], "f4")), mode="cubic"),
        r"\(Resize\): resizes an axis of N elements to 2\*N by 'cubic'.* dims=",
    ),
    "matrices": (lambda f: f("Det", "x"), r"\(Det\): .*dims="),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_decided_names_sizes_and_the_way_out(name: str) -> None:
    with pytest.raises(DocumentError, match=REFUSED[name][1]) as caught:
        read(shaped(REFUSED[name][0]))
    assert "\n" not in str(caught.value)


def pooled(rows: int) -> Any:
    """Maxima of a number of rows of images whose height is open."""
    return lambda f: f("MaxPool", "x", kernel_shape=[rows, 1], strides=[rows, 1])


RANGES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "squeeze": (lambda f: f("Squeeze", pooled(16)(f), f.ints(2)), ["b", 2, "h", "w"], {"h": {"min": 16, "max": 31}}),
    "matrices": (
        lambda f: f("MatMul", f("Flatten", pooled(4)(f)), f.weight(480, 3)),
        ["b", 2, "h", 20],
        {"h": {"min": 48, "max": 51}},
    ),
    "layer": (lambda f: f("Gemm", f("Flatten", pooled(4)(f)), f.weight(480, 3)), ["b", 2, "h", 20], {"h": {"min": 48, "max": 51}}),
}


@pytest.mark.parametrize("name", RANGES)
def test_a_size_has_the_range_in_which_nodes_fit(name: str) -> None:
    build, shape, bounds = RANGES[name]
    proto = shaped(build, shape)
    document = read(proto)
    assert bounds_to_file(document) == {"sizes": bounds}
    low, high = bounds["h"].values()
    for h in (low, high):
        x = np.random.default_rng(h).standard_normal((3, 2, h, 20)).astype("f4")
        (y,) = by_runtime(proto.SerializeToString(), {"x": x}).values()
        np.testing.assert_allclose(api.evaluate(document, {"x": x})["y"], y, 1e-4, 1e-4)
        np.testing.assert_allclose(by_runtime(onnx_bytes(document), {"x": x})["y"], y, 1e-4, 1e-4)
    with pytest.raises(TiduError, match=f"got {high + 1} for h, but the size h is at most {high}"):
        api.evaluate(document, {"x": np.zeros((3, 2, high + 1, 20), "f4")})


NUMBERS: dict[str, tuple[Any, Any, str]] = {
    "matrices": (
        lambda f: f("MatMul", f("Flatten", "x"), f.weight(480, 3)), ["b", 2, None, 5], r"input_types=\{'x': 'f32\[b,2,48,5\]'\}",
    ),
    "reshape": (lambda f: f("Reshape", "x", f.ints(0, 480)), ["b", 2, "h", 5], r"the size: load_onnx\(MODEL, dims=\{'h': 48\}\)"),
    "two": (lambda f: f("Reshape", "x", f.ints(0, 480)), ["b", 2, "h", "w"], r"the sizes: .*'h': 8, 'w': 8\}\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_the_number_that_a_model_needs_is_said(name: str) -> None:
    build, shape, words = NUMBERS[name]
    with pytest.raises(DocumentError, match=words):
        read(shaped(build, shape))


def test_sizes_without_a_name_are_chosen_by_types() -> None:
    with pytest.raises(DocumentError, match=r"load_onnx\(MODEL, dims=\{'M': 8\}, input_types=\{'x': 'f32\[8,8\]'\}\)"):
        read(shaped(REFUSED["reshape"][0], (None, "M")))


def test_what_has_no_form_at_run_time_is_refused_by_name() -> None:
    node = {"op": "lu", "inputs": [0]}
    graph = {"name": "f", "inputs": [{"key": "x", "type": "f64[N,N]"}], "nodes": [node], "outputs": [{"key": "y", "value": 1}]}
    document, _ = parse_document(json.dumps({"tidu": 1, "graphs": [graph]}).encode(), "f.json")
    with pytest.raises(TiduError, match=r"graph 'f', node 0 \(lu\): .*N.*size=\{'N': 32\} in load or specialize"):
        onnx_bytes(document)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("op", ["cumprod", "cummax", "cummin", "cumlogsumexp"])
def test_what_is_cumulative_runs_at_each_length(op: str, reverse: bool) -> None:
    """Values and gradients along an axis of open size: steps that double would need a number of them."""
    node = {"op": op, "inputs": [0], "attrs": {"axis": 1, "reverse": reverse}}
    graph = {"name": "f", "inputs": [{"key": "x", "type": "f64[2,N]"}], "nodes": [node], "outputs": [{"key": "y", "value": 1}]}
    document, _ = parse_document(json.dumps({"tidu": 1, "graphs": [graph]}).encode(), "f.json")
    gradient = api.vjp(document, "x", value=True)
    data = onnx_bytes(gradient)
    for n in (1, 2, 7):
        rng = np.random.default_rng(n)
        given = {"x": rng.integers(-3, 4, (2, n)).astype(float), "y@-1": rng.standard_normal((2, n))}
        assert difference(gradient, by_runtime(data, given), given) == ""
