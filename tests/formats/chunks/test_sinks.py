"""Results in chunks: in any order, by several processes, over several runs, they become the whole; and nothing else does."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.programs import require
from tests.tiers import examples
from tidu_cli.errors import DocumentError
from tidu_cli.formats.chunks.sinks import Manifest, Sink
from tidu_cli.formats.chunks.sources import sources_of

N, CHUNK = 10, 3
Y, X = np.arange(100.0).reshape(N, 5, 2), np.arange(N, dtype=np.int32)
MANIFEST = Manifest({"y": ("<f8", (5, 2)), "x@-1": ("<i4", ())}, N, CHUNK, {"document": "a", "input x": "b"})


def chunk(k):
    return {"y": Y[k * CHUNK : (k + 1) * CHUNK], "x@-1": X[k * CHUNK : (k + 1) * CHUNK]}


def write(path, k):
    Sink(path, MANIFEST).write(k, chunk(k))


def require_whole(path):
    sources = sources_of(path)
    assert sorted(sources) == ["x@-1", "y"]
    np.testing.assert_array_equal(sources["y"].read(0, N), Y)
    np.testing.assert_array_equal(sources["x@-1"].read(0, N), X)
    assert not os.path.exists(f"{path}.partial")


@pytest.mark.parametrize("suffix", ["npz", "zarr"])
@settings(max_examples=examples(20))
@given(order=st.permutations(range(len(MANIFEST))), stops=st.integers(0, len(MANIFEST)))
def test_any_order_over_two_runs(suffix, order, stops, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("out") / f"y.{suffix}")
    first = Sink.create(path, MANIFEST)
    for k in order[:stops]:
        first.write(k, chunk(k))
    assert not os.path.exists(path)
    second = Sink.create(path, MANIFEST, resume=True)
    assert second.done() == sorted(order[:stops])
    for k in order[stops:]:
        second.write(k, chunk(k))
    second.finish()
    require_whole(path)


@pytest.mark.check
def test_several_processes(tmp_path):
    path = str(tmp_path / "y.npz")
    sink = Sink.create(path, MANIFEST)
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        list(pool.map(write, [path] * len(MANIFEST), range(len(MANIFEST))))
    assert sink.done() == [0, 1, 2, 3]
    sink.finish()
    require_whole(path)


def test_one_array_in_an_npy_file(tmp_path):
    path = str(tmp_path / "y.npy")
    sink = Sink.create(path, replace(MANIFEST, arrays={"y": ("<f8", (5, 2))}))
    for k in range(len(MANIFEST)):
        sink.write(k, chunk(k))
    sink.finish()
    np.testing.assert_array_equal(np.load(path), Y)


def test_damaged_chunks_are_done_again(tmp_path):
    """Every change of a byte, every cut, and a chunk in the place of another."""
    path = str(tmp_path / "y.npz")
    sink = Sink.create(path, MANIFEST)
    for k in range(len(MANIFEST)):
        sink.write(k, chunk(k))
    place = tmp_path / "y.npz.partial" / "1.chunk"
    whole, rng = place.read_bytes(), random.Random(0)
    damaged = [whole[:k] for k in (0, 1, len(whole) // 2, len(whole) - 1)] + [whole + b"\0"]
    for at in rng.sample(range(len(whole)), 60):
        damaged.append(whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1 :])
    damaged.append((tmp_path / "y.npz.partial" / "2.chunk").read_bytes())
    for data in damaged:
        place.write_bytes(data)
        assert Sink.create(path, MANIFEST, resume=True).done() == [0, 2, 3]
        assert not place.exists()
    sink.write(1, chunk(1))
    sink.finish()
    require_whole(path)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (replace(MANIFEST, chunk=4), "the size of chunks differs"),
        (replace(MANIFEST, size=11), "the number of items differs"),
        (replace(MANIFEST, identity={"document": "a", "input x": "c"}), "the input x differs"),
        (replace(MANIFEST, identity={"document": "z", "input x": "b"}), "the document differs"),
        (replace(MANIFEST, arrays={"y": ("<f8", (5, 2))}), "the choice of outputs differs"),
    ],
)
def test_another_run_is_not_resumed(other, words, tmp_path):
    path = str(tmp_path / "y.npz")
    Sink.create(path, MANIFEST)
    with pytest.raises(DocumentError, match=words):
        Sink.create(path, other, resume=True)
    with pytest.raises(DocumentError, match="go on with resume=True, or remove it"):
        Sink.create(path, MANIFEST)


def test_a_damaged_manifest(tmp_path):
    path = str(tmp_path / "y.npz")
    Sink.create(path, MANIFEST)
    place = tmp_path / "y.npz.partial" / "manifest.json"
    for text in ("", "{", "[]", "{}", json.dumps({"arrays": 3})):
        place.write_text(text)
        with pytest.raises(DocumentError, match="is damaged; remove"):
            Sink.create(path, MANIFEST, resume=True)


def test_what_users_made_stays(tmp_path):
    require("zarr")
    (tmp_path / "y.zarr").mkdir()
    (tmp_path / "f.zarr").write_text("mine")
    (tmp_path / "l.zarr").symlink_to("nowhere")
    for name, what in (("y", "directory"), ("f", "file"), ("l", "file")):
        with pytest.raises(DocumentError, match=f"{name}.zarr: there is a {what}; remove it, or choose another name"):
            Sink.create(str(tmp_path / f"{name}.zarr"), MANIFEST)
    assert len(list(tmp_path.iterdir())) == 3


def test_a_wrong_chunk_is_refused(tmp_path):
    sink = Sink.create(str(tmp_path / "y.npz"), MANIFEST)
    with pytest.raises(DocumentError, match=r"chunk 0: x@-1 is int64\[3\], and <i4\[3\] is due"):
        sink.write(0, {**chunk(0), "x@-1": X[:3].astype(np.int64)})


def test_a_full_disk_keeps_what_is_done(tmp_path):
    """A limit to the size of files stands for it, which any user may set."""
    path = str(tmp_path / "y.npz")
    sink = Sink.create(path, MANIFEST)
    for k in range(3):
        sink.write(k, chunk(k))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40, limits[1]))
    try:
        with pytest.raises(DocumentError, match=r"chunk 3: .*y.npz.partial: File too large; what is done is kept, go on"):
            sink.write(3, chunk(3))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert sink.done() == [0, 1, 2]
    sink.write(3, chunk(3))
    resource.setrlimit(resource.RLIMIT_FSIZE, (400, limits[1]))
    try:
        with pytest.raises(DocumentError, match=r"y.npz: File too large; what is done is kept"):
            sink.finish()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert not os.path.exists(path)
    sink.finish()
    require_whole(path)


def test_without_zarr_nothing_is_begun(tmp_path, monkeypatch):
    monkeypatch.setattr("tidu_cli.formats.chunks.npy.find_spec", lambda name: None)
    with pytest.raises(DocumentError, match=r"zarr needs a package: pip install 'tidu\[dask\]'"):
        Sink.create(str(tmp_path / "y.zarr"), MANIFEST)
    assert not list(tmp_path.iterdir())
