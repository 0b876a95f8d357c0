"""Sequences and optional values, whose lengths are known when a model is read, as onnxruntime has them; what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.onnx.operators.networks.test_operators_control_flow import drawn, parsed, require_agreement
from tests.onnx.operators.node_tests import imported
from tidu_cli.errors import TiduError

MODELS = {
    "construct": """g (float[3] x, float[3] w) => (float[6] y, int64 n) {
        q = SequenceConstruct(x, w, x) s = Identity(q) one = Constant<value_int = -2>() t = SequenceErase(s, one)
        u = SequenceInsert(t, w) v = SequenceErase(u) y = ConcatFromSequence<axis = 0>(v) n = SequenceLength(u)
    }""",
    "at": """g (float[3] x, float[3] w) => (float[3] y, float[3, 2] z) {
        e = SequenceEmpty() zero = Constant<value_int = 0>() s = SequenceInsert(e, x) t = SequenceInsert(s, w, zero)
        y = SequenceAt(t, zero) z = ConcatFromSequence<axis = -1, new_axis = 1>(t)
    }""",
    "split": """g (float[5, 2] x) => (float[2] y, float[1, 2] z, float[3, 2] u) {
        k = Constant<value_int = 2>() s = SplitToSequence<axis = 0, keepdims = 0>(x) y = SequenceAt(s, k)
        t = SplitToSequence<axis = 0>(x, k) z = SequenceAt(t, k)
        sizes = Constant<value_ints = [3, 2]>() v = SplitToSequence(x, sizes)
        zero = Constant<value_int = 0>() u = SequenceAt(v, zero)
    }""",
    "loop": """g (float[3] x) => (float[4, 3] y) {
        n = Constant<value_int = 4>() e = SequenceEmpty()
        s = Loop<body = b (int64 i, bool c, seq(float[3]) t) => (bool d, seq(float[3]) u) {
            d = Identity(c) f = Cast<to = 1>(i) p = Mul(x, f) u = SequenceInsert(t, p)
        }>(n, "", e)
        y = ConcatFromSequence<axis = 0, new_axis = 1>(s)
    }""",
    "map": """g (float[3] x, float[3] w) => (float[6] y) {
        s = SequenceConstruct(x, w)
        t = SequenceMap<body = b (float[3] u) => (float[3] v) { v = Sin(u) }>(s)
        y = ConcatFromSequence<axis = 0>(t)
    }""",
}


@pytest.mark.parametrize("name", MODELS)
def test_as_onnxruntime(name: str) -> None:
    model = parsed(MODELS[name], 17)
    require_agreement(model, drawn(model, 0))


REFUSED = {
    "g (float[3] x) => (seq(float[3]) s) { s = SequenceConstruct(x, x) }": "output 's' is a sequence",
    "g (float[3] x) => (float[3] y) { s = SequenceConstruct(x, x) y = Sin(s) }": "is given a sequence of arrays",
    "g (float[3] x) => (float[3] y) { s = SequenceConstruct(x) k = Constant<value_int = 3>() y = SequenceAt(s, k) }": "position 3",
    "g (float[3] x) => (float[3] y) { y = RandomNormalLike(x) }": "draws random numbers",
    "g (float[3] x) => (float[3] y) { s = SequenceConstruct(x) y = ReverseSequence(s, x) }": "",
    "g (float[1, 2, 4] b, float[1, 1, 2] s) => (int64[n, 3] y) { y = NonMaxSuppression(b, s) }": "as many results",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(text: str) -> None:
    model: Any = parsed(text, 17)
    with pytest.raises(TiduError) as error:
        imported(model, {name: np.asarray(x) for name, x in drawn(model, 0).items()})
    assert REFUSED[text] in str(error.value)
    assert "\n" not in str(error.value)
