"""Messages on nodes whose inputs do not fit: they name the node, its operator, its inputs and the way out."""

import re

import numpy as np
import onnx
import pytest

from tidu_cli.adapters.onnx.contents import Choices
from tidu_cli.adapters.onnx.reading.importer import import_model
from tidu_cli.errors import TiduError

RAW = re.compile(r"unpack|tuple index|cannot reshape|zip\(\)|objects cannot|operands could not|NoneType|cannot convert float")
"""How Python and NumPy say it."""

CASES = [
    ("(float[H, 3] x) => (float[N] y) { s = Constant<value_ints = [2, 5]>() y = Reshape<allowzero = 1>(x, s) }", {"H": 4},
     "node 1 'last' (Reshape): 12 elements, of shape [4, 3]: does not reshape to [2, 5]; perhaps the model takes other sizes"),
    ("(float[H, 3] x, float[4] b) => (float[N] y) { y = Add(x, b) }", {"H": 4},
     "node 0 'last' (Add): shapes [4, 3] and [4] do not broadcast together; perhaps the model takes other sizes than are chosen by "
     "dims and input_types (its inputs: 'x' f32[4,3], 'b' f32[4])"),
    ("(float[3, 3] x, float[4] b) => (float[N] y) { y = Div(x, b) }", {},
     "node 0 'last' (Div): shapes [3, 3] and [4] do not broadcast together (its inputs: 'x' f32[3,3], 'b' f32[4])"),
    ("(int32[3, 3] x, int32[4] b) => (int32[N] y) { y = Div(x, b) }", {},
     "node 0 'last' (Div): shapes [3, 3] and [4] do not broadcast together (its inputs: 'x' i32[3,3], 'b' i32[4])"),
    ("(float[3, 3] x, int64[2] k) => (float[N] y) { a = Constant<value_ints = [5]>() y = ReduceSum(x, a) }", {},
     "node 1 'last' (ReduceSum): axis 5 is out of range for an array of 2 axes (its inputs: 'x' f32[3,3], 'a' i64[1] = [5])"),
    ("(float[6] x, float[1, 8, 2] w, float[1, 8, 2] r) => (float[N] y) { y = LSTM<hidden_size = 2>(x, w, r) }", {},
     "node 0 'last' (LSTM): its input 'X' has the shape [6], and three axes are due: steps, batch, features"),
    ("(float[3, 2] x, float[2] s) => (float[N] y) { y = Scan<num_scan_inputs = 1, scan_input_axes = [0, 1], "
     "body = b (float[2] c, float[2] v) => (float[2] d) { d = Add(c, v) }>(s, x) }", {},
     "node 0 'last' (Scan): its attribute 'scan_input_axes' has 2 numbers for 1 arrays"),
    ("(float[3] x) => (int64[N, M] y) { y = NonZero(x) }", {},
     "node 0 'last' (NonZero): the shape of its result depends on the values of 'x', and a graph has known shapes; make it an "
     "input: load_onnx(MODEL, cut='y', input_types={'y': ...}), or fix them: load_onnx(MODEL, set={'x': ...})"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sizes", "told"), CASES, ids=lambda value: None)
def test_what_does_not_fit_is_told_in_words_of_the_model(text, sizes, told):
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}')
    model.graph.node[-1].name = "last"
    with pytest.raises(TiduError) as error:
        import_model(model, Choices(sizes=sizes))
    assert f"graph 'g', {told}" in str(error.value), str(error.value)
    assert not RAW.search(str(error.value))


def test_sequences_and_what_is_left_out_are_described():
    text = "(float[3] x) => (float[N] y) { s = SequenceConstruct(x) k = Constant<value_ints = [1, 2]>() y = SequenceAt(s, k) }"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}')
    with pytest.raises(TiduError, match=re.escape("(its inputs: 's' a sequence of 1, 'k' i64[2] = [1, 2])")):
        import_model(model, Choices(values={k: np.ones(3, "f4") for k in ()}))
