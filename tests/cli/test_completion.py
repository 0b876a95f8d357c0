"""Completion: what is offered where, and that bash, zsh and fish take it."""

from __future__ import annotations

import gzip
import json
import subprocess

import pytest

from tests.cli.running import ENVIRONMENT, document, graph, process, succeed
from tests.programs import needs
from tidu_cli.cli.candidates import LARGEST, candidates
from tidu_cli.cli.completion import split
from tidu_cli.cli.main import COMMANDS, cli

DAYS = ("duration[D]", "duration[h]", "duration[m]", "duration[s]")
TYPES = {"Event": {"at": "datetime[D][2]", "on": "bool[]", "n": "i64[]"}, "Log": {"first": "Event", "pair": "(f32[], f32[3])"}}


@pytest.fixture
def records(tmp_path, monkeypatch):
    inputs = (("log", "Log"), ("born", "datetime[ns][]"), ("on", "bool[]"))
    (tmp_path / "r.json").write_bytes(document(graph(inputs=inputs, outputs=[("y", 0)]), types=TYPES))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("begun", "expected"),
    [
        ("", ["log=", "born="]),
        ("born=", ["duration[ns]", *(f"duration[{u}]" for u in ("D", "h", "m", "s", "ms", "us")), "{instant: {periods: f64}}"]),
        ("born={", []),
        (
            "log=",
            [
                "{first: {at: duration[D], n: f64}, pair: (f32, f32)}",
                "{first: {at: duration[D], n: f64}}",
                "{pair: (f32, f32)}",
            ],
        ),
        ("log={", ["{first: ", "{pair: "]),
        ("log={pair: ", ["{pair: (f32, f32)"]),
        ("log={pair: (f32, f", ["{pair: (f32, f32)"]),
        ("log={pair: (f32, f32)", ["{pair: (f32, f32)}"]),
        ("log={pair: (f32, f32), ", ["{pair: (f32, f32), first: "]),
        ("log={first: {", ["{first: {at: ", "{first: {n: "]),
        ("log={first: {at: duration[h]", ["{first: {at: duration[h]}"]),
        ("log={first: {at: duration[h], ", ["{first: {at: duration[h], n: "]),
        ("log={first: {at: duration[h]},", ["{first: {at: duration[h]}, pair: "]),
        ("log={first: {at: duration[h]}", ["{first: {at: duration[h]}}"]),
        ("log={first: {at: duration[h]}}", []),
        ("log={first: {no: ", []),
        ("log={first, ", []),
        ("none={", []),
    ],
)
def test_tangents_of_records(records, begun, expected):
    line = ["linearize", "r.json", "--tangent", begun]
    offered = [candidate.word for candidate in candidates(cli, line, 3)]
    key = begun.partition("=")[0] + "=" if begun else ""
    assert offered == [key + text for text in expected]


def test_units_of_a_field(records):
    begun = "log={first: {at: d"
    offered = [candidate.word for candidate in candidates(cli, ["linearize", "r.json", "--tangent", begun], 3)]
    assert offered[0] == "log={first: {at: duration[D]" and {f"log={{first: {{at: {text}" for text in DAYS} <= set(offered)


