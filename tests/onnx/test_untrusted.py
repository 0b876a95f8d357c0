"""Models that are damaged, hostile or much larger than their files: one line, and no more memory than there may be."""

from __future__ import annotations

import tracemalloc
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import AttributeProto, ModelProto, TensorProto, helper, numpy_helper

from tests.cli.running import invoke
from tests.onnx.models import model, network
from tests.onnx.operators.node_tests import cases
from tests.tiers import examples
from tidu_cli.errors import DocumentError, TiduError
from tidu_cli.formats.read import parse_document, parse_imported
from tidu_cli.limits import Limits, limited

MEMORY = 2**26
HUGE = 10**6
INT64 = TensorProto.INT64
node = helper.make_node


def ints(name, *values):
    return numpy_helper.from_array(np.asarray(values, np.int64), name)


def floats(name, *values):
    return numpy_helper.from_array(np.asarray(values, np.float32), name)


def scalar(name, value, dtype=np.int64):
    return numpy_helper.from_array(np.asarray(value, dtype), name)


def numbers(*values):
    return [scalar(name, value, np.float32) for name, value in zip("abc", values, strict=False)]


def one_node(op_type, operands, *initializers, opset=17, outputs=("y",), shape=(4,), **attributes):
    """A model of one node of x, f32[4] or of another shape, and of these initializers."""
    made = node(op_type, operands, list(outputs), name="n", **attributes)
    return model([made], [("x", list(shape))], [(outputs[0], None)], opset, initializer=list(initializers))


def told(proto, **limits) -> str:
    """What the refusal of a model says, which is one line."""
    data = proto if isinstance(proto, bytes) else proto.SerializeToString()
    with limited(Limits(**{"memory": MEMORY, **limits})), pytest.raises(TiduError) as caught:
        parse_document(data, "m.onnx")
    message = str(caught.value)
    assert message.startswith("m.onnx: ")
    assert message.isprintable()
    return message


def read_or_refused(data: bytes):
    """The document of a model, or None if it is refused: in one line, which names the file."""
    try:
        with limited(Limits(memory=MEMORY)):
            return parse_document(data, "m.onnx")[0]
    except TiduError as error:
        message = str(error)
    assert message.startswith("m.onnx: ")
    assert message.isprintable()
    return None


