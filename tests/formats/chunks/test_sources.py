"""Parts of arrays in files: read one after the other they are the array, whatever the file, the order in memory and the axis."""

from __future__ import annotations

import json
import os
import pickle
import resource
import shutil
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.tiers import examples
from tidu_cli.errors import TiduError
from tidu_cli.formats.chunks.sources import source_of, sources_of, stamp

DTYPES = st.sampled_from(["<f8", ">f8", "<f4", ">i4", "|u1", "|b1", "<c16", "<M8[s]", "<i2"])
shapes = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5)
arrays = st.builds(lambda dtype, shape: np.arange(7, 7 + np.prod(shape)).reshape(shape).astype(dtype), DTYPES, shapes)


def written(folder, kind, x):
    """The array in a file of that kind: where it is."""
    if kind == "npy":
        np.save(folder / "x.npy", x)
        return folder / "x.npy"
    if kind in ("npz", "compressed"):
        (np.savez if kind == "npz" else np.savez_compressed)(folder / "x.npz", other=np.zeros(3), x=x)
        return f"{folder / 'x.npz'}:x"
    if kind == "zarr":
        import zarr

        zarr.create_array(folder / "x.zarr", shape=x.shape, dtype=x.dtype, chunks=tuple(max(n // 2, 1) for n in x.shape))[...] = x
        return folder / "x.zarr"
    for k in range(0, max(len(x), 1), 2):
        np.save(folder / f"part-{k // 2 + 8}.npy", x[k : k + 2])  # 8, 9, 10: in the order of numbers
    return folder


@settings(max_examples=examples(40))
@pytest.mark.parametrize("kind", ["npy", "npz", "compressed", "zarr", "directory"])
@given(x=arrays, fortran=st.booleans(), data=st.data())
def test_parts_are_those_of_the_whole(kind, x, fortran, data, tmp_path_factory):
    if kind == "zarr" and x.dtype.kind == "M":
        return
    stored = np.asfortranarray(x) if fortran and kind in ("npy", "npz") else x
    source = pickle.loads(pickle.dumps(source_of(str(written(tmp_path_factory.mktemp("x"), kind, stored)))))
    assert source.shape == x.shape and np.dtype(source.dtype).newbyteorder("=") == x.dtype.newbyteorder("=")
    axis = 0 if kind == "compressed" else data.draw(st.integers(0, x.ndim - 1))
    cuts = sorted(data.draw(st.lists(st.integers(0, x.shape[axis]), max_size=4)))
    bounds = [0, *cuts, x.shape[axis]]
    parts = [source.read(a, b, axis) for a, b in pairwise(bounds)]
    assert all(part.dtype.isnative and part.flags.writeable for part in parts)
    np.testing.assert_array_equal(np.concatenate(parts, axis), x)


def test_several_arrays_of_a_directory_and_of_its_chunks(tmp_path):
    np.save(tmp_path / "w.npy", np.arange(3.0))
    for k in (1, 2):
        np.savez(tmp_path / f"{k}.npz", a=np.full(k, k), b=np.full((k, 2), 0.5))
    sources = sources_of(str(tmp_path))
    assert {name: source.shape for name, source in sources.items()} == {"w": (3,), "a": (3,), "b": (3, 2)}
    assert sources["a"].read(0, 3).tolist() == [1, 2, 2]


def refused(path) -> str:
    with pytest.raises(TiduError) as caught:
        source_of(str(path))
    message = str(caught.value)
    assert str(path).split(":")[0] in message and "\n" not in message
    return message


def test_what_is_no_array(tmp_path):
    (tmp_path / "text.npy").write_text("x" * 200)
    np.save(tmp_path / "objects.npy", np.array([{}, 1]), allow_pickle=True)
    np.save(tmp_path / "fields.npy", np.zeros(2, [("a", "f8")]))
    np.savez(tmp_path / "two.npz", alpha=np.zeros(2), beta=np.zeros(2))
    (tmp_path / "broken.npz").write_bytes((tmp_path / "two.npz").read_bytes()[:-30])
    (tmp_path / "x.csv").write_text("1,2")
    (tmp_path / "empty").mkdir()
    assert "no such file" in refused(tmp_path / "nowhere.npy")
    assert "or no .npy file" in refused(tmp_path / "text.npy")
    assert "is of Python's objects" in refused(tmp_path / "objects.npy")
    assert "arrays are of numbers" in refused(tmp_path / "fields.npy")
    assert "say which" in refused(tmp_path / "two.npz")
    assert "did you mean 'alpha'?" in refused(f"{tmp_path / 'two.npz'}:alpa")
    assert "not a complete .npz file" in refused(tmp_path / "broken.npz")
    assert "parts are read of" in refused(tmp_path / "x.csv")
    assert "holds no .npy" in refused(tmp_path / "empty")


def test_a_file_that_is_cut_off(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(1000.0))
    source = source_of(str(tmp_path / "x.npy"))
    with open(tmp_path / "x.npy", "r+b") as file:
        file.truncate(5000)
    assert "is cut off, at 5000 bytes of 8128" in refused(tmp_path / "x.npy")
    with pytest.raises(TiduError, match="is cut off"):
        source.read(0, 3)


@pytest.mark.parametrize("kind", ["npy", "npz", "compressed", "zarr", "directory"])
@pytest.mark.parametrize("other", [np.arange(6), np.arange(6.0).reshape(3, 2), np.arange(7.0), np.arange(3.0)])
def test_a_file_that_is_another_one_by_now(kind, other, tmp_path):
    """As many bytes of another dtype, say, or that of the same name on another machine: it is not read as what it was."""
    source = source_of(str(written(tmp_path, kind, np.arange(6.0))))
    assert source.read(2, 4).tolist() == [2, 3]
    if kind == "zarr":
        shutil.rmtree(tmp_path / "x.zarr")
    if kind == "directory":
        np.save(tmp_path / "part-9.npy", other)
    else:
        written(tmp_path, kind, other)
    with pytest.raises(TiduError, match=r"x.np[yz]|x.zarr|part-9") as caught:
        source.read(2, 4)
    assert "has been changed since the run began: it is " in str(caught.value)


def test_chunks_that_do_not_belong_together(tmp_path):
    for k in range(520):
        np.save(tmp_path / f"c{k:04}.npy", np.zeros((2, 3), np.float32 if k == 500 else np.float64))
    assert "c0500.npy: <f4[2, 3] does not continue c0000.npy, <f8[2, 3]" in refused(tmp_path)
    np.save(tmp_path / "c0500.npy", np.zeros((2, 4)))
    assert "c0500.npy: <f8[2, 4] does not continue" in refused(tmp_path)
    (tmp_path / "c0500.npy").unlink()
    assert "chunk 500 is missing" in refused(tmp_path)


def test_a_part_of_a_large_file_takes_no_more_memory_than_itself(tmp_path):
    with open(tmp_path / "x.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (2**25,)})
        file.truncate(128 + 2**28)
    source = source_of(str(tmp_path / "x.npy"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert source.read(2**24, 2**24 + 10).tolist() == [0.0] * 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**14  # in kB: 16 MB of 256


class Call:
    """What calls a function where it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("called",)


@pytest.mark.parametrize("dtype", ["<f8", "|O"])
def test_a_zarr_array_that_is_pickled_is_refused_and_not_unpickled(tmp_path, monkeypatch, dtype):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "evil.zarr"
    folder.mkdir()
    declared = {"shape": [4], "chunks": [4], "dtype": dtype, "fill_value": None, "order": "C", "compressor": None, "zarr_format": 2}
    (folder / ".zarray").write_text(json.dumps(declared | {"filters": [{"id": "pickle", "protocol": 5}]}))
    (folder / "0").write_bytes(pickle.dumps(Call()))
    with pytest.raises(TiduError, match=r"evil\.zarr: "):
        source_of("evil.zarr").read(0, 4)
    assert not (tmp_path / "called").exists()


def test_a_directory_has_another_stamp_when_a_file_in_it_has_changed(tmp_path):
    folder = written(tmp_path, "directory", np.arange(4.0))
    before = stamp(str(folder))
    assert stamp(str(folder)) == before
    with open(folder / "part-9.npy", "ab") as file:
        file.write(b" ")
    assert stamp(str(folder)) != before
