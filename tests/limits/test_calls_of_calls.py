"""Functions that call functions twice, thirty levels: in every format a few kB are refused at once, in one line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import document, graph
from tests.custom.making import body, unary
from tests.limits.bounded import refused
from tests.programs import needs

LEVELS = 30


def own_ops(path: Path) -> list[Any]:
    ops = {f"f{k}": unary(body("x", [(inner, 0), (inner, 1)], {"y": 2}), "f64[]") for k, inner in enumerate(inner_names("sin"))}
    path.with_suffix(".json").write_bytes(document(graph([("f0", 0)], outputs=[("y", 1)]), ops=ops))
    return ["linearize", path.with_suffix(".json"), "--wrt", "x"]


def onnx(path: Path) -> list[Any]:
    from onnx import TensorProto, helper, save

    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("here", 1)]

    def call(name: str, x: str, y: str) -> Any:
        return helper.make_node(name, [x], [y], domain="here" if name.startswith("f") else "")

    functions = [
        helper.make_function("here", f"f{k}", ["a"], ["c"], [call(inner, "a", "b"), call(inner, "b", "c")], opsets)
        for k, inner in enumerate(inner_names("Sin"))
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.DOUBLE, []) for name in "xy")
    made = helper.make_graph([call("f0", "x", "y")], "g", [x], [y])
    save(helper.make_model(made, functions=functions, opset_imports=opsets, ir_version=9), str(path.with_suffix(".onnx")))
    return ["info", path.with_suffix(".onnx")]


def stablehlo(path: Path) -> list[Any]:
    def function(name: str, callee: str) -> str:
        call = f"func.call @{callee}(%{{}}) : (tensor<f32>) -> tensor<f32>"
        if not callee.startswith("f"):
            call = f"stablehlo.{callee} %{{}} : tensor<f32>"
        lines = f"%1 = {call.format(0)}\n%2 = {call.format(1)}\nreturn %2 : tensor<f32>"
        return f"func.func @{name}(%0: tensor<f32>) -> tensor<f32> {{\n{lines}\n}}\n"

    named = [function("main" if k == 0 else f"f{k}", inner) for k, inner in enumerate(inner_names("sine"))]
    path.with_suffix(".mlir").write_text("".join(named))
    return ["info", path.with_suffix(".mlir")]


def jax(path: Path) -> list[Any]:
    lines = ["import jax", "f = jax.numpy.sin", f"for _ in range({LEVELS}):"]
    path.with_suffix(".py").write_text("\n".join([*lines, "    f = (lambda g: jax.jit(lambda x: g(g(x))))(f)", ""]))
    return ["build", "--jax", f"{path.with_suffix('.py')}:f", "-i", "x:f32[]"]


def inner_names(last: str) -> list[str]:
    """What each function calls: the next one, and the last one an operation."""
    return [*(f"f{k}" for k in range(1, LEVELS)), last]


FORMATS = [
    own_ops,
    pytest.param(onnx, marks=needs("onnx")),
    pytest.param(stablehlo, marks=needs("jax")),
    pytest.param(jax, marks=needs("jax")),
]


@pytest.mark.parametrize("written", FORMATS)
def test_they_are_refused_before_they_are_written_out(written, tmp_path):
    words = written(tmp_path / "calls")
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 10_000
    line = refused(*words, "--max-expansion", "5k")
    assert "more than the limit of 5,000; allow more with --max-expansion N" in line
    n = max(int(number.replace(",", "")) for number in re.findall(r" (\d[\d,]*) ", line))
    assert n > 2 ** (LEVELS - 1), "all that is written is counted, not what was written out when the limit was reached"