def test_records_are_differentiable_and_bools_are_not(records):
    assert words("linearize r.json --wrt ") == ["log", "born"]
    assert words("eval r.json --move ") == ["log=", "born="]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    inputs = (
        ("x", "f64[]"),
        ("n", "i32[]"),
        ("z", "c128[2]"),
        ("a=b", "f64[]"),
        ("it's $1", "bf16[]"),
        ("at@@1".replace("@@", "@"), "f64[]"),
    )
    data = document(graph([("mul", 0, 0)], inputs=inputs, outputs=[("y", 6), ("w", 2)]))
    (tmp_path / "f.json").write_bytes(data)
    (tmp_path / "f.msgpack").write_bytes(succeed("convert", "--format", "msgpack", input=data))
    (tmp_path / "broken.json").write_text('{"tidu": 1, "graphs": [{"inputs": 3}]}')
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "model.py").write_text('raise SystemExit("it is run")\ndef loss(w, b=1, *, c): "The loss."\ndef other(): ...\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words(line, at=None):
    """The words offered at the end of a line, or for its word number `at`."""
    parts = [part.replace("_", " ") for part in line.split(" ")]
    return [candidate.word for candidate in candidates(cli, parts, len(parts) - 1 if at is None else at)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("mat", ["materialize", "matrix"]),
        ("--verb", ["--verbose"]),
        ("linearize --w", ["--wrt"]),
        ("linearize f.json --wrt ", ["x", "z", "a=b", "it's $1", "at@@1"]),
        ("linearize f.msgpack --wrt ", ["x", "z", "a=b", "it's $1", "at@@1"]),
        ("linearize f.json --wrt x --wrt ", ["z", "a=b", "it's $1", "at@@1"]),
        ("linearize f.json --wrt=", ["--wrt=x", "--wrt=z", "--wrt=a=b", "--wrt=it's $1", "--wrt=at@@1"]),
        ("linearize f.json --output ", ["y", "w"]),
        ("eval f.json --set ", ["x=", "n=", "z=", "a=b=", "it's $1=", "at@@1="]),
        ("eval f.json --set x=", []),
        ("eval f.json --move x=1 --move ", ["n=", "z=", "a=b=", "it's $1=", "at@@1="]),
        ("eval f.json --moves ", ["broken.json", "f.json", "f.msgpack"]),
        ("linearize f.json --tangent ", ["x=", "n=", "z=", "a=b=", "it's $1=", "at@@1="]),
        ("linearize f.json --wrt x --wrt z --tangent ", ["x=", "z="]),
        ("linearize f.json --tangent x=f32 --tangent ", ["n=", "z=", "a=b=", "it's $1=", "at@@1="]),
        ("linearize f.json --tangent x=", ["x=f64", "x=f16", "x=bf16", "x=f32"]),
        ("linearize f.json --tangent n=", ["n=f64", "n=f32"]),
        ("materialize f.json --recompute ", ["sqrt", "cheap", "cheap=", "value=", "graph="]),
        ("materialize f.json --recompute value=", ["value=y", "value=w"]),
        ("materialize f.json --recompute graph=", ["graph=f"]),
        ("grad f.json --wrt z", ["z"]),
        ("dot f.json --highlight ", ["x", "n", "z", "a=b", "it's $1", "at@@1", "y", "w"]),
        ("resolve f.json --bind ", ["x=", "n=", "z=", "a=b=", "it's $1=", "at@@1="]),
        ("resolve f.json --bind z=", ["z=y", "z=w"]),
        ("compose f.json --by ", ["name", "position"]),
        ("compose f.json --share x --share ", ["n", "z", "a=b", "it's $1", "at@@1"]),
        ("convert --nodes ", ["list", "packed"]),
        ("convert f.", ["f.json", "f.msgpack"]),
        ("convert no", ["notes.txt"]),
        ("help gr", ["grad"]),
        ("eval f.json --format ", ["json", "csv", "npy", "npz", "mtx", "zarr", "msgpack", "table"]),
        ("build x*sin(y)+pi -i ", ["x:", "y:"]),
        ("build model.py:loss -i w:f64[] -i ", ["b:", "c:"]),
        ("build model.py:", ["model.py:loss", "model.py:other"]),
        ("grad mod", ["model.py:"]),
        ("grad model.py:", ["model.py:loss", "model.py:other"]),
        ("grad model.py:loss -i ", ["w:", "b:", "c:"]),
        ("grad model.py:loss -i b=3 --wrt ", ["w", "c"]),
        ("grad model.py:loss --set w=1 --set ", ["b=", "c="]),
        ("eval sin(x)*y --set ", ["x=", "y="]),
        ("ops dot", ["dot_general"]),
        ("check --ops dot", ["dot_general"]),
        ("linearize --wrt ", []),
        ("linearize - --wrt ", []),
        ("linearize missing.json --wrt ", []),
        ("linearize broken.json --wrt ", []),
        ("linearize notes.txt --wrt ", []),
        ("nonsense ", []),
    ],
)
def test_what_is_offered(folder, line, expected):
    assert words(line) == expected


def test_the_file_may_come_after_the_cursor(folder):
    assert words("linearize --output  f.json", at=2) == ["y", "w"]


def test_large_files_are_not_read(folder):
    with open("f.json", "ab") as file:
        file.write(b" " * LARGEST)
    assert words("linearize f.json --wrt ") == []


def test_compressed_documents_are_files_with_keys_too(folder):
    succeed("convert", "f.json", "-o", "g.json.gz")
    assert words("convert g") == ["g.json.gz"]
    assert words("linearize g.json.gz --wrt z") == ["z"]
    (folder / "bomb.json.gz").write_bytes(gzip.compress(b'{"graphs": []' + b" " * LARGEST + b"}"))
    assert words("linearize bomb.json.gz --wrt ") == []


