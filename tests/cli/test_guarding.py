"""-o: what a command reads is replaced by nothing of another kind, and a document by no values, by whatever name."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

import tidu_cli
from tests.cli.running import ROOT, F, invoke, succeed
from tidu_cli.cli.main import COMMANDS, cli
from tidu_cli.errors import DocumentError

PLAIN = (ROOT / "samples" / "f.json").read_bytes()
VALUES = ("eval", "grad --wrt x", "jvp --wrt x --set x@1=1", "vjp --wrt x --set y@-1=1", "hvp --wrt x --set x@2=1")
VALUES += ("jacobian --wrt x", "hessian --wrt x", "derivative --wrt x")
DOCUMENTS = (
    "convert",
    "linearize --wrt x",
    "materialize",
    "resolve",
    "compose",
    "grad --wrt x",
    "jacobian --wrt x",
    "derivative --wrt x",
)
CHUNKED = "--chunk 2 --batch x=0"


@pytest.fixture
def folder(tmp_path):
    for name in ("f.json", "plain"):
        (tmp_path / name).write_bytes(PLAIN)
    (tmp_path / "lib.json").write_bytes(b'{"tidu": 1, "ops": {}}')
    (tmp_path / "n.json").write_text("3")
    (tmp_path / "v.json").write_text('{"x": 2.0}')
    (tmp_path / "model.py").write_text("def f(x):\n    return x\n")
    np.save(tmp_path / "x.npy", 2.0)
    np.savez(tmp_path / "x.npz", x=2.0)
    np.savez(tmp_path / "b.npz", x=np.arange(4.0))
    (tmp_path / "m.json").symlink_to("model.py")
    return tmp_path


def linked(out, how):
    """Another name of a file."""
    if how == "itself":
        return out
    other = out.with_name(f"other{out.suffix}")
    os.symlink(out, other) if how == "symlink" else os.link(out, other)
    return other


REPLACING = [
    *[(f"{command} f.json --set x=3", "f.json") for command in VALUES],
    *[(f"{command} {F} --inputs v.json", "v.json") for command in VALUES],
    *[(f"{command} f.json --ops lib.json", "lib.json") for command in (*DOCUMENTS, "eval --set x=3")],
    (f"eval {F} --inputs x.npz", "x.npz"),
    (f"eval {F} --set x=@x.npy", "x.npy"),
    (f"eval {F} --set x=@x.npz:x", "x.npz"),
    (f"eval {F} --inputs v.json --moves v.json", "v.json"),
    (f"eval {F} --inputs b.npz --batch x=0", "b.npz"),
    (f"eval {F} --inputs b.npz {CHUNKED}", "b.npz"),
    (f"eval {F} --set x=@b.npz:x {CHUNKED}", "b.npz"),
    (f"eval {F} --inputs b.npz --reduce sum {CHUNKED}", "b.npz"),
    ("build x**n -i x:f64[] -i n=@n.json", "n.json"),
    ("build x*2 --inputs v.json", "v.json"),
    ("build model.py:f -i x:f64[]", "m.json"),
    ("eval model.py:f --set x=3", "m.json"),
    ("schema", "f.json"),
    (f"eval {F} --set x=3", "f.json"),
    (f"dot {F} --format dot", "plain"),
]

NO_RESULTS = ("n.json", "m.json")
"""What no command can have written: -o is wrong usage, before anything is read."""


@pytest.mark.parametrize("how", ["itself", "symlink", "hard link"])
@pytest.mark.parametrize(("words", "name"), REPLACING)
def test_what_is_read_is_kept(folder, monkeypatch, words, name, how):
    monkeypatch.chdir(folder)
    before = (folder / name).read_bytes()
    out = linked(folder / name, how)
    there = sorted(os.listdir(folder))
    result = invoke(*words.split(), "-o", out)
    refused = (2, 4) if name in NO_RESULTS else (1, 1)
    assert (result.exit_code, result.stderr.count("\n")) == refused, result.stderr
    assert f"{out}" in result.stderr and "give another name, or --force" in result.stderr
    assert ((folder / name).read_bytes(), sorted(os.listdir(folder))) == (before, there)


@pytest.mark.parametrize(("words", "name"), REPLACING)
def test_force_writes_over_it(folder, monkeypatch, words, name):
    monkeypatch.chdir(folder)
    before = (folder / name).read_bytes()
    assert invoke(*words.split(), "-o", folder / name, "--force").exit_code == 0
    assert (folder / name).read_bytes() != before


def test_a_file_that_is_no_result_is_written_over_by_force(folder):
    (folder / "notes").write_bytes(b"to do: everything\n")
    succeed("convert", F, "-o", folder / "notes", "--force")
    assert (folder / "notes").read_bytes() == PLAIN


@pytest.mark.parametrize("words", DOCUMENTS)
@pytest.mark.parametrize("how", ["itself", "symlink", "hard link"])
def test_a_document_that_is_read_is_replaced_by_a_document(folder, words, how):
    out = linked(folder / "f.json", how)
    verb, *options = words.split()
    expected = succeed(verb, F, *options)
    succeed(verb, folder / "f.json", *options, "-o", out)
    assert out.read_bytes() == expected


def test_values_that_are_not_read_are_replaced_by_values(folder):
    succeed("eval", F, "--set", "x=3", "-o", folder / "v.json")
    assert json.loads((folder / "v.json").read_bytes()) == {"y": 18.0}


def test_stdin_is_what_the_command_reads(folder):
    import subprocess

    from tests.cli.running import ENVIRONMENT

    with open(folder / "v.json", "rb") as file:
        command = ["tidu", "eval", F, "--inputs", "-", "-o", folder / "v.json"]
        ended = subprocess.run(command, stdin=file, capture_output=True, env=ENVIRONMENT, check=False)
    assert (ended.returncode, b"is read, too" in ended.stderr) == (1, True)


@pytest.mark.parametrize("words", [f"convert {F}", f"eval {F} --set x=3", f"grad {F} --wrt x", "schema", f"view {F}", f"dot {F}"])
@pytest.mark.parametrize("name", ["g/", "g.json/", "folder/", "folder/f.svg/"])
def test_a_slash_at_the_end_means_a_folder(tmp_path, words, name):
    (tmp_path / "folder").mkdir()
    result = invoke(*words.split(), "-o", f"{tmp_path}/{name}")
    assert result.exit_code == 2 and "ends in a slash, which means a folder, and a file is written" in result.stderr
    assert os.listdir(tmp_path) == ["folder"]


def test_a_folder_of_zarr_may_end_in_a_slash(folder):
    zarr = pytest.importorskip("zarr")
    succeed("eval", F, "--inputs", folder / "b.npz", *CHUNKED.split(), "-o", f"{folder}/y.zarr/")
    assert np.array_equal(zarr.open(str(folder / "y.zarr"))["y"][:], 2 * np.arange(4.0) ** 2)


def test_every_command_with_an_output_has_force():
    for name in COMMANDS:
        options = {opt for param in cli.get_command(None, name).params for opt in param.opts}
        assert ("-o" in options) == ("--force" in options), name


def test_functions_keep_documents_too(folder):
    document = tidu_cli.load(folder / "f.json")
    with pytest.raises(DocumentError, match="holds a document, and the result is none; give another name, or remove it before"):
        tidu_cli.save_values({"y": 1.0}, folder / "f.json")
    with pytest.raises(DocumentError, match="ends in a slash"):
        tidu_cli.save(document, f"{folder}/g.json/")
    f = tidu_cli.compile(document)
    with pytest.raises(DocumentError, match="is read, too"):
        f.map({"x": folder / "b.npz"}, {"x": 0}, out=folder / "b.npz")
    assert (folder / "f.json").read_bytes() == PLAIN and np.array_equal(np.load(folder / "b.npz")["x"], np.arange(4.0))
    tidu_cli.save(document, folder / "f.json")