GIGANTIC = {
    "ConstantOfShape": one_node("ConstantOfShape", ["s"], ints("s", HUGE, HUGE)),
    "ConstantOfShape of what overflows": one_node("ConstantOfShape", ["s"], ints("s", *[2**62] * 4)),
    "Tile": one_node("Tile", ["x", "s"], ints("s", HUGE**2)),
    "Tile of a constant": one_node("Tile", ["c", "s"], floats("c", 1, 2, 3), ints("s", HUGE**2)),
    "Expand": one_node("Expand", ["x", "s"], ints("s", HUGE, HUGE, 4)),
    "Expand of a constant": one_node("Expand", ["c", "s"], floats("c", 1, 2, 3), ints("s", HUGE, HUGE, 3)),
    "Range": one_node("Range", ["a", "b", "c"], scalar("a", 0), scalar("b", 2**62), scalar("c", 1)),
    "Range of floats": one_node("Range", ["a", "b", "c"], *numbers(0, 1e30, 1)),
    "Range without end": one_node("Range", ["a", "b", "c"], scalar("a", 0), scalar("b", 5), scalar("c", 0)),
    "Pad": one_node("Pad", ["x", "s"], ints("s", HUGE**2, HUGE**2)),
    "Pad of a constant": one_node("Pad", ["c", "s"], floats("c", 1, 2), ints("s", HUGE**2, 0), mode="edge"),
    "Resize": one_node("Resize", ["x", "", "k"], floats("k", 1e30)),
    "Resize to sizes": one_node("Resize", ["x", "", "", "s"], ints("s", HUGE**2)),
    "Resize, cubic": one_node("Resize", ["x", "", "", "s"], ints("s", HUGE**2), mode="cubic"),
    "Upsample": one_node("Upsample", ["x", "k"], floats("k", 1e15), opset=9),
    "OneHot": one_node("OneHot", ["i", "d", "v"], ints("i", 1, 2), scalar("d", HUGE**2), floats("v", 0, 1)),
    "HannWindow": one_node("HannWindow", ["s"], scalar("s", HUGE**2)),
    "MelWeightMatrix": one_node(
        "MelWeightMatrix",
        list("abcde"),
        *[scalar(n, HUGE**2) for n in "abc"],
        scalar("d", 0.0, np.float32),
        scalar("e", 9.0, np.float32),
    ),
    "DFT": one_node("DFT", ["x", "s"], scalar("s", HUGE**2), shape=(1, 4, 1)),
    "EyeLike": one_node("EyeLike", ["c"], numpy_helper.from_array(np.zeros((40000, 1), np.float32)[:, :0], "c")),
    "AffineGrid": one_node("AffineGrid", ["x", "s"], ints("s", 1, 1, HUGE, HUGE), opset=20, shape=(1, 2, 3)),
    "ConvTranspose": one_node("ConvTranspose", ["x", "w"], floats("w", [[[1]]]), shape=(1, 1, 4), strides=[HUGE**2]),
    "Conv": one_node("Conv", ["x", "w"], floats("w", [[[1]]]), shape=(1, 1, 4), pads=[HUGE**2, HUGE**2]),
    "MaxPool": one_node("MaxPool", ["x"], shape=(1, 1, 4), kernel_shape=[HUGE**2], pads=[HUGE**2, HUGE**2]),
    "AveragePool": one_node("AveragePool", ["x"], shape=(1, 1, 4), kernel_shape=[2], pads=[HUGE**2, HUGE**2]),
    "MaxUnpool": one_node(
        "MaxUnpool", ["x", "i", "s"], ints("i", [[[1]]]), ints("s", 1, 1, HUGE**2), shape=(1, 1, 1), kernel_shape=[1]
    ),
    "Col2Im": one_node("Col2Im", ["x", "s", "b"], ints("s", HUGE, HUGE), ints("b", 1, 1), opset=18, shape=(1, 1, 4)),
    "Split": one_node("Split", ["x"], opset=18, num_outputs=2**31),
    "TopK": one_node("TopK", ["x", "k"], ints("k", HUGE**2), outputs=("y", "i")),
    "Reshape": one_node("Reshape", ["x", "s"], ints("s", HUGE, HUGE)),
    "Einsum": one_node("Einsum", ["x"] * 12, equation=",".join("abcdefghijkl") + "->abcdefghijkl", shape=(999,)),
    "Mul": model(
        [node("Reshape", ["c", "s"], ["r"]), node("Mul", ["c", "r"], ["y"])],
        [],
        [("y", None)],
        initializer=[numpy_helper.from_array(np.arange(60000, dtype=np.float32), "c"), ints("s", 60000, 1)],
    ),
}


@pytest.mark.parametrize("name", GIGANTIC)
def test_what_is_small_and_stands_for_much(name):
    tracemalloc.start()
    try:
        document = read_or_refused(GIGANTIC[name].SerializeToString())
        # Large values may stand in a graph, which says so itself: evaluating it is refused.
        assert document is None or sum(graph.n_nodes for graph in document.graphs) < 1000
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()


def test_doubling_without_end():
    nodes = [node("Concat", [f"x{k}", f"x{k}"], [f"x{k + 1}"], axis=0) for k in range(80)]
    for initializer in ([], [floats("x0", 1, 2)]):
        inputs = [] if initializer else [("x0", [2])]
        assert "node " in told(model(nodes, inputs, [("x80", None)], initializer=initializer))


def function(name, *nodes, inputs=("a",), outputs=("b",)):
    return helper.make_function(
        "here", name, list(inputs), list(outputs), list(nodes), [helper.make_opsetid("", 17), helper.make_opsetid("here", 1)]
    )


