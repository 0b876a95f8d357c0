"""An operation of one file, with a definition and no table entry anywhere, in all engines and formats."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.programs import needs

ROOT = Path(__file__).parents[2]

FILE = """
from tidu_cli.graph.types import FLOATS
from tidu_cli.rules.batching import itself
from tidu_cli.rules.families import elementwise_examples, primitive, require_dtype
from tidu_cli.rules.terms import op

sinh, cosh = map(op, ("sinh", "cosh"))


def _types(attrs, operands):
    require_dtype(FLOATS, operands)
    return (operands[0], operands[0])


PRIMITIVES = (
    primitive(
        "sinh_cosh",
        1,
        _types,
        lambda np, attrs, operands, results: lambda x: (np.sinh(x), np.cosh(x)),
        jvp=lambda node: [node.results[1] * node.tangent, node.results[0] * node.tangent],
        batch=itself("sinh_cosh"),
        n_results=lambda attrs, n: 2,
        definition=lambda attrs, operands: [sinh(operands[0]), cosh(operands[0])],
        dtypes=FLOATS,
        one_type=True,
        examples=elementwise_examples(1),
        formula="sinh x, cosh x",
        summary="hyperbolic sine and cosine",
    ),
)
"""

SAMPLE = {
    "tidu": 1,
    "graphs": [
        {
            "name": "f",
            "inputs": [{"key": "x", "type": "f64[3]"}],
            "nodes": [{"op": "sinh_cosh", "inputs": [0]}],
            "outputs": [{"key": "s", "value": 1, "type": "f64[3]"}, {"key": "c", "value": 2, "type": "f64[3]"}],
        }
    ],
}
X = [0.1, -1.0, 2.0]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A copy of tidu with the operation in it, as a function of a command's words, that gives its output."""
    tree = tmp_path_factory.mktemp("tree")
    for name in ("tidu_cli", "tools"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tree / "tidu_cli" / "lax" / "elementwise" / "hyperbolic_pair.py").write_text(FILE)
    (tree / "sample.json").write_text(json.dumps(SAMPLE))
    environment = os.environ | {"PYTHONPATH": str(tree)}

    def run(*words):
        done = subprocess.run([sys.executable, *words], cwd=tree, env=environment, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    run("tools/index.py")
    return run


def evaluated(run, *words):
    values = json.loads(run("-m", "tidu_cli", "eval", *words, "--set", f"x={X}"))
    np.testing.assert_allclose(values["s"], np.sinh(X), rtol=1e-12)
    np.testing.assert_allclose(values["c"], np.cosh(X), rtol=1e-12)


@pytest.mark.check
@pytest.mark.parametrize(
    "engine", ["numpy", pytest.param("native", marks=needs("llvmlite")), pytest.param("xla", marks=needs("jax"))]
)
def test_engines(run, engine):
    evaluated(run, "sample.json", "--engine", engine)


@pytest.mark.check
@pytest.mark.parametrize("name", [pytest.param("f.onnx", marks=needs("onnx")), pytest.param("f.mlir", marks=needs("jax"))])
def test_formats(run, name):
    """Read by what the file runs."""
    run("-m", "tidu_cli", "convert", "sample.json", "-o", name)
    evaluated(run, name, "--plain")


@pytest.mark.check
@needs("onnx", "onnxruntime")
def test_another_runtime(run):
    run("-m", "tidu_cli", "convert", "sample.json", "-o", "g.onnx")
    code = f"import numpy, onnxruntime; print(*onnxruntime.InferenceSession('g.onnx').run(None, {{'x': numpy.array({X})}}))"
    printed = run("-c", f"import numpy; numpy.set_printoptions(precision=17); {code}").decode()
    numbers = np.array(printed.replace("[", " ").replace("]", " ").split(), float)
    np.testing.assert_allclose(numbers, [*np.sinh(X), *np.cosh(X)], rtol=1e-12)


@pytest.mark.check
def test_checks(run):
    assert b"types 0, definition 0, batch 0" in run("-m", "tidu_cli", "check", "--ops", "sinh_cosh")
