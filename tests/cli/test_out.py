"""-o: what a name says of the format, and what is never written over."""

from __future__ import annotations

import gzip
import os

import pytest

from tests.cli.running import ROOT, F, invoke, succeed

PLAIN = (ROOT / "samples" / "f.json").read_bytes()
SOURCES = {
    "model.py": b"import numpy as np\n\ndef f(x):\n    return x\n",
    "notes": b"to do: everything\n",
    "Makefile": b"all:\n\ttrue\n",
    "data.tsv": b"1\t2\n",
    "bits": bytes(range(7, 99)),
}
NO_FORMAT = "ends in '.py', which is not a format of the result"


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("command", ["convert", "eval --set x=3", "grad --wrt x", "dot"])
def test_a_file_that_is_no_result_is_not_written_over(tmp_path, name, command):
    out = tmp_path / name
    out.write_bytes(SOURCES[name])
    verb, *options = command.split()
    format_ = [] if name in ("notes", "Makefile", "bits", "model.py") else ["--format", "dot" if verb == "dot" else "json"]
    result = invoke(verb, F, *options, "-o", out, *format_)
    assert result.exit_code == 2
    of_documents = name == "model.py" and verb in ("eval", "dot")
    told = "exists, and is not a document or other result, so it is not written over"
    assert f"'{out}' {NO_FORMAT if of_documents else told}" in result.stderr
    assert (out.read_bytes(), os.listdir(tmp_path)) == (SOURCES[name], [name])


@pytest.mark.parametrize(
    "name", ["notes.txt", "notes.txt.gz", "y.json", "y.json.gz", "y.msgpack", "y.npz", "f.onnx", "f.mlir", "f.svg", "f.html"]
)
def test_a_suffix_does_not_make_a_result_of_a_file_that_is_none(tmp_path, name):
    out = tmp_path / name
    verb = {"onnx": "convert", "mlir": "convert", "svg": "dot", "html": "view"}.get(name[2:], "eval --set x=3")
    for notes in (b"to do: everything\n", b"buy  milk [3] x\n"):
        out.write_bytes(notes)
        result = invoke(*verb.split(), F, "-o", out)
        assert (result.exit_code, out.read_bytes(), os.listdir(tmp_path)) == (2, notes, [name])
        assert f"'{out}' exists, and is not a document or other result, so it is not written over" in result.stderr


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("f64[]", "3"),
        ("bool[2]", "[true,false]"),
        ("c64[2,2]", "[[1,2],[3,4]]"),
        ("datetime[D]", '"2026-11-27"'),
        ("duration[h][3]", "[1,2,3]"),
    ],
)
def test_a_table_is_replaced_by_a_table(tmp_path, type_, value):
    out = tmp_path / "y.txt"
    for _ in range(2):
        succeed("eval", "x", "-i", f"x:{type_}", "--set", f"x={value}", "-o", out)
    assert out.read_bytes() == succeed("eval", "x", "-i", f"x:{type_}", "--set", f"x={value}", "--format", "table")


@pytest.mark.parametrize("content", [b"", PLAIN, gzip.compress(PLAIN), b"  \n" + PLAIN, b"digraph {}", b"\x81\xa4tidu\x01"])
@pytest.mark.parametrize("name", ["result", "tmp.u7Gz3Kq"])
def test_a_result_without_a_suffix_of_a_format_is_written_over(tmp_path, content, name):
    out = tmp_path / name
    out.write_bytes(content)
    succeed("convert", F, "-o", out, "--format", "json")
    assert out.read_bytes() == PLAIN


def test_a_file_that_is_read_may_be_replaced(tmp_path):
    out = tmp_path / "f.json"
    out.write_bytes(PLAIN)
    succeed("linearize", out, "--wrt", "x", "-o", out)
    assert out.read_bytes() != PLAIN and b'"tidu": 1' in out.read_bytes()


def test_a_model_is_replaced_by_none_but_a_model(tmp_path):
    model = tmp_path / "model"
    model.write_text(
        "module @f {\n  func.func public @main(%x: tensor<f64>) -> tensor<f64> {\n    return %x : tensor<f64>\n  }\n}\n"
    )
    before = model.read_bytes()
    result = invoke("convert", F, "-o", model, "--format", "json")
    assert result.exit_code == 2 and "is a model (mlir), which json does not replace" in result.stderr
    assert model.read_bytes() == before


@pytest.mark.parametrize(
    ("command", "name", "told"),
    [
        ("view", "f.svg", "end it in .html; pictures are what tidu dot draws"),
        ("dot", "f.html", "end it in .dot, .gv, .svg, .png or .pdf; pages are what tidu view makes"),
        ("convert", "f.npz", "end it in .json, .msgpack, .onnx, .mlir, .mlirbc, .c or .py; values are what tidu eval writes"),
        ("convert", "g.jsn", "end it in .json, .msgpack, .onnx, .mlir, .mlirbc, .c or .py, or give --format"),
        ("convert", "f.txt", "end it in .json, .msgpack, .onnx, .mlir, .mlirbc, .c or .py, or give --format"),
        ("convert", "f.txt.gz", "'.txt', which is not a format of the result; end it in .json"),
        ("schema", "f.msgpack", "end it in .json; documents are what tidu convert writes"),
    ],
)
def test_a_suffix_of_another_command_s_format_names_that_command(tmp_path, command, name, told):
    result = invoke(command, *([F] if command != "schema" else []), "-o", tmp_path / name)
    assert result.exit_code == 2 and told in result.stderr and os.listdir(tmp_path) == []


@pytest.mark.parametrize("command", ["view", "dot", "convert", "eval", "grad"])
def test_the_help_says_what_the_suffix_makes(command):
    said = " ".join(succeed(command, "--help").decode().split())
    suffixes = {"view": ".html", "dot": ".svg, .png or .pdf", "eval": ".mtx or .zarr"}.get(command, ".mlirbc")
    assert suffixes in said.partition("Write to this file, whole or not at all:")[2].partition("[default")[0]


def test_compressed_by_the_last_suffix_whatever_the_format(tmp_path):
    for name, expected in (("f.json.gz", PLAIN), ("F.JSON.GZ", PLAIN), ("f.gz", PLAIN)):
        succeed("convert", F, "-o", tmp_path / name)
        assert gzip.decompress((tmp_path / name).read_bytes()) == expected
    once = (tmp_path / "f.json.gz").read_bytes()
    succeed("convert", F, "-o", tmp_path / "f.json.gz")
    assert (tmp_path / "f.json.gz").read_bytes() == once, "no time, no name in it"
    assert (
        succeed("eval", tmp_path / "f.json.gz", "--set", "x=3") == succeed("eval", "--set", "x=3", input=once) == b'{"y": 18.0}\n'
    )
    succeed("eval", F, "--set", "x=3", "-o", tmp_path / "y.npz.gz")
    assert gzip.decompress((tmp_path / "y.npz.gz").read_bytes())[:2] == b"PK"
    succeed("dot", F, "-o", tmp_path / "f.gv.gz")
    assert gzip.decompress((tmp_path / "f.gv.gz").read_bytes()).startswith(b"digraph")
