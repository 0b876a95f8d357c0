"""Tests that are skipped for want of a program, listed in the end or failures; and those that `.ci/run` runs once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.once import is_same_in_all_tiers
from tests.programs import EXTRAS, PACKAGES, called_by, lacking_import
from tidu_cli.errors import DocumentError

ROOT = Path(__file__).parents[1]

SUITE = """
import pytest
from tests.once import is_same_in_all_tiers
from tests.programs import needs, require

@needs("zsh", "dot", "zsh")
def test_marked(): ...

@pytest.mark.parametrize("k", [1, 2])
def test_asks(k):
    require("fish")

def test_skipped_for_another_reason():
    pytest.skip("of a whim")

@pytest.mark.xfail(strict=True)
def test_expected_to_fail():
    assert False

def test_passes(): ...
"""
SAYS = """\
2 tests: needs fish: apt-get install fish
1 test: needs zsh, dot: apt-get install zsh graphviz
1 test: of a whim
"""


def run(folder, *args, **variables):
    """Run these tests, by the settings of the repository's own, where no program is to be found."""
    (folder / "test_suite.py").write_text(SUITE)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "TIDU"))}
    command = [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    options = {"cwd": ROOT, "env": {**environment, "PATH": str(folder), **variables}, "capture_output": True, "text": True}
    return subprocess.run([*command, *args, folder / "test_suite.py"], check=False, **options)


@pytest.mark.check
@pytest.mark.parametrize("workers", ["0", pytest.param("2", marks=pytest.mark.campaign)])
def test_what_is_skipped_is_listed(tmp_path, workers):
    done = run(tmp_path, "-n", workers)
    assert done.returncode == 0 and "1 passed, 4 skipped, 1 xfailed" in done.stdout
    assert SAYS in done.stdout.partition(" skipped ")[2]


@pytest.mark.check
def test_where_all_is_there_a_skip_is_a_failure(tmp_path):
    done = run(tmp_path, "-n", "0", TIDU_TEST_ALL="1")
    assert done.returncode == 1 and "3 failed, 1 passed, 1 xfailed, 1 error" in done.stdout
    assert "TIDU_TEST_ALL=1, and this was skipped: of a whim" in done.stdout


@pytest.mark.check
def test_a_module_that_is_skipped_is_a_failure_too(tmp_path):
    done = run(tmp_path, "-n", "0", TIDU_TEST_ALL="0")
    assert done.returncode == 0
    (tmp_path / "test_other.py").write_text("import pytest\npytest.importorskip('no_such_module')\n")
    done = run(tmp_path, "-n", "0", tmp_path / "test_other.py", TIDU_TEST_ALL="1")
    assert done.returncode and "this was skipped: could not import 'no_such_module'" in done.stdout


def test_ci_installs_what_is_missing(tmp_path):
    """Without any package but Python's own."""
    command = [sys.executable, "-I", "-S", ROOT / "tests" / "programs.py"]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == " ".join(PACKAGES.values()).split()
    for name in ("chromium-browser", *set(PACKAGES) - {"chromium", "dot"}):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "cc").write_text('#!/bin/sh\necho "/lib/${1#*=}"\n')  # which is asked for libraries
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert done.stdout == "graphviz\n"
    script = (ROOT / ".ci" / "run").read_text()
    assert "python3 tests/programs.py" in script and "\nmake test\n" in script and "make VENV=.venv/check check" in script
    assert "TIDU_TEST_ALL=1 $(PYTEST) --tier check" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize(
    ("command", "programs"),
    [
        ("tidu dot f.json", []),
        ("tidu dot f.json --format dot -o f.dot", []),
        ("tidu dot f.json -o f.svg", ["dot"]),
        ("tidu linearize f.json | tidu --quiet dot --format=png > f.png", ["dot"]),
        ("tidu view f.json -o f.html", ["dot"]),
        ("cc -o f f.c && ./f", ["cc"]),
        ("node f.js", ["node"]),
        ("tidu info f.json # nodes", []),
        ("tidu eval f.json --scheduler=local --set x@=x.npy", ["dask"]),
        ("tidu eval m.mlir --engine xla", ["jax"]),
        ("tidu grad f.onnx --wrt x | tidu convert --format onnx -o g.onnx", ["onnx"]),
        ("tidu convert f.json -o f.json.zst", ["zstandard"]),
    ],
)
def test_what_a_command_line_calls(command, programs):
    assert called_by(command) == programs


def test_a_package_that_is_missing_is_named_with_what_installs_it(monkeypatch):
    for name in ("nowhere", "elsewhere"):
        monkeypatch.setitem(EXTRAS, name, "far")
    line = "needs nowhere, elsewhere: pip install 'tidu[far]'"
    assert lacking_import(DocumentError("files of another world need a package: pip install 'tidu[far]'")) == line
    error = ValueError("no way there")
    error.__cause__ = ModuleNotFoundError(name="nowhere.else_")
    assert lacking_import(error) == "needs nowhere: pip install 'tidu[far]'"


@pytest.mark.parametrize(
    "error", [ModuleNotFoundError(name="tidu.lost"), DocumentError(": pip install 'tidu[numpy]'"), KeyError(1)]
)
def test_other_errors_are_errors(error):
    assert lacking_import(error) == ""


@pytest.mark.check
def test_a_test_that_lacks_a_package_is_skipped(tmp_path):
    (tmp_path / "lacking.py").write_text("from tests.programs import EXTRAS\nEXTRAS['nowhere'] = 'far'")
    (tmp_path / "test_module.py").write_text("import nowhere\ndef test(): ...")
    lines = ["def test_of_tidu():", "    import nowhere", "def test_wrong():", "    import elsewhere"]
    (tmp_path / "test_inside.py").write_text("\n".join(lines))
    done = run(
        tmp_path, "-n", "0", "-p", "lacking", tmp_path / "test_module.py", tmp_path / "test_inside.py", PYTHONPATH=str(tmp_path)
    )
    assert "2 tests: needs nowhere: pip install 'tidu[far]'" in done.stdout
    assert "1 failed, 1 passed, 6 skipped" in done.stdout


@pytest.mark.check
def test_what_asks_for_the_tier_or_draws_examples_differs():
    here = Path(__file__)
    paths = {str(p.relative_to(ROOT)): p.read_text() for p in (ROOT / "tests").rglob("test_*.py") if p != here}
    same = {path for path in paths if is_same_in_all_tiers(path)}
    assert "tests/cli/test_golden.py" in same
    assert not any("tests.tiers import" in paths[path] or "from hypothesis" in paths[path] for path in same)
    # Some import modules of tests that do.
    assert any("tests.tiers" not in paths[path] and "hypothesis" not in paths[path] for path in paths.keys() - same)


@pytest.mark.check
def test_a_second_run_leaves_them_out(tmp_path):
    ran = tmp_path / "ran.txt"
    ran.touch()  # as mktemp does: pytest must not take it for a file of tests
    made = subprocess.run(["make", "-n", "test", f"ONCE={ran}"], capture_output=True, text=True, check=True, cwd=ROOT)
    (option,) = {word for word in made.stdout.split() if "ran.txt" in word}
    project = tmp_path / "project"
    project.mkdir()
    assert run(project, "-n", "2", option).returncode == 0
    assert [line.partition("::")[2] for line in ran.read_text().splitlines()] == ["test_passes"]
    done = run(project, "-n", "2", "--tier", "check", option)
    assert done.returncode == 0 and "4 skipped, 1 xfailed" in done.stdout and "passed" not in done.stdout
