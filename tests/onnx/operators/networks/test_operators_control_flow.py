"""If, Loop and Scan as onnx's reference evaluator and onnxruntime have them, and their derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from tests.onnx.operators.derivatives import require_right
from tests.onnx.operators.node_tests import imported
from tidu_cli.adapters.onnx.contents import Choices
from tidu_cli.adapters.onnx.reading.importer import import_model
from tidu_cli.adapters.onnx.reading.node import NeedsValueError
from tidu_cli.api import evaluate
from tidu_cli.errors import TiduError

HEAD = '<ir_version: 8, opset_import: ["" : {opset}]>\n'

BODY = """(int64 i, bool c, float[3] s) => (bool c_out, float[3] s_out, float[3] row) {
    c_out = Identity(c)
    p = Mul(s, w)
    s_out = Sin(p)
    row = Add(s_out, x)
}"""

MODELS = {
    "scan": """g (float[3] x, float[3] w) => (float[3] y, float[5, 3] rows) {
        n = Constant<value_int = 5>() t = Constant<value = bool {1}>()
        y, rows = Loop<body = b BODY>(n, t, x)
    }""",
    "invariant": """g (float[3] x, float[2] unused) => (float[3] y, int64[1] k) {
        n = Constant<value_int = 4>() one = Constant<value_ints = [3]>()
        y, k = Loop<body = b (int64 i, bool c, float[3] s, int64[1] m) => (bool d, float[3] s_out, int64[1] m_out) {
            d = Identity(c) z = ConstantOfShape<value = float[1] {1.5}>(m) s_out = Mul(s, z) m_out = Identity(m)
        }>(n, "", x, one)
    }""",
    "counter": """g (float[3] x) => (float[3] y) {
        n = Constant<value_int = 4>()
        y = Loop<body = b (int64 i, bool c, float[3] s) => (bool d, float[3] s_out) {
            d = Identity(c) f = Cast<to = 1>(i) s_out = Add(s, f)
        }>(n, "", x)
    }""",
    "unrolled": """g (float[3] x) => (float[9] y) {
        n = Constant<value_int = 2>() e = Constant<value_floats = [0.5, 1.0, 2.0]>()
        y = Loop<body = b (int64 i, bool c, float[n] s) => (bool d, float[m] s_out) {
            d = Identity(c) f = Sin(x) s_out = Concat<axis = 0>(s, f)
        }>(n, "", e)
    }""",
    "while": """g (float[3] x, float limit) => (float[3] y) {
        t = Constant<value = bool {1}>()
        y = Loop<body = b (int64 i, bool c, float[3] s) => (bool d, float[3] s_out) {
            k = Constant<value = float {1.5}>() s_out = Mul(s, k) q = ReduceSumSquare<keepdims = 0>(s_out) d = Less(q, limit)
        }>("", t, x)
    }""",
    "bounded": """g (float[3] x, float limit, bool c0) => (float[3] y) {
        n = Constant<value_int = 3>()
        y = Loop<body = b (int64 i, bool c, float[3] s) => (bool d, float[3] s_out) {
            k = Constant<value = float {1.5}>() s_out = Mul(s, k) q = ReduceSumSquare<keepdims = 0>(s_out) d = Less(q, limit)
        }>(n, c0, x)
    }""",
    "counted": """g (float[3] x, float[3] w) => (float[3] y, int64 last, float[5, 3] rows) {
        t = Constant<value = bool {1}>() z = Constant<value = int64 {0}>() one = Constant<value = int64 {1}>()
        n = Constant<value = int64 {5}>() big = Constant<value_int = 9223372036854775807>()
        last, y, rows = Loop<body = b (int64 k, bool c, int64 i, float[3] s) => (bool d, int64 j, float[3] s_out, float[3] row) {
            j = Add(i, one) e = Less(j, n) f = Less(k, big) d = And(e, f) p = Mul(s, w) s_out = Sin(p) row = Add(s_out, x)
        }>(big, t, z, x)
    }""",
    "halved": """g (float[3] x, float[3] w) => (float[3] y, float[6, 3] rows) {
        t = Constant<value = bool {1}>() z = Constant<value = float {40.0}>()
        a, y, rows = Loop<body = b (int64 k, bool c, float i, float[3] s) => (bool d, float j, float[3] s_out, float[3] row) {
            two = Constant<value = float {2.0}>() one = Constant<value = float {1.0}>()
            j = Div(i, two) d = Greater(j, one) s_out = Mul(s, w) row = Sin(s_out)
        }>("", t, z, x)
    }""",
    "first of two": """g (float[3] x) => (float[3] y, float[3, 3] rows) {
        n = Constant<value_int = 3>() z = Constant<value = int64 {0}>()
        i, y, rows = Loop<body = b (int64 k, bool c, int64 i, float[3] s) => (bool d, int64 j, float[3] s_out, float[3] row) {
            one = Constant<value = int64 {1}>() most = Constant<value = int64 {5}>() j = Add(i, one) d = Less(k, most)
            s_out = Sin(s) row = Cos(s)
        }>(n, "", z, x)
    }""",
    "none": """g (float[3] x) => (float[3] y, float[0, 3] rows) {
        n = Constant<value_int = 5>() t = Constant<value = bool {0}>()
        y, rows = Loop<body = b (int64 i, bool c, float[3] s) => (bool d, float[3] s_out, float[3] row) {
            d = Identity(c) s_out = Sin(s) row = Cos(s)
        }>(n, t, x)
    }""",
    "once": """g (float[3] x) => (float[3] y, float[1, 3] rows) {
        n = Constant<value_int = 5>() t = Constant<value = bool {1}>()
        y, rows = Loop<body = b (int64 i, bool c, float[3] s) => (bool d, float[3] s_out, float[3] row) {
            d = Constant<value = bool {0}>() s_out = Sin(s) row = Cos(s)
        }>(n, t, x)
    }""",
    "if": """g (float[3] x, float[3] w, bool c) => (float[3] y, float z) {
        y, z = If<then_branch = a () => (float[3] u, float v) { u = Sin(x) v = ReduceSum<keepdims = 0>(w) },
            else_branch = b () => (float[3] u2, float v2) { q = Mul(x, w) u2 = Cos(q) v2 = Constant<value = float {2.0}>() }>(c)
    }""",
    "nested": """g (float[3] x, float[3] w, bool c) => (float[3] y) {
        y = If<then_branch = a () => (float[3] u) {
            n = Constant<value_int = 3>() t = Constant<value = bool {1}>()
            u, rows = Loop<body = b BODY>(n, t, x)
        }, else_branch = e () => (float[3] u2) { u2 = Mul(x, w) }>(c)
    }""",
    "loops": """g (float[3] x, float[3] w) => (float[3] y, float[2, 3, 3] rows) {
        n = Constant<value_int = 2>() t = Constant<value = bool {1}>()
        y, rows = Loop<body = o (int64 i, bool c, float[3] s) => (bool d, float[3] s_out, float[3, 3] r) {
            d = Identity(c) m = Constant<value_int = 3>()
            q, r = Loop<body = b BODY>(m, d, s)
            s_out = If<then_branch = h () => (float[3] u) { u = Mul(q, s) },
                else_branch = k () => (float[3] v) { v = Identity(q) }>(d)
        }>(n, t, x)
    }""",
    "scan9": """g (float[3] s0, float[3, 4] a, float[4, 3] b) => (float[3] s, float[3, 4] ys, float[4, 3] zs) {
        s, ys, zs = Scan<num_scan_inputs = 2, scan_input_axes = [-1, 0], scan_input_directions = [1, 0],
            scan_output_axes = [-1, 0], scan_output_directions = [0, 1],
            body = b (float[3] t, float[3] u, float[3] v) => (float[3] t2, float[3] y, float[3] z) {
                p = Mul(t, u) t2 = Sin(p) y = Add(t2, v) z = Mul(t2, v)
            }>(s0, a, b)
    }""",
    "back": """g (float[3] s0, float[4, 3] a) => (float[3] s, float[4, 3] ys) {
        s, ys = Scan<num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1],
            body = b (float[3] t, float[3] u) => (float[3] t2, float[3] y) {
                p = Mul(t, u) t2 = Sin(p) y = Add(t2, u)
            }>(s0, a)
    }""",
    "no state": """g (float[4, 3] a) => (float[4, 3] ys) {
        ys = Scan<num_scan_inputs = 1, body = b (float[3] u) => (float[3] y) { y = Sin(u) }>(a)
    }""",
}

SCAN8 = """g (LENGTHS float[2, 3] s0, float[2, 4, 3] a) => (float[2, 3] s, float[2, 4, 3] ys) {
    s, ys = Scan<num_scan_inputs = 1, directions = [DIRECTION],
        body = b (float[3] t, float[3] u) => (float[3] t2, float[3] y) {
            p = Mul(t, u) t2 = Sin(p) y = Add(t2, u)
        }>(NAME, s0, a)
}"""


def parsed(text: str, opset: int = 17) -> Any:
    return onnx.parser.parse_model(HEAD.replace("{opset}", str(opset)) + text.replace("BODY", BODY))


def drawn(model: Any, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    values = {}
    for i in model.graph.input:
        shape = [d.dim_value for d in i.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type)
        x = rng.uniform(0.5, 1.5, shape)
        values[i.name] = np.asarray(x > 1 if dtype.kind == "b" else x).astype(dtype)
    if "limit" in values:
        values["limit"] = np.asarray(40, np.float32)
    return values


def require_agreement(model: Any, given: dict[str, Any], rtol: float = 2e-6) -> None:
    import onnxruntime

    names = [o.name for o in model.graph.output]
    expected = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(names, given)
    values = evaluate(imported(model, given).document, given)
    for name, y in zip(names, expected, strict=True):
        x = np.asarray(values[name])
        assert (x.dtype, x.shape) == (y.dtype, y.shape), name
        np.testing.assert_allclose(x, y, rtol, 1e-6, err_msg=name)


@pytest.mark.parametrize("opset", [13, 17, 21])
@pytest.mark.parametrize("name", MODELS)
def test_as_onnxruntime(name: str, opset: int) -> None:
    model = parsed(MODELS[name], opset)
    for seed in range(4):
        require_agreement(model, drawn(model, seed))


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("while", "bounded")])
def test_derivatives(name: str) -> None:
    model = parsed(MODELS[name])
    for seed in range(2):
        require_right(model, drawn(model, seed))


@pytest.mark.parametrize("direction", ["0", "1"])
@pytest.mark.parametrize("lengths", [None, [4, 2]])
def test_scan_of_a_batch(direction: str, lengths: list[int] | None) -> None:
    text = SCAN8.replace("LENGTHS", "int64[2] n," if lengths else "").replace("NAME", "n" if lengths else '""')
    model = parsed(text.replace("DIRECTION", direction), 8)
    given = drawn(model, 0) | ({"n": np.array(lengths)} if lengths else {})
    require_agreement(model, given)
    require_right(model, given)


def test_what_loops_become() -> None:
    def ops(name: str) -> set[str]:
        model = parsed(MODELS[name])
        return {case.op for case, _ in imported(model, drawn(model, 0)).document.head.nodes()}

    assert "scan" in ops("scan")
    assert "while" in ops("while")
    assert not {"scan", "while"} & ops("unrolled")
    assert "cond" in ops("nested")


def test_loops_whose_count_is_known_are_scans() -> None:
    for name in ("counted", "halved", "first of two"):
        model = parsed(MODELS[name])
        reading = imported(model, {})
        ops = [case.op for case, _ in reading.document.head.nodes()]
        assert "scan" in ops and "while" not in ops and not reading.notes, name


def test_what_a_count_depends_on_is_named() -> None:
    text = MODELS["counted"].replace("float[3] w)", "float[3] w, int64 n)").replace("n = Constant<value = int64 {5}>()", "")
    model = parsed(text)
    model.graph.node[-1].name = "steps"
    with pytest.raises(NeedsValueError) as error:
        import_model(model, Choices())
    assert str(error.value).endswith(
        "'steps' (Loop): stacks results of steps, whose number depends on 'n'; shapes are known here: "
        "load_onnx(MODEL, set={'n': ...})"
    )
    assert error.value.inputs == ("n",)
    given = drawn(model, 0) | {"n": np.array(4)}
    model.graph.output[2].type.tensor_type.shape.dim[0].Clear()
    require_agreement(model, given)
    alone = parsed(text.replace(", float[5, 3] rows)", ")").replace("y, rows = Loop", "y = Loop"))
    reading = import_model(alone, Choices())
    assert "Loop: runs as many steps as 'n' says, and so has no reverse mode; load_onnx(MODEL, set={'n': ...})" in reading.notes[0]


def test_counting_has_a_limit() -> None:
    """A count that takes long to find makes a while loop, as before."""
    text = MODELS["counted"].replace("int64 {5}", "int64 {60000}").replace("y, rows = Loop", "y = Loop")
    model = parsed(text.replace(", float[5, 3] rows)", ")"))
    ops = [case.op for case, _ in import_model(model, Choices()).document.head.nodes()]
    assert "while" in ops


def test_a_known_branch_is_the_only_one() -> None:
    text = MODELS["if"].replace(", bool c)", ")").replace("y, z = If", "c = Constant<value = bool {1}>() y, z = If")
    document = imported(parsed(text), {}).document
    assert not {"cond", "cos", "mul"} & {case.op for case, _ in document.head.nodes()}


def test_what_is_refused() -> None:
    for text, told in (
        (MODELS["if"].replace("v2 = Constant<value = float {2.0}>()", "v2 = ReduceSum<keepdims = 1>(w)"), "'y.z'"),
        (MODELS["while"].replace("float[3] s_out)", "float[3] s_out, float[3] row)").replace("d = Less", "row = Sin(s) d = Less")
         .replace("=> (float[3] y)", "=> (float[3] y, float[m, 3] rows)").replace("y = Loop", "y, rows = Loop"), "stacks"),
        (MODELS["scan"].replace("BODY", BODY).replace("Sin(p)", "Concat<axis = 0>(p, p)")
         .replace("Add(s_out, x)", "Add(s, x)").replace("value_int = 5", "value_int = 5000"),
         "'s' as f32[3], but its graph gives f32[6]"),
    ):  # fmt: skip
        model = parsed(text)
        with pytest.raises(TiduError) as error:
            imported(model, drawn(model, 0))
        assert told in str(error.value)
        assert "\n" not in str(error.value)
