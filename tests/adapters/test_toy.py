"""A format that another package brings is read, written, checked, completed and explained as those of tidu are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOY = Path(__file__).with_name("toy.py")


@pytest.fixture
def run(tmp_path):
    """A command in a folder of its own, where a package that brings the toy is installed."""
    site = tmp_path / "site"
    information = site / "tidu_toy-1.0.dist-info"
    information.mkdir(parents=True)
    (site / "tidu_toy.py").write_text(TOY.read_text())
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: tidu-toy\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[tidu.formats]\ntoy = tidu_toy:TOY\n[tidu.engines]\nslide = tidu_toy:SLIDE\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *sys.path])}

    def running(*words, data="", **more):
        command, environ = [sys.executable, "-m", "tidu_cli", *words], {**environment, **more}
        done = subprocess.run(command, input=data, capture_output=True, text=True, cwd=tmp_path, env=environ, check=False)
        return done.returncode, done.stdout, done.stderr

    return running


F = "# toy\ny = x x + 3x *\n"


def test_a_file_is_read_by_its_suffix_and_written(run, tmp_path):
    (tmp_path / "f.toy").write_text(F)
    assert run("eval", "f.toy", "--set", "x=3", "--set", "3x=5") == (
        0,
        '{"y": 30.0}\n',
        "tidu eval: note: f.toy: toy notation is for tests\n",
    )
    assert run("convert", "f.toy", "--quiet", "-o", "g.toy") == (0, "", "")
    assert (tmp_path / "g.toy").read_text() == F
    assert run("materialize", "f.toy", "--quiet", "--format", "toy")[1] == F
    assert run("grad", "f.toy", "--quiet", "--wrt", "x", "--set", "x=3", "--set", "3x=5") == (0, '{"x@-1": 10.0}\n', "")


def test_options_are_taken_where_the_format_is_named(run, tmp_path):
    (tmp_path / "f.toy").write_text(F)
    assert '"type": "f32[]"' in run("convert", "f.toy", "--format", "json", "--x-type", "f32")[1]
    assert run("convert", "f.toy", "--quiet", "--sign", ";")[1] == F.replace("#", ";")
    status, _, error = run("convert", "f.toy", "--sign", "!")
    assert (status, error.splitlines()[-1]) == (2, "Error: Invalid value for '--sign': '!' is not # or ;")
    assert "No such option '--sign'" in run("convert", "--format", "json", "--sign", ";", data=F)[2]


@pytest.mark.check
def test_it_is_checked_completed_and_explained(run, tmp_path):
    (tmp_path / "f.toy").write_text(F)
    status, out, _ = run("check", "f.toy", "--all")
    assert status == 0 and out.startswith("f.toy: valid toy, 1 graph, 2 nodes\n  notation: reverse Polish\n")
    assert "--sign" in run("convert", "f.toy", "--help")[1]
    line = "tidu convert --format t"
    assert run(line, str(len(line)), "", _TIDU_COMPLETE="bash_complete")[1].split() == ["word", "toy"]
    line = "tidu convert f.toy --sig"
    assert run(line, str(len(line)), "", _TIDU_COMPLETE="bash_complete")[1].split() == ["word", "--sign"]
    line = "tidu grad f.toy --wrt "
    assert run(line, str(len(line)), "", _TIDU_COMPLETE="bash_complete")[1].split() == ["word", "x", "word", "3x"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("convert", "f.toy"), "f.toy: output 'y': '+' takes two operands"),
        (("convert", "sin(x)", "-i", "x:f64[]", "--format", "toy"), "toy notation has no sin"),
    ],
)
def test_what_is_refused_is_refused_in_one_line(run, tmp_path, words, said):
    (tmp_path / "f.toy").write_text("# toy\ny = x +\n")
    assert run(*words) == (1, "", f"tidu convert: error: {said}\n")


def test_a_broken_package_stops_only_those_who_name_its_format(run, tmp_path):
    (tmp_path / "site" / "tidu_toy.py").write_text("1 / 0\n")
    (tmp_path / "f.toy").write_text(F)
    status, out, error = run("convert", "f.toy")
    reason = "(tidu_toy:TOY: ZeroDivisionError: division by zero)"
    told = f"tidu convert: error: 'toy': package tidu-toy 1.0 is broken {reason}; repair or uninstall it\n"
    assert (status, out, error) == (1, "", told)
    line = "tidu convert f.toy --fo"
    assert run(line, str(len(line)), "", _TIDU_COMPLETE="bash_complete") == (0, "word\t--force\nword\t--format\n", "")
    assert run("build", "x * x", "-i", "x:f64[]")[0] == 0


def test_an_engine_of_another_package_runs_what_it_does_not_refuse(run):
    how = ("--set", "x=3", "--engine", "slide")
    assert run("eval", "x * x", *how, "-v")[:2] == (0, '{"y": 9.0}\n')
    assert "engine slide, as asked for" in run("eval", "x * x", *how, "-v")[2]
    assert run("eval", "sin(x)", *how) == (1, "", "tidu eval: error: node 0 (sin): not on a slide rule\n")
    status, _, error = run("eval", "x * x", "--set", "x=3", "--engine", "slid")
    assert status == 2 and "'slid' is not one of" in error
    line = "tidu eval f.json --engine sl"
    assert run(line, str(len(line)), "", _TIDU_COMPLETE="bash_complete")[1].split() == ["word", "slide"]


READY = "Slide.program = lambda *args: 1 / 0"
RUN = "def program(*args):\n    p = plain_program(args[1])\n    p.run_in_order = 3\n    return p\nSlide.program = program"


@pytest.mark.check
@pytest.mark.parametrize("broken", [READY, RUN], ids=["made ready", "run"])
def test_an_engine_that_fails_is_told_as_its_packages(run, tmp_path, broken):
    (tmp_path / "site" / "tidu_toy.py").write_text(f"{TOY.read_text()}\n{broken}\n")
    status, out, error = run("eval", "x * x", "--set", "x=3", "--engine", "slide")
    assert (status, out) == (1, "")
    assert error.startswith("tidu eval: error: 'slide': package tidu-toy 1.0 is broken (") and error.count("\n") == 1


@pytest.mark.check
def test_a_result_is_written_over_by_one_of_its_format_and_kept_from_values(run, tmp_path):
    (tmp_path / "f.toy").write_text(F)
    for _ in range(2):
        assert run("convert", "f.toy", "--quiet", "-o", "g.toy") == (0, "", "")
    assert run("convert", "f.toy", "--quiet", "--format", "json", "-o", "g.toy")[0] == 2
    assert run("eval", "f.toy", "--set", "x=1", "--set", "3x=1", "-o", "g.toy")[0] == 2
    assert (tmp_path / "g.toy").read_text() == F


def test_only_the_last_suffix_counts(run, tmp_path):
    (tmp_path / "f.toy.json").write_bytes((TOY.parents[2] / "samples" / "f.json").read_bytes())
    (tmp_path / "site" / "tidu_toy.py").write_text("1 / 0\n")  # it is not even imported
    assert run("eval", "f.toy.json", "--set", "x=3") == (0, '{"y": 18.0}\n', "")


@pytest.mark.check
@pytest.mark.parametrize("word", ["--format=toy", "-og.toy"])
def test_the_format_may_stand_in_one_word_with_its_option(run, word):
    assert run("build", "x * x", "-i", "x:f64[]", word)[0] == 0
    assert run("convert", "x * x", "-i", "x:f64[]", "--sign", ";", word)[0] == 0


def test_options_of_one_format_are_refused_for_another(run, tmp_path):
    (tmp_path / "f.json").write_bytes((TOY.parents[2] / "samples" / "f.json").read_bytes())
    told = "tidu convert: error: f.json: is json, and --x-type is for files of toy notation; leave it out\n"
    assert run("convert", "f.json", "--format", "toy", "--x-type", "f32") == (1, "", told)


@pytest.mark.check
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("TOY = 3", "(tidu_toy:TOY: TypeError: int has no name, title, subject, suffixes, binary"),
        ("{}\nToy.read = lambda *args: 1 / 0", "(ZeroDivisionError: division by zero)"),
        ("{}\nToy.sniff = lambda *args: 1 / 0", "(ZeroDivisionError: division by zero)"),
        ("{}\nToy.write = lambda *args: 1 / 0", "(ZeroDivisionError: division by zero)"),
    ],
)
def test_what_goes_wrong_in_a_package_is_told_as_its_own(run, tmp_path, code, said):
    (tmp_path / "site" / "tidu_toy.py").write_text(code.replace("{}", TOY.read_text(), 1))
    (tmp_path / "f.toy").write_text(F)
    status, out, error = run("convert", "f.toy", "--quiet")
    assert (status, out, error.count("\n")) == (1, "", 1)
    assert error.startswith("tidu convert: error: ") and f"'toy': package tidu-toy 1.0 is broken {said}" in error


def test_two_packages_that_bring_one_format_clash(run, tmp_path):
    other = tmp_path / "site" / "other-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (other / "entry_points.txt").write_text("[tidu.formats]\ntoy = other:TOY\n")
    (tmp_path / "f.toy").write_text(F)
    status, _, error = run("convert", "f.toy")
    assert status == 1 and "both bring one; uninstall one of them" in error