def test_functions_that_call_themselves_or_multiply():
    here = {"opsets": [helper.make_opsetid("here", 1)]}
    call = node("f0", ["x"], ["y"], domain="here")
    itself = [function("f0", node("f0", ["a"], ["b"], domain="here"))]
    assert "nest deeper" in told(model([call], [("x", [1])], [("y", [1])], functions=itself, **here))
    many = [
        function(f"f{k}", node(f"f{k + 1}", ["a"], ["c"], domain="here"), node(f"f{k + 1}", ["c"], ["b"], domain="here"))
        for k in range(40)
    ]
    many.append(function("f40", node("Neg", ["a"], ["b"])))
    assert "TIDU_MAX_EXPANSION" in told(model([call], [("x", [1])], [("y", [1])], functions=many, **here), expansion=500)


def test_graphs_in_graphs():
    result = helper.make_tensor_value_info("y", 1, [4])
    inner = helper.make_graph([node("Neg", ["x"], ["y"])], "g", [], [result])
    for _ in range(24):
        branch = node(
            "If", ["c"], ["y"], then_branch=inner, else_branch=helper.make_graph([node("Abs", ["x"], ["y"])], "h", [], [result])
        )
        inner = helper.make_graph([branch], "g", [], [result])
    told_of = parse_document(model([branch], [("x", [4]), ("c", [], TensorProto.BOOL)], [("y", [4])]).SerializeToString(), "m")
    assert told_of[0].head.n_nodes == 1


def test_cycles_duplicates_and_names_of_nothing():
    cyclic = [node("Add", ["x", "b"], ["a"]), node("Add", ["x", "a"], ["b"])]
    assert "reads the undefined value 'b'" in told(model(cyclic, [("x", [4])], [("b", [4])]))
    twice = [node("Neg", ["x"], ["y"]), node("Abs", ["x"], ["y"])]
    assert "computes 'y'" in told(model(twice, [("x", [4])], [("y", [4])]))
    assert "computes 'x'" in told(model([node("Neg", ["x"], ["x"])], [("x", [4])], [("x", [4])]))
    assert "computed by no node" in told(model([node("Neg", ["x"], ["z"])], [("x", [4])], [("y", [4])]))
    assert "'x'" in told(model([node("Neg", ["x"], ["y"])], [("x", [4]), ("x", [5])], [("y", [4])]))
    assert "'y'" in told(model([node("Neg", ["x"], ["y"])], [("x", [4])], [("y", [4]), ("y", [4])]))
    assert "'w'" in told(model([node("Neg", ["w"], ["y"])], [], [("y", [4])], initializer=[floats("w", 1), floats("w", 2)]))


def tensor(**fields):
    proto = TensorProto(name="w", data_type=1)
    for name, value in fields.items():
        field = getattr(proto, name)
        field.extend(value) if hasattr(field, "extend") else setattr(proto, name, value)
    return proto


@pytest.mark.parametrize(
    "fields",
    [
        {"dims": [4], "raw_data": b"123"},
        {"dims": [4], "raw_data": b"1" * 17},
        {"dims": [4], "raw_data": b""},
        {"dims": [4], "float_data": [1.0]},
        {"dims": [2**40], "raw_data": b"1234"},
        {"dims": [2**62, 2**62], "raw_data": b"1234"},
        {"dims": [2**62, 0, 2**62], "raw_data": b"1"},
        {"dims": [-1], "raw_data": b"1234"},
        {"dims": [-1, -1], "float_data": [1.0]},
        {"dims": [1], "data_type": 8, "string_data": [b"text"]},
        {"dims": [1], "data_type": 99, "raw_data": b"1234"},
        {"dims": [1], "data_type": 0},
        {"dims": [1], "data_type": 22, "raw_data": b"1"},
        {"dims": [3], "data_type": 10, "int32_data": [1, 2, 2**31 - 1]},
        {"dims": [2], "data_type": 9, "int32_data": [7, -1, 5]},
        {"dims": [1] * 100, "float_data": [1.0]},
    ],
)
def test_tensors_of_wrong_sizes_and_types(fields):
    for place in ("initializer", "attribute"):
        nodes = [node("Add", ["x", "w"], ["y"])]
        if place == "attribute":
            nodes.insert(0, node("Constant", [], ["w"], value=tensor(**fields)))
        proto = model(nodes, [("x", [4])], [("y", [4])], initializer=[tensor(**fields)] if place == "initializer" else [])
        told(proto)


