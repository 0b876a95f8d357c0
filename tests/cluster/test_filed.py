"""Batches whose items lie in files: what is computed is what is computed of arrays, and what does not fit is told before."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tidu_cli as tidu
from tests.cli.running import invoke, succeed
from tests.graphs.sketch import Sketch, document, op
from tests.tiers import examples
from tidu_cli.errors import TiduError
from tidu_cli.formats.write import format_document

field, mul = map(op, ("field", "mul"))
N = 23
X = np.random.default_rng(0).normal(size=(N, 2, 3))
DOCUMENT = tidu.trace(lambda x, w: {"y": (x * w).sum(axis=1)}, x="f64[2,3]", w="f64[3]")
F = tidu.compile(DOCUMENT, engine="numpy")


def in_files(folder: Path, kind: str, x: np.ndarray) -> Path:
    """The array in files of a kind: where it is."""
    place = folder / f"x.{kind}"
    if kind == "zarr":
        zarr.create_array(place, shape=x.shape, dtype=x.dtype, chunks=tuple(max(n // 2, 1) for n in x.shape))[...] = x
    elif kind == "npy":
        np.save(place, x)
    elif kind in ("npz", "packed.npz"):
        (np.savez if kind == "npz" else np.savez_compressed)(place, x=x)
    else:
        place.mkdir()
        for k in range(0, len(x), 5):
            np.save(place / f"x-{k // 5:03}.npy", x[k : k + 5])
    return place


@settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.parametrize("kind", ["npy", "npz", "packed.npz", "zarr", "chunks"])
@given(axis=st.integers(-3, 2), chunk=st.integers(1, N + 1), reduce=st.sampled_from([None, "sum", "mean"]))
def test_results_are_those_of_arrays(tmp_path_factory, kind, axis, chunk, reduce):
    x, w, how = np.moveaxis(X, 0, axis), np.arange(3.0), {"chunk": chunk, "reduce": reduce}
    place = in_files(tmp_path_factory.mktemp("x"), kind, np.ascontiguousarray(x))
    array = F.map({"x": place, "w": w}, {"x": axis}, **how)["y"]
    assert array.tobytes() == F.map({"x": x, "w": w}, {"x": axis}, **how)["y"].tobytes()


def test_the_command_takes_directories_and_files(tmp_path):
    (tmp_path / "f.msgpack").write_bytes(format_document(DOCUMENT, "msgpack"))
    for kind in ("npy", "npz", "zarr", "chunks"):
        in_files(tmp_path, kind, X)
    data = tmp_path / "data"
    data.mkdir()
    np.savez(data / "0.npz", x=X[:20])
    np.savez(data / "1.npz", x=X[20:])
    np.save(data / "w.npy", [1.0, 2.0, 3.0])
    expected = json.loads(succeed("eval", tmp_path / "f.msgpack", "--batch", "x=0", *given_at(tmp_path, "x.npy")))
    assert expected == {"y": (X * [1.0, 2.0, 3.0]).sum(axis=2).tolist()}
    for name in ("x.npz", "x.npz:x", "x.zarr", "x.chunks"):
        for more in ([], ["--chunk", "4"]):
            out = succeed("eval", tmp_path / "f.msgpack", "--batch", "x=0", *given_at(tmp_path, name), *more)
            np.testing.assert_allclose(json.loads(out)["y"], expected["y"], rtol=1e-15)
    of_data = succeed("eval", tmp_path / "f.msgpack", "--batch", "x=0", "--inputs", data, "--chunk", "7")
    np.testing.assert_allclose(json.loads(of_data)["y"], expected["y"], rtol=1e-15)


def given_at(folder, name):
    return ["--set", f"x=@{folder / name}", "--set", "w=[1,2,3]"]


def test_fields_of_records(tmp_path):
    sketch = Sketch({"p": "{a: f64[2], b: {c: f64[]}}"})
    p = sketch.inputs[0]
    c = field(field(p, name="b"), name="c")
    of_record = document(sketch.build("f", {"y": mul(c, c), "z": field(p, name="a")}))
    np.save(tmp_path / "p.a.npy", X[:, :, 0])
    zarr.create_array(tmp_path / "c.zarr", shape=(N,), dtype="f8")[...] = X[:, 0, 0]
    f = tidu.compile(of_record, engine="numpy")
    results = f.map({"p": {"a": tmp_path / "p.a.npy", "b": {"c": tmp_path / "c.zarr"}}}, {"p": 0}, chunk=4)
    assert results["y"].tolist() == (X[:, 0, 0] ** 2).tolist() and results["z"].tolist() == X[:, :, 0].tolist()
    with pytest.raises(TiduError, match="input p: some of its fields lie in files of which parts are read, and others do not"):
        f.map({"p": {"a": tmp_path / "p.a.npy", "b": {"c": X[:, 0, 0]}}}, {"p": 0})
    folder = tmp_path / "data"
    folder.mkdir()
    np.save(folder / "p.a.npy", X[:, :, 0])
    np.save(folder / "p.b.c.npy", X[:, 0, 0])
    (tmp_path / "f.msgpack").write_bytes(format_document(of_record, "msgpack"))
    out = json.loads(succeed("eval", tmp_path / "f.msgpack", "--batch", "p=0", "--inputs", folder, "--chunk", "4"))
    assert out == {key: value.tolist() for key, value in results.items()}


def refusal(place, axis=0, **how):
    with pytest.raises(TiduError) as caught:
        F.map({"x": place, "w": np.ones(3)}, {"x": axis}, **how)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_does_not_fit_is_told_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setattr("tidu_cli.cluster.run.Batch", None)
    np.save(tmp_path / "narrow.npy", X[:, :, :2])
    np.save(tmp_path / "text.npy", np.array(["a"]))
    np.save(tmp_path / "complex.npy", X * 1j)
    np.save(tmp_path / "flat.npy", X[0])
    assert refusal(tmp_path / "narrow.npy").startswith("input x: expected f64[2,3], got f64[2,2]; give exactly that type")
    assert refusal(tmp_path / "complex.npy").startswith("input x: expected f64[2,3], got c128[2,3], and 0.1257302210933933j at")
    assert re.match(r"input x: /.*/text.npy: is of <U1, and arrays are of numbers", refusal(tmp_path / "text.npy"))
    assert "expected a batch of f64[2,3], 3 axes, got 2 axes" in refusal(tmp_path / "flat.npy")
    assert "axis 3 is out of range" in refusal(tmp_path / "narrow.npy", 3)
    assert "no such file or directory" in refusal(tmp_path / "nowhere.npy")
    in_files(tmp_path, "chunks", X)
    np.save(tmp_path / "x.chunks" / "x-003.npy", X[15:20].astype("f4"))
    assert "x-003.npy: <f4[5, 2, 3] does not continue x-000.npy" in refusal(tmp_path / "x.chunks")


def test_what_only_a_chunk_tells_names_it(tmp_path):
    """A number that would be rounded; a file cut off, and one changed, in mid-run; a chunk of zarr's damaged."""
    counts = np.ones((N, 2, 3), np.int64)
    counts[12, 1, 1] = 2**53 + 1
    np.save(tmp_path / "counts.npy", counts)
    assert refusal(tmp_path / "counts.npy", chunk=5).startswith("chunk 2 (items 10 to 14): input x: expected f64[5,2,3], got i64")
    place = in_files(tmp_path, "zarr", X)
    damaged = place / "c" / "1" / "0" / "0"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    assert re.match(rf"chunk 2 \(items 10 to 14\): {place}: the array, entries 10 to 14: ", refusal(place, chunk=5))


def test_a_result_that_memory_does_not_hold(tmp_path, monkeypatch):
    (tmp_path / "f.msgpack").write_bytes(format_document(DOCUMENT, "msgpack"))
    in_files(tmp_path, "npy", X)
    command = [
        "eval",
        tmp_path / "f.msgpack",
        "--batch",
        "x=0",
        *given_at(tmp_path, "x.npy"),
        "--chunk",
        "1",
        "--max-memory",
        "340",
    ]
    told = "the results of all items: 368 B, more than the limit of 340 B; write them to a file, -o out.zarr, or allow more with"
    assert told in invoke(*command).stderr
    succeed(*command, "-o", tmp_path / "y.zarr")
    assert zarr.open(tmp_path / "y.zarr")["y"].shape == (N, 2)
