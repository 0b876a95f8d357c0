"""The options of work in chunks: what is missing is told in one line, and matrices go on from what is there, too."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from tests.cli.running import invoke, succeed
from tests.cluster.test_saved import failing

EVAL = ("eval", "samples/rosenbrock.json", "--set", "x=[1,2,3]", "--set", "y=2", "--batch", "x=0")


def told(*command):
    result = invoke(*command)
    assert result.exit_code == 1 and result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line


@pytest.mark.parametrize("command", [EVAL, ("jacobian", "samples/vector.json", "--wrt", "x", "--set", "x=[1,2,3]")])
def test_without_dask(command, monkeypatch):
    monkeypatch.setattr("tidu_cli.adapters.dask.port.find_spec", lambda name: None)
    line = told(*command, "--scheduler", "local:2")
    assert line.endswith("error: clusters need the packages dask and distributed: pip install 'tidu[dask]'")


def test_without_zarr(tmp_path, monkeypatch):
    """It is told before anything is computed."""
    monkeypatch.setattr("tidu_cli.formats.chunks.npy.find_spec", lambda name: None)
    monkeypatch.setattr("tidu_cli.cluster.work.run_chunk", None)
    assert told(*EVAL, "-o", tmp_path / "z.zarr").endswith("error: zarr needs a package: pip install 'tidu[dask]'")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("mode", ["--forward", "--reverse"])
def test_a_matrix_goes_on_from_what_is_there(mode, tmp_path, monkeypatch):
    command = (
        "jacobian",
        "samples/vector.json",
        "--wrt",
        "x",
        mode,
        "--set",
        "x=[1,2,3]",
        "--chunk",
        "1",
        "-o",
        tmp_path / "j.json",
    )
    expected = succeed(*command[:-2])
    monkeypatch.setattr("tidu_cli.cluster.work.run_chunk", failing(1))
    assert told(*command).endswith("error: chunk 1: lost; what is done is kept, go on with --resume")
    assert sorted(os.listdir(tmp_path / "j.json.partial")) == ["0.chunk", "manifest.json"]
    monkeypatch.undo()
    assert "holds what a run has done that broke off" in told(*command)
    result = invoke(*command, "--resume", "--verbose")
    assert "going on from 1 chunk of" in result.stderr and (tmp_path / "j.json").read_bytes() == expected
    assert os.listdir(tmp_path) == ["j.json"]


def test_a_sum_goes_to_any_format(tmp_path):
    whole = json.loads(succeed(*EVAL))["f"]
    for suffix in ("json", "csv", "npy", "npz.gz", "msgpack"):
        succeed(*EVAL, "--reduce", "mean", "-o", tmp_path / f"m.{suffix}")
    assert json.loads((tmp_path / "m.json").read_text()) == {"f": sum(whole) / 3}
    assert float(np.load(tmp_path / "m.npy")) == sum(whole) / 3


MATRIX = ("eval", "x + x", "-i", "x:f64[2,2]", "--set", "x=[[[1,2],[3,4]]]", "--batch", "x=0")
SUM = ("eval", "samples/two_outputs.json", "--set", "r=[1,2]", "--set", "theta=0", "--batch", "r=0", "--reduce", "sum")
JACOBIAN = ("jacobian", "samples/two_outputs.json", "--wrt", "r", "--set", "r=1", "--set", "theta=0")


@pytest.mark.parametrize(
    ("command", "out", "why"),
    [
        (MATRIX, "y.csv", "csv has rows and columns, and y is f64[1,2,2]"),
        (SUM, "y.npy", "npy holds one array, and there are 2 (x, y)"),
        (JACOBIAN, "y.npy", "npy holds one array, and there are 2 (x/r, y/r)"),
    ],
)
def test_a_format_that_does_not_hold_the_results_is_refused_before_they_are_computed(command, out, why, tmp_path, monkeypatch):
    monkeypatch.setattr("tidu_cli.cluster.work.run_chunk", None)
    assert f"error: {why}" in told(*command, "--chunk", "1", "-o", tmp_path / out)
    assert os.listdir(tmp_path) == []
