"""No package is imported that the user has not named: by --plugins, TIDU_PLUGINS, or in Python."""

from __future__ import annotations

import json
import subprocess
import sys

import click
import pytest

from tests.cli.running import ROOT, F, document, graph, process
from tests.plugins.packages import GOOD, environment, message, tidu, write
from tidu_cli.cli.main import COMMANDS, cli

WHY = "package ann 1.0 brings one, and a package is imported only if it is named; add --plugins ann, or set TIDU_PLUGINS"
SAYS = f"op 'mine': {WHY}"
USES = document(graph([("mine", 0)], outputs=[("y", 1)]))
READING = {
    "resolve": ["-"],
    "compose": ["-", F],
    "linearize": ["--wrt", "x"],
    "transpose": [],
    "materialize": [],
    "matrix": [],
    "eval": ["--set", "x=1"],
    "grad": ["--wrt", "x", "--set", "x=1"],
    "jvp": ["--wrt", "x"],
    "vjp": ["--wrt", "x"],
    "hvp": ["--wrt", "x"],
    "jacobian": ["--wrt", "x"],
    "hessian": ["--wrt", "x"],
    "derivative": ["--wrt", "x"],
    "step": ["--wrt", "x"],
    "minimize": ["--wrt", "x", "--set", "x=1"],
    "sparsity": ["--wrt", "x"],
    "dot": [],
    "view": ["-o", "/dev/null"],
    "check": ["--all"],
    "show": [],
    "info": [],
    "diff": ["-", F],
    "convert": [],
    "rename": [],
}
"""The commands that read documents, and what each needs beside one on standard input."""


@pytest.fixture
def mark(tmp_path):
    """A file that is there once the package has been imported, which fails."""
    mark = tmp_path / "imported"
    write(tmp_path / "site", "ann", {"mine": "ann:P"}, f"open({str(mark)!r}, 'w').close()\nraise Exception('imported')")
    return mark


@pytest.fixture
def good(tmp_path):
    """Two packages of one op each."""
    write(tmp_path / "site", "ann", {"mine": "ann:P"}, GOOD.format(op="mine"))
    return write(tmp_path / "site", "bob-two", {"yours": "bob_two:P"}, GOOD.format(op="yours"))


def test_these_are_the_commands_that_read_documents():
    arguments = {name: {p.name for p in command(name).params if isinstance(p, click.Argument)} for name in COMMANDS}
    assert {name for name in COMMANDS if arguments[name] & {"file", "files", "a", "subjects"}} == set(READING)
    with_option = {name for name in COMMANDS if any("--plugins" in param.opts for param in command(name).params)}
    assert with_option == {*READING, "ops"}


def command(name):
    return cli.get_command(click.Context(cli), name)


@pytest.mark.check
@pytest.mark.parametrize("name", READING)
def test_no_command_imports_it_unasked(mark, name):
    done = tidu(mark.parent / "site", name, *READING[name], input=USES, named="")
    assert not mark.exists()
    assert done.returncode in (1, 2) and done.stdout == b"", "2 of diff, whose 1 says that documents differ"
    (line,) = done.stderr.decode().splitlines()
    assert line == f"tidu {name}: error: stdin: graph 'f', node 0 (mine): {SAYS}"


@pytest.mark.parametrize("name", ["eval", "check", "diff", "resolve", "linearize"])
def test_it_is_imported_if_it_is_named(mark, name):
    done = tidu(mark.parent / "site", name, *READING[name], "--plugins", "ann", input=USES, named="")
    assert done.returncode in (1, 2) and b"package ann 1.0 is broken (ann:P: Exception: imported)" in done.stderr
    assert mark.exists()


@pytest.mark.check
@pytest.mark.parametrize(
    "args",
    [
        ["ops"],
        pytest.param(["ops", "--json"], marks=pytest.mark.campaign),
        ["ops", "sin"],
        ["check", "--ops", "sin"],
        ["--help"],
        ["schema"],
    ],
)
def test_nor_does_what_lists_ops(mark, args):
    done = tidu(mark.parent / "site", *args, named="")
    assert (done.returncode, done.stderr, mark.exists()) == (0, b"", False)


@pytest.mark.check
def test_ops_tells_what_is_not_imported(good):
    lines = tidu(good, "ops", named="").stdout.decode().splitlines()
    (mine,) = [line for line in lines if line.split()[0] == "mine"]
    assert mine.split(maxsplit=1)[1] == f"not imported: {WHY}"
    entries = {entry["op"]: entry for entry in json.loads(tidu(good, "ops", "--json", "--plugins", "ann", named="").stdout)}
    assert entries["yours"]["not_imported"].endswith("add --plugins bob-two, or set TIDU_PLUGINS")
    assert entries["yours"]["origin"] == {"package": "bob-two", "version": "1.0"}
    assert entries["mine"]["arity"] == 1
    assert message(tidu(good, "ops", "mine", named="")) == f"tidu ops: error: {SAYS}"
    assert message(tidu(good, "check", "--ops", "mine", named="")) == f"tidu check: error: {SAYS}"


