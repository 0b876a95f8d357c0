"""What starting a command imports: a list of modules, since times vary and modules do not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import needs
from tests.tiers import few

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "samples"
THIRD_PARTY = {"click", "msgpack"}
"""The packages that a stage imports besides tidu itself."""

SLOW = {"importlib.metadata", "email", "secrets", "zipfile", "tempfile", "asyncio", "unittest", "difflib"}
"""Modules of the standard library that take long to import, which small work does without."""

DOCUMENTS = {
    "f.json": "x",
    "cube.json": "x",  # integer_pow, with attrs
    "constants.json": "x",
    "vector.json": "x",  # of arrays
    "complex.json": "z",
    "logsumexp.json": "x",
    "kinks.json": "x",
}


def run(*args: str | Path, data: bytes = b"") -> tuple[bytes, set[str]]:
    """What a command prints, and the modules that it imports."""
    tidu = Path(sys.executable).with_name("tidu")
    command = [sys.executable, "-X", "importtime", tidu, *args]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    done = subprocess.run(command, input=data, capture_output=True, cwd=ROOT, env=environment, check=False)
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 0, lines[-1]
    return done.stdout, {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


def packages(modules: set[str]) -> set[str]:
    """The packages of these modules that are neither Python's own nor in the path of every program of this environment."""
    _, always = _nothing()
    known = sys.stdlib_module_names | {"tidu_cli", "imported package"}
    return {name.partition(".")[0] for name in modules - always} - known - {"org"}  # click tries org.python


def _nothing() -> tuple[bytes, set[str]]:
    done = subprocess.run([sys.executable, "-X", "importtime", "-c", ""], capture_output=True, check=True)
    return b"", {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}


def test_version_imports_click_only() -> None:
    out, modules = run("--version")
    assert out.startswith(b"tidu ")
    assert packages(modules) == {"click"}
    ours = {name for name in modules if name.startswith("tidu_cli.")}
    needed = (
        "__main__",
        "cli",
        "cli.limiting",
        "cli.main",
        "cli.messages",
        "cli.progress",
        "cli.style",
        "errors",
        "notes",
        "streams",
    )
    assert ours <= {f"tidu_cli.{name}" for name in needed}


@pytest.mark.check
@pytest.mark.parametrize(("name", "format_"), few([(name, format_) for name in DOCUMENTS for format_ in ("json", "msgpack")], 3))
def test_a_stage_imports_neither_pydantic_nor_numpy(name: str, format_: str) -> None:
    data = (SAMPLES / name).read_bytes()
    stages = [("linearize", "--wrt", DOCUMENTS[name], "--format", format_), ("transpose",), ("materialize",), ("resolve", "-")]
    for stage in stages:
        data, modules = run(*stage, data=data)
        assert packages(modules) <= THIRD_PARTY, stage
        assert modules.isdisjoint(SLOW), stage
        assert modules.isdisjoint({f"tidu_cli.{slow}" for slow in ("formats.schema", "formats.complaints", "rules.validation")})


@pytest.mark.check
@pytest.mark.parametrize("command", ["info", "dot", "convert", "check", "show"])
def test_commands_that_look_do_not_either(command: str) -> None:
    _, modules = run(command, SAMPLES / "f.json")
    assert packages(modules) <= THIRD_PARTY


def test_eval_imports_numpy_alone() -> None:
    _, modules = run("eval", SAMPLES / "f.json", "--set", "x=3")
    assert packages(modules) <= {*THIRD_PARTY, "numpy"}
    assert modules.isdisjoint({"importlib.metadata", "zipfile", "tidu_cli.formats.complaints"})


def test_a_broken_document_is_judged_by_the_models() -> None:
    tidu = Path(sys.executable).with_name("tidu")
    command = [sys.executable, "-X", "importtime", tidu, "materialize"]
    done = subprocess.run(command, input=b'{"tidu": 1, "graphs": [{"name": 1}]}', capture_output=True, check=False)
    assert done.returncode == 1
    assert done.stderr.decode().splitlines()[-1] == "tidu materialize: error: stdin: graph 0: 'name' must be a string"
    assert "tidu_cli.formats.complaints" in done.stderr.decode()


LOADED = {
    ("linearize", "samples/f.json", "--wrt", "x"): (63, 13_650),
    ("eval", "samples/f.json", "--set", "x=3"): (86, 18_050),
}
"""Commands, and how many modules of tidu's, rooms left out, and lines of them they load at most."""


@pytest.mark.parametrize("command", LOADED, ids=lambda command: command[0])
def test_little_is_loaded(command: tuple[str, ...]) -> None:
    """Counted, and not timed: most of what a command does with a small file is to import what does it."""
    counts = loaded(*command)
    assert counts[0] <= LOADED[command][0] and counts[1] <= LOADED[command][1], counts


@needs("onnx")
def test_little_is_loaded_for_a_model(tmp_path: Path) -> None:
    model = tmp_path / "f.onnx"
    run("convert", "samples/f.json", "-o", model)
    counts = loaded("grad", model, "--wrt", "x", "--format", "json")
    assert counts[0] <= 110 and counts[1] <= 23_200, counts


def loaded(*command: str | Path) -> tuple[int, int]:
    """How many modules of tidu's a command imports, rooms left out, and how many lines they have."""
    _, modules = run(*command)
    names = [name.replace(".", "/") for name in modules if name.partition(".")[0] == "tidu_cli"]
    files = [file for name in names if (file := ROOT / f"{name}.py").is_file()]
    lines = sum(len(file.read_text().splitlines()) for file in files)
    return len(files), lines


DEFINED = """
import dataclasses, sys

defined = []
original = dataclasses.dataclass

def spied(cls=None, **how):
    def make(one):
        defined.append(f"{one.__module__}.{one.__qualname__}")
        return original(one, **how)
    return make if cls is None else make(cls)

dataclasses.dataclass = spied
sys.argv = ["tidu", "linearize", "samples/f.json", "--wrt", "x", "-o", sys.argv[1]]
from tidu_cli.__main__ import main
try:
    main()
finally:
    print(*defined)
"""


def test_no_class_is_compiled_to_linearize_a_small_file(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DEFINED, tmp_path / "g.json"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


COLLECTED = """
import gc, sys

sys.argv = ["tidu", "linearize", "samples/f.json", "--wrt", "x", "-o", sys.argv[1]]
from tidu_cli.__main__ import main
try:
    main()
finally:
    print(gc.isenabled(), gc.get_freeze_count() > 20_000, gc.get_stats()[2]["collections"])
"""


def test_garbage_is_not_looked_for_in_what_is_imported(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COLLECTED, tmp_path / "g.json"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "True", "0"]


def test_what_a_file_of_python_leaves_open_is_written(tmp_path: Path) -> None:
    """It is garbage as the process ends: to freeze that, too, would save some more time and lose what was written."""
    source = tmp_path / "f.py"
    source.write_text(f"log = open({str(tmp_path / 'log')!r}, 'w')\nlog.write('seen')\n\ndef f(x):\n    return x * x\n")
    run("build", f"{source}:f", "-i", "x:f64[]")
    assert (tmp_path / "log").read_text() == "seen"
