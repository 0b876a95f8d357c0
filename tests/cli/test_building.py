"""What is built in the place of a file: every command that reads a document takes a function of a file and a formula."""

from __future__ import annotations

import json

import click
import numpy as np
import pytest

from tests.cli.running import ROOT, invoke, succeed
from tidu_cli.cli.building import declaration, kind_of
from tidu_cli.cli.main import COMMANDS, cli
from tidu_cli.errors import TiduError

FUNCTION = "def f(x, n=2):\n    return (x**n).sum()\n"

OPTIONS = {
    "linearize": ["--wrt", "x"], "grad": ["--wrt", "x"], "jvp": ["--wrt", "x"], "vjp": ["--wrt", "x"], "hvp": ["--wrt", "x"],
    "jacobian": ["--wrt", "x"], "hessian": ["--wrt", "x"], "eval": ["--set", "x=[1,2]"], "step": ["--wrt", "x"],
    "minimize": ["--wrt", "x", "--set", "x=[1,2]", "--quiet"],
    "sparsity": ["--wrt", "x"],
}  # fmt: skip
"""What commands need besides a document."""

LINEAR = ("transpose", "matrix")
"""Commands of linear graphs, which nothing that is built is."""


def fail(*args) -> str:
    """The line that a command says on standard error, with status 1."""
    result = invoke(*args)
    assert result.exit_code == 1, result.stderr
    (line,) = result.stderr.splitlines()
    return line


def reading_documents() -> list[str]:
    """The commands with an argument that is a document."""
    names = []
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        if name not in ("build", "ops") and any(isinstance(p, click.Argument) for p in command.params):
            names.append(name)
    return names


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "f.py").write_text(FUNCTION)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_list_of_commands_is_whole():
    assert {"eval", "info", "convert", "check", "diff", "view", "dot", "resolve", "compose", "derivative"} <= set(
        reading_documents()
    )


@pytest.mark.parametrize("name", [n for n in reading_documents() if n not in (*LINEAR, "completion", "help")])
@pytest.mark.parametrize("source", ["f.py:f", "sum(x ** 2)"])
def test_every_command_takes_what_is_built(folder, name, source):
    if name == "derivative":
        out = succeed(name, source, "-i", "x:f64[]", "--wrt", "x")
    elif name == "diff":
        out = invoke(name, source, "sum(x * x)", "-i", "x:f64[2]", "--brief").stdout_bytes
        assert b"differ" in out
    elif name == "view":
        out = succeed(name, source, "-i", "x:f64[2]", "-o", str(folder / "f.html")) or b"written"
    else:
        out = succeed(name, source, "-i", "x:f64[2]", *OPTIONS.get(name, ()))
    assert out


@pytest.mark.parametrize("name", LINEAR)
def test_what_is_built_is_not_linear(folder, name):
    assert "linear" in fail(name, "f.py:f", "-i", "x:f64[2]")


def test_the_same_by_every_way(folder):
    """The document that is built at once is the one that tidu build writes."""
    built = succeed("build", "f.py:f", "-i", "x:f64[2]")
    (folder / "f.json").write_bytes(built)
    for options in (["grad", "--wrt", "x"], ["linearize", "--wrt", "x"], ["hessian", "--wrt", "x"], ["info"]):
        command, *rest = options
        assert succeed(command, "f.py:f", "-i", "x:f64[2]", *rest) == succeed(command, "f.json", *rest)
    assert succeed("grad", "f.py:f", "--set", "x=[1,2]", "--wrt", "x") == succeed(
        "grad", "f.json", "--set", "x=[1,2]", "--wrt", "x"
    )


def test_data_in_each_format_give_the_same(folder):
    np.savez("d.npz", x=np.array([1.0, 2.0]))
    (folder / "d.json").write_text(json.dumps({"x": [1, 2]}))
    packed = succeed("eval", "--inputs", "d.npz", "--format", "msgpack", input=succeed("build", "x", "-i", "x:f64[2]"))
    (folder / "d.msgpack").write_bytes(packed.replace(b"\xa1y", b"\xa1x"))
    values = {file: succeed("grad", "f.py:f", "--inputs", file, "--wrt", "x") for file in ("d.npz", "d.json", "d.msgpack")}
    assert set(values.values()) == {b'{"x@-1": [2.0, 4.0]}\n'}