@pytest.mark.check
@pytest.mark.parametrize("shell", ["fish", "zsh"])
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("linearize DOC --wrt ", "x"),
        ("eval DOC --set ", "x="),
        ("ops min", "mine"),
        ("check --ops min", "mine"),
        ("eval DOC --plugins ", "ann"),
        ("grad --plugins ann DOC --wrt ", "x"),
    ],
)
def test_completion_imports_none(mark, shell, line, offered):
    path = mark.parent / "f.json"
    path.write_bytes(USES)
    words = [str(path) if word == "DOC" else word for word in line.split(" ")]
    environ = {**environment(mark.parent / "site", named="ann"), "_TIDU_COMPLETE": f"{shell}_complete"}
    done = process(str(len(words) - 1), *words, env=environ)
    fields = [field for row in done.stdout.decode().splitlines() for field in row.split("\t")[: 1 + (shell == "zsh")]]
    assert offered in fields and not mark.exists()


@pytest.mark.check
@pytest.mark.parametrize(
    ("args", "named"),
    [
        (["--plugins", "bob-two"], ""),
        (["--plugins", "Bob_Two"], ""),
        (["--plugins", "ann", "--plugins", "bob.two"], ""),
        (["--plugins", "bob-two"], "ann"),
        ([], "bob-two"),
        ([], " ann , BOB-TWO,"),
        ([], "not-installed,bob-two"),
    ],
)
def test_ways_of_naming_it(good, args, named):
    data = document(graph([("yours", 0)], outputs=[("y", 1)]))
    done = tidu(good, "eval", "--set", "x=2", *args, input=data, named=named)
    assert (done.returncode, done.stderr) == (0, b"") and json.loads(done.stdout) == {"y": 2.0}


@pytest.mark.parametrize(("args", "named"), [([], ""), ([], ","), (["--plugins", "ann"], "ann"), ([], "bob"), ([], "all")])
def test_what_does_not_name_it(good, args, named):
    data = document(graph([("yours", 0)], outputs=[("y", 1)]))
    assert "add --plugins bob-two" in message(tidu(good, "check", *args, input=data, named=named))


def test_a_package_that_is_not_there(good):
    failure = message(tidu(good, "check", "--plugins", "bob-tow", input=USES, named=""))
    assert (
        failure
        == "tidu check: error: no package 'bob-tow' with primitives is installed; did you mean 'bob-two'? (tidu ops lists what is)"
    )


@pytest.mark.check
def test_packages_that_are_not_named_do_not_clash(tmp_path):
    for name in ("ann", "bob"):
        write(tmp_path, name, {"mine": f"{name}:P", "mul": f"{name}:P"}, GOOD.format(op="mine"))
    works = document(graph([("mine", 0), ("mul", 1, 1)], outputs=[("y", 2)]))
    failure = message(tidu(tmp_path, "eval", "--set", "x=2", input=works, named=""))
    assert "packages ann 1.0 and bob 1.0 bring one, and a package" in failure and "add --plugins ann or --plugins bob," in failure
    assert "package ann 1.0 brings one, but tidu has one" in message(tidu(tmp_path, "check", input=works, named="ann"))
    done = tidu(tmp_path, "eval", "--set", "x=2", input=document(graph([("mul", 0, 0)], outputs=[("y", 1)])), named="")
    assert json.loads(done.stdout) == {"y": 4.0}
    assert tidu(tmp_path, "check", "--plugins", "bob", input=USES, named="").returncode == 0


@pytest.mark.check
@pytest.mark.parametrize("named", ["", "ann"])
def test_of_two_documents_and_of_what_rules_emit(good, tmp_path, named):
    """A permission goes where the document goes: into links, and graphs written out."""
    file, other = tmp_path / "f.json", tmp_path / "g.json"
    file.write_bytes(document(graph([("mine", 0)], outputs=[("y", 1)])))
    other.write_bytes(document(graph([("sin", 0)], inputs=[("y", "f64[]")], outputs=[("z", 1)], name="g")))
    more = ["--plugins", "ann"] if not named else []
    for args in (
        ["resolve", other, file],
        ["compose", "--quiet", file, other],
        ["materialize", "--inline", file],
        ["hessian", "--wrt", "x", file],
    ):
        done = tidu(good, *args, *more, named=named)
        assert (done.returncode, done.stderr) == (0, b""), args


def test_from_python(good, tmp_path):
    file = tmp_path / "f.json"
    file.write_bytes(USES)
    code = f"""
import tidu_cli as tidu
for plugins in ("ann", ["ann"]):
    f = tidu.load({str(file)!r}, plugins=plugins)
    assert tidu.evaluate(tidu.grad(f, "x"), x=2.0, **{{"y@-1": 1.0}})["x@-1"] == 1.0
    assert tidu.compile(f)(x=3.0)["y"] == 3.0
try:
    tidu.load({str(file)!r})
except Exception as error:
    assert "add plugins='ann', or set TIDU_PLUGINS" in str(error), error
else:
    raise AssertionError
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment(good, named=""), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.check
def test_the_file_of_the_package_does_not_matter_where_the_op_is_another(mark):
    """A document that defines the op itself is read without the package, named or not."""
    definition = {
        "inputs": [{"key": "x", "type": "f64[]"}],
        "outputs": [{"key": "y", "type": "f64[]"}],
        "forward": {"inputs": [{"key": "x"}], "nodes": [{"op": "neg", "inputs": [0]}], "outputs": [{"key": "y", "value": 1}]},
    }
    own = document(graph([("mine", 0)], outputs=[("y", 1)]), ops={"mine": definition})
    for named in ("", "ann"):
        done = tidu(mark.parent / "site", "eval", "--set", "x=2", input=own, named=named)
        assert json.loads(done.stdout) == {"y": -2.0} and not mark.exists()
