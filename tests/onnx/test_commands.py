"""Models of ONNX in commands and in Python: what goldens do not show."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import tidu_cli
from tests.cli.running import ROOT, invoke, process, succeed
from tests.onnx.models import STORED, model, network, rounding
from tidu_cli.adapters.onnx.loading import N_FIRST, is_onnx
from tidu_cli.adapters.onnx.writing.model import OPSET, onnx_files
from tidu_cli.cli.candidates import candidates
from tidu_cli.cli.format_options import words_read
from tidu_cli.cli.main import COMMANDS, cli
from tidu_cli.errors import DocumentError, UnknownNameError
from tidu_cli.formats import write
from tidu_cli.formats.write import format_document
from tidu_cli.graph.types import parse_type

CASES = ROOT / "tests" / "cli" / "cases" / "onnx"
MLP = CASES / "mlp.onnx"
SIZED = ("--dim", "batch=2")


@pytest.fixture
def sized(tmp_path):
    """The network for two inputs, as a model."""
    path = tmp_path / "sized.onnx"
    succeed("convert", MLP, *SIZED, "-o", path)
    return path


def test_stored_models_are_those_of_the_tests():
    for name, make in STORED.items():
        assert (CASES / f"{name}.onnx").read_bytes() == make().SerializeToString(deterministic=True), name


ARGUMENTS = {
    "linearize": ("--wrt", "x"),
    "eval": ("--set", "x=[[1,2,3],[4,5,6]]"),
    **dict.fromkeys(("grad", "jvp", "vjp", "hvp", "jacobian", "hessian", "step", "sparsity"), ("--wrt", "x")),
    "minimize": ("--wrt", "x", "--set", "x=[[1,2,3],[4,5,6]]", "--method", "least_squares", "--quiet"),
    "dot": ("--format", "dot"),
}


@pytest.mark.parametrize(
    "command", [c for c in COMMANDS if c not in ("build", "schema", "ops", "completion", "help", "derivative")]
)
def test_every_command_reads_models(command, sized, tmp_path):
    arguments = ARGUMENTS.get(command, ())
    if command == "diff":
        arguments = (sized,)
    if command in ("transpose", "matrix"):
        linear = tmp_path / "linear.onnx"
        succeed("linearize", sized, "--wrt", "x", "-o", linear)
        sized = linear
    data = sized.read_bytes()
    as_json = tmp_path / "same.json"
    succeed("convert", sized, "-o", as_json)
    if command == "view":
        succeed("view", sized, "-o", tmp_path / "view.html")
        return
    printed = {}
    for file, given in ((sized, b""), ("-", data), (as_json, b"")):
        to = () if command in ("eval", "dot", "show", "info", "check", "diff") else ("--format", "json")
        printed[str(file)] = succeed(command, file, *arguments, *to, input=given)
    of_model, of_stdin, of_json = printed.values()
    if command not in ("show", "info", "check", "diff"):  # which name files and formats
        assert of_model == of_stdin == of_json


@pytest.mark.parametrize("command", ["linearize", "grad", "convert", "materialize", "resolve"])
def test_what_comes_in_as_a_model_goes_out_as_one(command, sized):
    out = succeed(command, sized, *ARGUMENTS.get(command, ()))
    onnx.checker.check_model(onnx.load_model_from_string(out), full_check=True)
    again = succeed(command, sized, *ARGUMENTS.get(command, ()), "--format", "json")
    assert succeed("convert", "--format", "json", input=out) == again


def test_a_model_goes_to_no_terminal(sized):
    code = f"import pty, sys\nstatus = pty.spawn([sys.argv[1], 'convert', {str(sized)!r}])\nsys.exit(status >> 8)"
    done = subprocess.run([sys.executable, "-c", code, sys.executable.replace("python", "tidu")], capture_output=True, check=False)
    assert done.returncode == 1
    assert b"onnx is not printed to a terminal" in done.stdout + done.stderr


def test_text_is_no_model():
    for text in (b'{"tidu": 1}', b"[1]", b" 3", b"Bad text that goes on and on", b"result: 3", b":", b"\xef\xbb\xbf{}", b""):
        assert not is_onnx(text[:N_FIRST])
    for made in (network(), rounding()):
        assert is_onnx(made.SerializeToString()[:N_FIRST])
        made.ClearField("ir_version")
        assert is_onnx(made.SerializeToString()[:N_FIRST])
        made.ClearField("producer_name")
        assert is_onnx(made.SerializeToString()[:N_FIRST])


BLOCKED = """
import sys
sys.modules["onnx"] = None
sys.argv[0] = "tidu"
from tidu_cli.__main__ import main
main()
"""


def blocked(*args):
    return subprocess.run([sys.executable, "-c", BLOCKED, *map(str, args)], capture_output=True, text=True, check=False, cwd=ROOT)


def test_without_the_package():
    for args in (("info", MLP), ("convert", "samples/f.json", "--format", "onnx"), ("check", MLP)):
        done = blocked(*args)
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        assert done.stderr.endswith("models of ONNX need the package onnx: pip install 'tidu[onnx]'\n")
    assert blocked("info", "samples/f.json").returncode == 0


def test_without_the_runtime():
    code = BLOCKED.replace('"onnx"', '"onnxruntime"')
    command = [sys.executable, "-c", code, "check", str(MLP), *SIZED, "--against", "onnxruntime"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "tidu check: error: --against onnxruntime needs that package: pip install onnxruntime\n"


def test_against_a_runtime():
    report = json.loads(succeed("check", MLP, *SIZED, "--against", "onnxruntime", "--json"))[str(MLP)]
    assert report["ok"]
    assert report["against"]["score"]["error"] < 1e-6
    values = json.dumps({"x": [[1, 2, 3], [4, 5, 6]]}).encode()
    assert b"onnxruntime" in succeed("check", MLP, *SIZED, "--against", "onnxruntime", "--inputs", "-", input=values)
    fixed = succeed("check", MLP, "--set", "x=[[1,2,3]]", "--against", "onnxruntime")
    assert b": score 0" in fixed or b": score " in fixed


def test_against_a_runtime_that_computes_something_else(tmp_path, monkeypatch):
    from tidu_cli.adapters.onnx import remarks

    monkeypatch.setattr(remarks, "evaluate", lambda graph, values: {o.key: np.full(o.type.shape, 7.0) for o in graph.outputs})
    result = invoke("check", MLP, *SIZED, "--against", "onnxruntime")
    assert result.exit_code == 1
    assert "error: " in result.stderr
    assert "output 'score' has relative error" in result.stderr
    monkeypatch.setattr(remarks, "evaluate", lambda graph, values: {o.key: np.zeros((3, 3)) for o in graph.outputs})
    assert "has the shape [3, 3], and [] there" in invoke("check", MLP, *SIZED, "--against", "onnxruntime").stderr


def test_against_a_runtime_that_refuses(tmp_path):
    made = model([helper.make_node("Neg", ["x"], ["y"])], [("x", [2])], [("y", [3])])
    path = tmp_path / "odd.onnx"
    path.write_bytes(made.SerializeToString())
    result = invoke("check", path, "--against", "onnxruntime")
    assert result.exit_code in (0, 1)
    assert result.stderr.count("\n") <= 1


def test_typed_data_may_be_set():
    typed = succeed("convert", MLP, "--set", 'x={"type": "f32[1,3]", "data": [1, 2, 3]}')
    assert typed == succeed("convert", MLP, "--set", "x=[[1,2,3]]")


@pytest.mark.parametrize("name", ["x", "fc1.weight"])
def test_inputs_and_initializers_are_not_cut(name):
    said = invoke("convert", MLP, *SIZED, "--cut", name).stderr
    assert f"'{name}' is an input or initializer, not an inner value to cut at" in said


def test_check_tries_derivatives_in_double():
    report = json.loads(succeed("check", MLP, *SIZED, "--numeric", "--json"))[str(MLP)]
    assert report["numeric"]["jvp"]["error"] < 1e-9
    assert report["numeric"]["adjoint"]["tolerance"] == 1e-11
    given = json.dumps({"x": [[1, 2, 3], [4, 5, 6]]}).encode()
    assert json.loads(succeed("check", MLP, *SIZED, "--numeric", "--json", "--inputs", "-", input=given))[str(MLP)]["ok"]
    typed = succeed("check", MLP, "--input-type", "x=f32[2,3]", "--numeric")
    assert b"numeric: jvp" in typed


def test_the_greatest_element_of_a_softmax_costs_no_verdict(tmp_path):
    """Readers subtract it by way of stop_gradient."""
    nodes = [helper.make_node("Softmax", ["x"], ["p"]), helper.make_node("ReduceLogSumExp", ["p"], ["y"], keepdims=0)]
    path = tmp_path / "m.onnx"
    path.write_bytes(model(nodes, [("x", [2, 3])], [("y", [])]).SerializeToString())
    numeric = json.loads(succeed("check", path, "--numeric", "--json"))[str(path)]["numeric"]
    assert all(law["ok"] and law["error"] is not None for law in numeric.values())


def test_notes_of_the_reader_are_told(tmp_path):
    scale, zero = numpy_helper.from_array(np.float32(0.5), "scale"), numpy_helper.from_array(np.uint8(3), "zero")
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], name="quantize"),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
    ]
    path = tmp_path / "m.onnx"
    path.write_bytes(model(nodes, [("x", [2])], [("y", [2])], initializer=[scale, zero]).SerializeToString())
    for command in ("info", "check", "convert"):
        result = invoke(command, path)
        assert result.exit_code == 0
        assert result.stderr.count("\n") == result.stderr.count("note: ") == 1
        assert "QuantizeLinear: rounds to integers" in result.stderr
        assert invoke(command, path, "--quiet").stderr == ""
    assert "derivatives: zero beyond 1 QuantizeLinear" in invoke("check", path).stdout


def test_weights_of_a_model_without(tmp_path):
    path = tmp_path / "r.onnx"
    path.write_bytes(rounding().SerializeToString())
    result = invoke("convert", path, "--weights", tmp_path / "w.npz", "-o", tmp_path / "r.json")
    assert result.exit_code == 0
    assert "note: " in result.stderr
    with np.load(tmp_path / "w.npz") as weights:
        assert weights.files == []


def test_weights_stay_as_they_were_where_the_document_is_not_written(tmp_path):
    weights = tmp_path / "w.npz"
    weights.write_bytes(b"of the user")
    result = invoke("convert", MLP, *SIZED, "--weights", weights, "-o", tmp_path / "nowhere" / "m.json")
    assert result.exit_code == 1
    assert weights.read_bytes() == b"of the user"
    assert [p.name for p in tmp_path.iterdir()] == ["w.npz"]


def test_weights_are_those_of_the_model(tmp_path):
    succeed("convert", MLP, *SIZED, "--weights", tmp_path / "w.npz", "-o", tmp_path / "m.json")
    with np.load(tmp_path / "w.npz") as file:
        weights = dict(file)
    for tensor in network().graph.initializer:
        np.testing.assert_array_equal(weights[tensor.name], numpy_helper.to_array(tensor))
    imported = tidu_cli.load_onnx(MLP, dims={"batch": 2}, weights=True)
    assert format_document(imported.document, "json") == (tmp_path / "m.json").read_bytes()
    assert sorted(imported.weights) == sorted(weights)


def test_options_of_readers_are_told_as_words():
    options = {"dims": {"a": 1, "b=c": 2}, "input_types": {"x": parse_type("f32[2]")}, "weights": "w.npz", "cut": ["h", "t"]}
    words = ["--dim", "a=1", "--dim", "b=c=2", "--input-type", "x=f32[2]", "--weights", "w.npz", "--cut", "h", "--cut", "t"]
    assert words_read(options) == words


def test_in_python(tmp_path):
    document = tidu_cli.load_onnx(str(MLP), dims={"batch": 2}, cut="h1", cast="f64").document
    assert [str(i.type) for i in document.head.inputs] == ["f64[2,4]"]
    typed = tidu_cli.load_onnx(MLP, input_types={"x": "f32[3,3]"}).document
    assert str(typed.head.inputs[0].type) == "f32[3,3]"
    x = np.ones((1, 3), np.float32)
    fixed = tidu_cli.load_onnx(MLP, set={"x": x}).document
    assert tidu_cli.evaluate(fixed)["score"] == tidu_cli.evaluate(tidu_cli.load_onnx(MLP, dims={"batch": 1}).document, x=x)["score"]
    gradient = tidu_cli.grad(document, "h1")
    tidu_cli.save(gradient, tmp_path / "G.ONNX")
    assert format_document(tidu_cli.load(tmp_path / "G.ONNX"), "json") == format_document(gradient, "json")
    assert [str(i.type) for i in tidu_cli.load(MLP).head.inputs] == ["f32[batch,3]"]
    with pytest.raises(DocumentError, match="no open dimension 'bach'; did you mean 'batch'"):
        tidu_cli.load_onnx(MLP, dims={"bach": 1})


def test_patterns(sized, tmp_path):
    with_weights = tmp_path / "m.json"
    succeed("convert", MLP, *SIZED, "--weights", tmp_path / "w.npz", "-o", with_weights)

    def outputs(*wrt):
        options = [word for key in wrt for word in ("--wrt", key)]
        return [str(o.key) for o in tidu_cli.load(save(succeed("grad", with_weights, "--quiet", *options))).head.outputs]

    def save(data):
        (tmp_path / "g.json").write_bytes(data)
        return tmp_path / "g.json"

    assert outputs("fc1.*") == ["fc1.weight@-1", "fc1.bias@-1"]
    assert outputs("fc?.weight", "x") == ["fc1.weight@-1", "fc2.weight@-1", "x@-1"]
    assert outputs("fc[13].*") == ["fc1.weight@-1", "fc1.bias@-1"]
    assert outputs("x", "*") == ["x@-1", "fc1.weight@-1", "fc1.bias@-1", "fc2.weight@-1"]


def test_a_key_that_looks_like_a_pattern_is_itself(tmp_path):
    made = model(
        [helper.make_node("Mul", ["a*", "ab"], ["m"]), helper.make_node("ReduceSum", ["m"], ["y"], keepdims=0)],
        [("a*", [2]), ("ab", [2])],
        [("y", [])],
    )
    path = tmp_path / "m.onnx"
    path.write_bytes(made.SerializeToString())
    assert [str(o.key) for o in tidu_cli.load(_written(tmp_path, succeed("grad", path, "--wrt", "a*"))).head.outputs] == ["a*@-1"]
    assert len(tidu_cli.load(_written(tmp_path, succeed("grad", path, "--wrt", "a?"))).head.outputs) == 2
    assert [str(o.key) for o in tidu_cli.grad(tidu_cli.load(path), "a*").head.outputs] == ["a*@-1"]
    assert len(tidu_cli.grad(tidu_cli.load(path), "a?").head.outputs) == 2
    with pytest.raises(UnknownNameError, match="no input to differentiate by matches 'b\\?'"):
        tidu_cli.grad(tidu_cli.load(path), "b?")


def _written(folder, data):
    (folder / "g.onnx").write_bytes(data)
    return folder / "g.onnx"


def test_a_large_model_has_its_constants_beside_it(tmp_path, monkeypatch):
    document = tidu_cli.load_onnx(MLP, dims={"batch": 300}, set={}).document
    large = tidu_cli.trace(lambda x: x * np.arange(900.0), "f64[900]")
    monkeypatch.setattr("tidu_cli.adapters.onnx.writing.model.onnx_files", lambda d, at, *more: onnx_files(d, at, *more, most=1000))
    tidu_cli.save(document, tmp_path / "small.onnx")
    assert [p.name for p in tmp_path.iterdir()] == ["small.onnx"]
    written = write.write_document(large, str(tmp_path / "large.onnx"), "onnx")
    assert written == (tmp_path / "large.onnx").stat().st_size < 7000
    assert (tmp_path / "large.onnx.data").stat().st_size == 7200
    assert format_document(tidu_cli.load(tmp_path / "large.onnx"), "json") == format_document(large, "json")
    with pytest.raises(DocumentError):
        write.write_document(large, str(tmp_path / "nowhere" / "large.onnx"), "onnx")


def test_help_says_which_operator_set_is_written():
    assert f"[default: {OPSET}]" in succeed("convert", "--help").decode()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("convert FILE --dim ", ["batch="]),
        ("convert FILE --dim batch=2 --dim ", []),
        ("convert FILE --input-type ", ["x="]),
        ("convert FILE --set ", ["x="]),
        ("convert FILE --cut ", ["h0", "h1", "h2", "s", "score"]),
        ("convert FILE --cut h1 --cut h", ["h0", "h2"]),
        ("convert FILE --cast ", ["f64", "f32"]),
        ("convert FILE --format ", ["json", "msgpack", "onnx", "mlir", "mlirbc", "c", "py"]),
        ("check FILE --against ", ["onnxruntime"]),
        ("grad FILE --output ", ["score"]),
        ("info tests/cli/cases/onnx/m", ["tests/cli/cases/onnx/mlp.onnx"]),
    ],
)
def test_completion(line, words, monkeypatch):
    monkeypatch.chdir(ROOT)
    given = [str(MLP.relative_to(ROOT)) if word == "FILE" else word for word in line.split(" ")]
    assert [candidate.word for candidate in candidates(cli, given, len(given) - 1)] == words


def test_a_model_from_a_pipe():
    assert process("convert", "-", *SIZED, input=MLP.read_bytes()).returncode == 0


def test_the_refusal_of_open_sizes_says_what_to_type(tmp_path):
    nodes = [helper.make_node("Add", ["x", "y"], ["z"])]
    file = tmp_path / "m.onnx"
    file.write_bytes(model(nodes, [("x", [None, 3]), ("y", ["n", 3])], [("z", None)]).SerializeToString())
    told = invoke("info", file).stderr
    assert "are the same; choose the sizes: " in told
    options = told.split("tidu convert MODEL ")[1].split(" (")[0].split()
    assert options == ["--dim", "n=8", "--input-type", "x=f32[8,3]"]
    succeed("convert", file, *options, "-o", tmp_path / "sized.onnx")