BASH = r"""
eval "$(tidu completion bash)"
compopt() { echo "($*)"; }
COMP_WORDBREAKS=$' \t\n"\'@><=;|&(:' COMP_LINE=$1 COMP_POINT=${#1}
_tidu_completion tidu
[[ ${#COMPREPLY[@]} == 0 ]] || printf '%s\n' "${COMPREPLY[@]}"
"""


@needs("bash")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tidu linea", ["linearize"]),
        ("tidu linearize f.json --wrt ", ["x", "z", "a=b", r"it\'s\ \$1", "at@@1"]),
        ("tidu linearize f.json --wrt=a", ["a=b", "at@@1"]),
        ("tidu linearize f.json --wrt at@", ["@1"]),
        ("tidu linearize f.json --wrt 'at@", ["at@@1"]),
        ('tidu linearize f.json --wrt "it', ["it's $1"]),
        (r"tidu linearize f.json --wrt it\'", [r"it\'s\ \$1"]),
        ("tidu eval f.json --set a=", ["(-o nospace)", "b="]),
        ("tidu convert f.m", ["(-o filenames)", "f.msgpack"]),
        ("tidu linearize missing.json --wrt ", []),
    ],
)
def test_bash(folder, line, expected):
    done = subprocess.run(["bash", "-c", BASH, "bash", line], capture_output=True, text=True, env=ENVIRONMENT, check=True)
    assert (done.stdout.splitlines(), done.stderr) == (expected, "")


@pytest.mark.check
@needs("fish")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tidu linea", ["linearize"]),
        ("tidu linearize f.json --wrt ", ["x", "z", "a=b", "it's $1", "at@@1"]),
        ("tidu linearize 'f.json' --wrt=z", ["--wrt=z"]),
        ("tidu linearize f.json --wrt at@", ["at@@1"]),
        ("cat f.json | tidu conv", ["convert"]),
        ("tidu linearize missing.json --wrt ", []),
    ],
)
def test_fish(folder, line, expected):
    script = "tidu completion fish | source; complete -C $argv[1]"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script, line],
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, "HOME": str(folder)},
        check=False,
    )
    assert done.stderr == ""
    assert sorted(row.split("\t")[0] for row in done.stdout.splitlines()) == sorted(expected)


ZSH = r"""
compdef() { :; }
compadd() { local -a given; given=("${(@P)@[-1]}"); print -rl -- $given; }
eval "$(tidu completion zsh)"
words=("${(@z)1}") CURRENT=$2 PREFIX=$3
_tidu_completion
"""


@pytest.mark.check
@needs("zsh")
@pytest.mark.parametrize(
    ("line", "at", "prefix", "expected"),
    [
        ("tidu linea", 2, "linea", ["linearize"]),
        ("tidu linearize 'f.json' --wrt ''", 5, "", ["x", "z", "a=b", "it's $1", "at@@1"]),
        ("tidu linearize --wrt z f.json", 4, "z", ["z"]),
        ("tidu eval f.json --set=at@", 4, "--set=at@", ["--set=at@@1="]),
        ("tidu convert f.m", 3, "f.m", ["f.msgpack"]),
    ],
)
def test_zsh(folder, line, at, prefix, expected):
    """The function as zsh calls it, with `compadd` replaced by one that prints what is added."""
    done = subprocess.run(
        ["zsh", "-f", "-c", ZSH, "zsh", line, str(at), prefix], capture_output=True, text=True, env=ENVIRONMENT, check=False
    )
    assert (done.stdout.splitlines(), done.stderr) == (expected, "")


def test_words_of_a_line():
    parts = split(r"""tidu 'a b'"c\"d" e\ f  'open it""")
    assert [word.text for word in parts] == ["tidu", 'a bc"d', "e f", "open it"]
    assert (parts[-1].quote, parts[-1].ended, parts[0].ended) == ("'", False, True)


def test_every_command_is_offered():
    offered = candidates(cli, [""], 0)
    assert tuple(candidate.word for candidate in offered) == COMMANDS
    assert all(candidate.help.endswith(".") for candidate in offered), "each has a description"


def test_scripts_are_printed_and_broken_files_say_nothing(folder):
    for shell in ("bash", "zsh", "fish"):
        assert b"_TIDU_COMPLETE" in process("completion", shell).stdout
    done = process("0", "", env={**ENVIRONMENT, "_TIDU_COMPLETE": "fish_complete"})
    assert done.stderr == b"" and b"linearize" in done.stdout
    assert json.loads((folder / "f.json").read_bytes())