def test_data_from_a_pipe_say_types_and_values(folder):
    result = invoke("grad", "f.py:f", "--inputs", "-", "--wrt", "x", input=b'{"x": [1, 2]}')
    assert json.loads(result.stdout) == {"x@-1": [2.0, 4.0]}


def test_a_structure_by_set(folder):
    (folder / "g.py").write_text("def g(p, n=1):\n    return p['a'] * p['b'][0] * n\n")
    assert json.loads(succeed("eval", "g.py:g", "--set", 'p={"a": 3, "b": [{"re": 1, "im": 2}, "x"]}')) == {
        "y": {"re": 3.0, "im": 6.0}
    }
    assert json.loads(succeed("eval", "g.py:g", "--set", 'p={"a": 3, "b": [4]}', "--set", "p.a=5", "-i", "n=2")) == {"y": 40.0}


def test_a_file_beside_what_is_built(folder):
    (folder / "f.json").write_bytes(succeed("build", "f.py:f", "-i", "x:f64[2]"))
    assert b"are the same" in succeed("diff", "f.json", "f.py:f", "-i", "x:f64[2]")
    assert succeed("compose", "f.json", "sin(z)", "-i", "z:f64[]", "--quiet")
    assert succeed("check", "f.json", "sin(z)", "-i", "z:f64[]")
    for command in ("compose", "check"):
        assert "none of the documents has an input 'q'" in fail(command, "f.json", "sin(z)", "-i", "z:f64[]", "-i", "q:f64[]")


def test_a_file_that_is_there_wins(folder):
    (folder / "2*x").write_bytes((ROOT / "samples" / "f.json").read_bytes())
    assert json.loads(succeed("eval", "2*x", "--set", "x=3")) == {"y": 18.0}
    (folder / "2*x").unlink()
    assert json.loads(succeed("eval", "2*x", "--set", "x=3")) == {"y": 6.0}


@pytest.mark.parametrize(
    ("argument", "settings", "kind"),
    [
        ("-", (), "file"),
        ("f.py:f", (), "function"),
        ("x", (), "file"),
        ("x", ("x=3",), "formula"),
        ("x/y", ("x=3",), "file"),
        ("x/y", ("x=3", "y=2"), "formula"),
        ("x.T", ("x=[1]",), "formula"),
        ("a-b", ("a=3", "b=1"), "formula"),
        ("sin(x)", (), "formula"),
        ("copy of f (2).json", (), "file"),
        ("nowhere.msgpack", (), "file"),
        ("nowhere", (), "file"),
    ],
)
def test_what_an_argument_names(folder, argument, settings, kind):
    with click.Context(cli):
        assert kind_of(argument, settings) == kind


@pytest.mark.parametrize(
    ("text", "key", "type_", "constant"),
    [
        ("x:f64[3]", "x", "f64[3]", None),
        ("p:{a: f64[], b: f64[3]}", "p", "{a: f64[], b: f64[3]}", None),
        ("a=b:f64[]", "a=b", "f64[]", None),
        ("n=5", "n", None, "5"),
        ('s="a:b"', "s", None, '"a:b"'),
        ('s="x:f64[3]"', "s", None, '"x:f64[3]"'),
        ('c={"a": {"b:f64[]": 1}}', "c", None, '{"a": {"b:f64[]": 1}}'),
        ("c.n=@f.json", "c.n", None, "@f.json"),
        ("s=", "s", None, ""),
        ("x", "x", None, None),
        ("p.x", "p.x", None, None),
    ],
)
def test_declarations(text, key, type_, constant):
    declared = declaration(text)
    assert (declared.key, declared.type and str(declared.type), declared.constant) == (key, type_, constant)