def test_negative_and_huge_dimensions():
    for shape in ([-4], [2**62], [2**62] * 3, [2**40] * 2):
        message = told(model([node("Neg", ["x"], ["y"])], [("x", shape)], [("y", None)]))
        assert "x" in message


def test_operator_sets_that_cannot_be():
    for version in (0, -1, 10**6, 2**31, 2**62, -(2**62)):
        proto = network()
        proto.opset_import[0].version = version
        told(proto)
    proto = network()
    del proto.opset_import[:]
    assert "opset_import" in told(proto)


def test_attributes_that_are_unknown_or_of_another_type():
    for value in (1, 2.0, "three", [4], [5.0], ["six"], floats("t", 7), helper.make_graph([], "g", [], [])):
        for op_type in ("Softmax", "LeakyRelu", "Cast", "Transpose", "Concat"):
            for name in ("axis", "alpha", "to", "perm", "nonsense"):
                proto = one_node(op_type, ["x"], **{name: value})
                read_or_refused(proto.SerializeToString())
    for op_type, name in (("If", "then_branch"), ("Loop", "body"), ("Scan", "body"), ("Constant", "value")):
        message = told(one_node(op_type, ["x"][: op_type != "Constant"], **{name: 3, "else_branch": 3}, num_scan_inputs=1))
        assert "is not of the type that is due" in message or "takes" in message
    odd = one_node("Softmax", ["x"], axis=0)
    odd.graph.node[0].attribute[0].type = AttributeProto.TYPE_PROTO
    told(odd)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e38, 1e-45])
def test_attributes_that_are_no_numbers(value):
    for op_type in ("LeakyRelu", "Elu", "Celu", "ThresholdedRelu", "HardSigmoid", "LRN"):
        proto = one_node(op_type, ["x"], alpha=value, shape=(1, 4, 1), **({"size": 1} if op_type == "LRN" else {}))
        read_or_refused(proto.SerializeToString())


def test_names_that_are_no_text():
    data = network().SerializeToString()
    for name in (b"fc1.weight", b"MatMul", b"batch", b"score", b"mlp", b"h0", b"mm1", b"tests"):
        assert "text" in told(data.replace(name, b"\xff" * len(name)))


def test_names_of_any_characters():
    for name in ("a\nb", "\x1b[31m", "\u202e", "@", "x@", "@@", " ", "x" * 100_000, "🦆"):
        proto = model([node("Neg", [name], ["y"]), node("Nonsense", ["y"], ["z"], name=name)], [(name, [4])], [("z", [4])])
        told(proto)
        proto = model([node("Neg", [name], ["y"])], [(name, [4])], [("y", [4])])
        result = invoke("convert", "-", "--format", "json", input=proto.SerializeToString())
        assert result.exit_code == 0
        assert invoke("convert", "-", "--format", "json", input=result.stdout_bytes).stdout_bytes == result.stdout_bytes


@pytest.mark.parametrize("n", [10**5, pytest.param(10**6, marks=pytest.mark.campaign)])
def test_a_million_nodes(n):
    proto = network()
    data = proto.SerializeToString() + b"\x3a" + varint(2 * n) + b"\x0a\x00" * n
    assert "TIDU_MAX_NODES" in told(data, nodes=10**4)
    with pytest.raises(TiduError, match=r"node 5 \(\)"):
        parse_imported(data, "m.onnx", options={"dims": {"batch": 2}})