@pytest.mark.parametrize("text", ["", ":f64[]", "=3", "x:", "x:f65[]", "x:3", "(x)", "x:f64[3"])
def test_declarations_that_are_none(text):
    with pytest.raises(TiduError):
        declaration(text)


MISUSES = [
    ["grad", "f.py:f", "--wrt", "x"],
    ["grad", "f.py:f", "-i", "x:f64[2]", "--wrt", "y"],
    ["grad", "f.py:g", "-i", "x:f64[2]", "--wrt", "x"],
    ["grad", "f.py:f", "-i", "x:f64[2]", "-i", "n=@nowhere.json", "--wrt", "x"],
    ["grad", "f.py:f", "-i", "x:f64[2]", "-i", "n={", "--wrt", "x"],
    ["grad", "f.py:f", "-i", "x:f64[2]", "-i", 'n={"a": 1, "a": 2}', "--wrt", "x"],
    ["grad", "f.py:f", "-i", "x:f64[2]", "-i", "n=null", "--wrt", "x"],
    ["grad", "f.py:f", "-i", "x=3", "--wrt", "x"],
    ["grad", "f.py:f", "-i", "x:f64[2]", "-i", "x.y:f64[2]", "--wrt", "x"],
    ["grad", "f.py:f", "--set", 'x={"a": 1}', "--wrt", "x"],
    ["grad", "f.py:f", "--set", "x=[1,[2]]", "--wrt", "x"],
    ["grad", "f.py:f", "--set", "x=oops", "--wrt", "x"],
    ["grad", "f.py:f", "--inputs", "nowhere.npz", "--wrt", "x"],
    ["grad", "f.py:f", "--inputs", "f.py", "--wrt", "x"],
    ["eval", "f.py:f", "--set", "x=1", "-i", "n=" + '{"a": ' * 700 + "1" + "}" * 700],
    ["eval", "f.py:f", "--set", "x=" + "[" * 700 + "]" * 700],
    ["eval", "f.py:f", "--set", "x=1", "-i", "n=" + "9" * 5000],
    ["eval", "f.py:f", "--set", "x=1", "-i", "n..a=5"],
    ["eval", "f.py:f", "--set", "x=1", "-i", ".=5"],
    ["eval", "f.py:f", "--set", 'x={"type": "f99", "data": [1]}'],
    ["eval", "f.py:f", "--set", 'x={"re": 1, "im": "a"}'],
    ["eval", "f.py:f", "--set", 'x={"re": 1}'],
    ["eval", "f.py:f", "--inputs", "/"],
    ["eval", "sin(x)", "--set", 'x="a"'],
    ["eval", "sin(x)", "--set", 'x={"a": 1}'],
    ["eval", "sin(x", "--set", "x=1"],
    ["eval", "x + c", "--set", "x=1", "-i", 'c="a"'],
    ["eval", "x + c", "--set", "x=1", "-i", "c=null"],
    ["eval", "f.py", "--set", "x=1"],
    ["convert", "sin(x)", "-i", "x:f64[]", "--dim", "n=3"],
    ["check", "sin(lenght) * length", "-i", "length:f64[]"],
    ["linearize", "sin(i)", "--wrt", "i"],
    ["compose", "sin(x)", "cos(x)", "-i", "z:f64[]"],
    ["grad", "sum(x)", "--types", "nowhere.npz"],
    ["eval", "x[t]", "--set", "x=[1,2]", "--set", "t=1"],
    ["grad", "x > 0", "--sum", "-i", "x:f64[3]"],
]


@pytest.mark.parametrize("command", MISUSES, ids=lambda words: " ".join(words)[:60])
def test_misuse_is_one_line_and_leaves_no_file(folder, command):
    before = sorted(folder.iterdir())
    out = [] if command[0] == "check" else ["-o", "out.json"]
    line = fail(*command, *out)
    assert "internal error" not in line and "Traceback" not in line
    assert [p for p in sorted(folder.iterdir()) if p.name != "__pycache__"] == before