def varint(n):
    encoded = bytearray()
    while n > 127:
        encoded.append(n & 127 | 128)
        n >>= 7
    return bytes([*encoded, n])


def test_what_is_no_model():
    for data in (b"\x08", b"\x08\x08", b"\x08\x07\x3a", b"\x3a\x00", b"\x08\x07\x3a\x00\x42\x00", b"\x08" * 1000, b"B\x01\x00r"):
        told(data)
    nested = b""
    for _ in range(200):  # graph in attribute in node in graph ...
        for tag in (b"\x32", b"\x2a", b"\x0a"):
            nested = tag + varint(len(nested)) + nested
    told(b"\x08\x08\x3a" + varint(len(nested)) + nested + b"\x42\x02\x10\x11")


# Mutations.


SEEDS = [network().SerializeToString(), *(m.SerializeToString() for m in GIGANTIC.values())]


@given(st.sampled_from(SEEDS), st.data())
def test_mutated_bytes(data, draws):
    changed = bytearray(data)
    for _ in range(draws.draw(st.integers(1, 4))):
        at = draws.draw(st.integers(0, len(changed) - 1))
        changed[at : at + draws.draw(st.integers(0, 2))] = draws.draw(st.binary(max_size=3))
        changed = changed or bytearray(b"\x08")
    read_or_refused(bytes(changed))


@given(st.integers(0, len(SEEDS[0])))
def test_truncated(end):
    read_or_refused(SEEDS[0][:end])


@given(st.data())
def test_mutated_fields(draws):
    proto = ModelProto.FromString(draws.draw(st.sampled_from(SEEDS)))
    nodes = proto.graph.node
    names = [*{name for n in nodes for name in (*n.input, *n.output)}, "", "nowhere"]
    one = draws.draw(st.sampled_from(list(nodes)))
    kind = draws.draw(st.integers(0, 5))
    if kind == 0 and one.input:
        one.input[draws.draw(st.integers(0, len(one.input) - 1))] = draws.draw(st.sampled_from(names))
    elif kind == 1:
        one.output[0] = draws.draw(st.sampled_from(names))
    elif kind == 2:
        one.op_type = draws.draw(st.sampled_from(["Add", "If", "Loop", "Scan", "LSTM", "Constant", "Gather", "Reshape", "NonZero"]))
    elif kind == 3 and proto.graph.initializer:
        dims = draws.draw(st.sampled_from(list(proto.graph.initializer))).dims
        dims[:] = draws.draw(st.lists(st.sampled_from([-1, 0, 1, 3, 2**40]), max_size=3))
    elif kind == 4:
        proto.opset_import[0].version = draws.draw(st.integers(1, 30))
    else:
        one.attribute.append(helper.make_attribute("axis", draws.draw(st.sampled_from([0, -9, 2**62, 1.5, "a", [1, 2]]))))
    read_or_refused(proto.SerializeToString())


@pytest.mark.campaign
@settings(max_examples=examples(100_000), deadline=None)
@given(st.integers(0, 2000), st.data())
def test_mutated_bytes_of_every_operator(number, draws):
    models = node_models()
    changed = bytearray(models[number % len(models)])
    for _ in range(draws.draw(st.integers(1, 4))):
        at = draws.draw(st.integers(0, len(changed)))
        changed[at : at + draws.draw(st.integers(0, 8))] = draws.draw(st.binary(max_size=8))
    read_or_refused(bytes(changed) or b"\x08")


@cache
def node_models() -> list[bytes]:
    return [data for case in cases().values() if len(data := case.model.SerializeToString()) < 4000]


def test_choices_are_refused_for_other_formats():
    data = b'{"tidu": 1, "graphs": []}'
    for options in ({"dims": {"n": 1}}, {"weights": True}, {"cut": ("x",)}):
        with pytest.raises(DocumentError, match="is for models of ONNX"):
            parse_imported(data, "f.json", options=options)
