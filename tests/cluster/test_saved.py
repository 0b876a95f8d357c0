"""Results kept on disk: whatever is done already, and whatever happened to it, the whole is bit for bit that of one run."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tidu_cli as tidu
from tests.graphs.interpret import tree
from tests.graphs.record_graphs import random_arguments, record_graphs
from tests.graphs.sketch import Sketch, document, key
from tests.programs import require
from tests.tiers import examples
from tidu_cli.cluster import work
from tidu_cli.cluster.collecting import put_together
from tidu_cli.cluster.run import batch_of, parts
from tidu_cli.cluster.saved import Saved
from tidu_cli.errors import ArgumentError, DocumentError, TiduError
from tidu_cli.formats.chunks.sources import source_of as place
from tidu_cli.formats.chunks.sources import sources_of
from tidu_cli.graph.text import parse_type
from tidu_cli.graph.types import TIMES, leaves
from tidu_cli.runtime.evaluate import outward
from tidu_cli.transforms.materialize import materialize

law = settings(max_examples=examples(60, check=30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
GRAPH = tidu.trace(lambda x, w: {"y": x * x * w, "z": (x * w).sum()}, x="f64[2]", w="f64[2]")
F = tidu.compile(GRAPH, engine="numpy")
N, CHUNK = 40, 3
X, W = np.random.default_rng(0).normal(size=(N, 2)), np.array([2.0, 3.0])


def flat(value):
    fields = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else None
    return [np.asarray(value).tobytes()] if fields is None else [x for field in fields for x in flat(field)]


@law
@given(record_graphs(), st.data(), st.integers(0, 2**32 - 1))
def test_of_any_types_over_two_runs(tmp_path_factory, graphs, data, seed):
    """Of records, times and numbers, of chunks that are lost, damaged or there."""
    head = materialize(graphs[0]).head
    n, chunk = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 4))
    rng, types = np.random.default_rng(seed), {i.key: i.type for i in head.inputs}
    items = [random_arguments(types, rng) for _ in range(n)]
    x = {key: outward(types[key], tree(lambda *x: np.stack(x), *(item[key] for item in items))) for key in types}
    summable = all(t.dtype not in (*TIMES, "bool") for o in head.outputs for _, t in leaves(o.type))
    reduction = data.draw(st.sampled_from([None, "sum"])) if summable else None

    def batch():
        return batch_of(head, x, dict.fromkeys(x, 0), chunk=chunk, reduction=reduction)

    out = str(tmp_path_factory.mktemp("out") / "y.json")
    first = Saved(batch(), out, streamed=False)
    first.fill(None)
    for k in data.draw(st.sets(st.integers(0, len(first.sink.manifest) - 1))):
        place = Path(f"{out}.partial") / f"{k}.chunk"
        whole = place.read_bytes()
        place.unlink()
        if data.draw(st.booleans()):
            place.write_bytes(whole[:-1])
    expected = put_together(batch(), parts(batch(), None))
    results = put_together(batch(), Saved(batch(), out, streamed=False, resume=True).filled(None))
    assert [flat(value) for value in results.values()] == [flat(value) for value in expected.values()]


@pytest.mark.parametrize("suffix", ["npz", "zarr", "npy"])
@pytest.mark.parametrize("type_", ["f64[2]", "f32[]", "bf16[3]", "c64[2,2]", "i8[2]", "bool[]", "datetime[ms][]"])
def test_streams_what_memory_would_hold(type_, suffix, tmp_path):
    if suffix == "zarr":
        require("zarr")
    sketch = Sketch({"x": parse_type(type_)})
    f = tidu.compile(document(sketch.build("f", {"y": sketch.inputs[0]})), engine="numpy")
    rng = np.random.default_rng(1)
    shape = (7, *f(dict.fromkeys(["x"], np.zeros_like(sample(type_))))["y"].shape)
    x = rng.integers(0, 100, shape).astype(sample(type_).dtype)
    expected = f.map({"x": x}, {"x": 0})["y"]
    out = tmp_path / f"out.{suffix}"
    if suffix == "zarr" and "bf16" in type_:
        with pytest.raises(DocumentError, match="zarr holds no bf16, which y is of"):
            f.map({"x": x}, {"x": 0}, out=out)
        return
    assert f.map({"x": x}, {"x": 0}, out=out, chunk=2) == {}
    (source,) = sources_of(str(out)).values()
    assert source.read(0, 7).tobytes() == np.asarray(expected).tobytes()
    assert os.listdir(tmp_path) == [out.name]


def sample(type_):
    import ml_dtypes

    name, _, shape = type_.partition("[") if not type_.startswith("datetime") else ("M8[ms]", "", "]")
    dtypes = {"f64": "f8", "f32": "f4", "bf16": ml_dtypes.bfloat16, "c64": "c8", "i8": "i1", "bool": "?"}
    return np.zeros([int(n) for n in shape.rstrip("]").split(",") if n], dtypes.get(name, name))


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run over a file, which breaks off at item 25, in chunk 8; and the way to run it again."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.where(np.arange(N) == 25, 2**53 + 1, np.arange(N))[:, None] * [1, 0])

    def again(f=F, batch=0, **how):
        options = {"chunk": CHUNK, "out": "y.npz", "resume": True} | how
        return f.map({"x": Path(options.pop("x", "x.npy")), "w": options.pop("w", W)}, {"x": batch}, **options)

    with pytest.raises(TiduError) as caught:
        again(resume=False)
    assert (
        "chunk 8 (items 24 to 26): input x: expected f64[3,2], got i64[3,2], and 9007199254740993 would be rounded to f64"
        in str(caught.value)
    )
    assert str(caught.value).endswith("; what is done is kept, go on with resume=True")
    assert not os.path.exists("y.npz") and len(os.listdir("y.npz.partial")) == 1 + 8
    return again


def corrected():
    x = np.arange(N)[:, None] * [1, 0]
    np.save("x.npy", x)
    return x


def test_a_run_goes_on_where_what_it_read_has_not_been_changed(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", X)
    inputs, how = {"x": tmp_path / "x.npy", "w": W}, {"chunk": CHUNK, "out": tmp_path / "y.npz"}
    run_chunk = work.run_chunk
    monkeypatch.setattr(work, "run_chunk", failing(8))
    with pytest.raises(TiduError, match="go on with resume=True"):
        F.map(inputs, {"x": 0}, **how)
    done = []
    monkeypatch.setattr(work, "run_chunk", lambda name, k, *rest: done.append(k) or run_chunk(name, k, *rest))
    F.map(inputs, {"x": 0}, **how, resume=True)
    assert done == [8, 9, 10, 11, 12, 13]
    assert np.load(tmp_path / "y.npz")["y"].tobytes() == F.map({"x": X, "w": W}, {"x": 0}, chunk=CHUNK)["y"].tobytes()
    assert not os.path.exists(tmp_path / "y.npz.partial")


@pytest.mark.parametrize("how", ["written", "chunks copied after that", "a link that leads elsewhere"])
def test_what_came_of_files_that_have_been_changed_is_no_use(how, run, tmp_path):
    """However old the other file is, and however young what was done."""
    if how == "a link that leads elsewhere":
        (tmp_path / "other").mkdir()
        os.rename("x.npy", "other/x.npy")
        os.symlink("other/x.npy", "x.npy")
    else:
        corrected()
    if how != "written":
        for k in range(8):
            os.utime(f"y.npz.partial/{k}.chunk", (4e9, 4e9))
    with pytest.raises(TiduError, match=r"nothing in it is of use, as .*x.npy, of input x, has been changed since; remove y"):
        run()


def test_only_chunks_of_the_changed_file_are_done_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for k in range(4):
        np.save(f"x{k}.npy", X[10 * k : 10 * k + 10])
    batch = batch_of(materialize(GRAPH).head, {key("x"): place("."), key("w"): W}, {key("x"): 0}, chunk=5)
    Saved(batch, "y.npz", streamed=True).fill(None)
    assert len(os.listdir("y.npz.partial")) == 1 + 8
    np.save("x2.npy", -X[20:30])
    saved = Saved(batch, "y.npz", streamed=True, resume=True)
    assert saved.done == [0, 1, 2, 3, 6, 7]
    assert list(saved.again) == ["chunk 4 (items 20 to 24)", "chunk 5 (items 25 to 29)"]
    with saved.open():
        saved.fill(None)
    np.testing.assert_array_equal(np.load("y.npz")["z"][20:30], F.map({"x": -X[20:30], "w": W}, {"x": 0})["z"])


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ({"chunk": 4}, "size of chunks"),
        ({"reduce": "sum"}, "reduction"),
        ({"w": W + 1}, "input w"),
        ({"x": "other.npy"}, "input x"),
        ({"x": "longer.npy"}, "number of items"),
        ({"f": tidu.compile(GRAPH, output="z", engine="numpy")}, "document"),
        ({"f": "native"}, "engine"),
    ],
)
def test_another_run_is_not_gone_on_from(run, how, what):
    if how.get("f") == "native":
        how = {"f": tidu.compile(GRAPH, engine="native")}
    np.save("other.npy", np.load("x.npy"))
    np.save("longer.npy", np.zeros((N + 1, 2)))
    with pytest.raises(
        TiduError, match=f"y.npz.partial: holds what another run has done: the {what} differs; remove y.npz.partial,"
    ):
        run(**how)


def test_nothing_is_written_over(run, tmp_path):
    with pytest.raises(TiduError, match=r"y.npz.partial: holds what a run has done that broke off: go on with resume=True, or"):
        run(resume=False)
    (tmp_path / "y.zarr").mkdir()
    with pytest.raises(TiduError, match=r"y.zarr: there is a directory; remove it, or choose another name"):
        run(out="y.zarr")


@pytest.mark.parametrize("resume", [False, True])
def test_of_two_runs_at_once_one_is_refused(resume, tmp_path, monkeypatch):
    """It leaves what the other has done, and makes no chunks of its own among them."""
    monkeypatch.chdir(tmp_path)
    batch = batch_of(materialize(GRAPH).head, {key("x"): X, key("w"): W}, {key("x"): 0}, chunk=CHUNK)
    saved = Saved(batch, "y.npz", streamed=True)
    with saved.open():
        with pytest.raises(DocumentError, match=r"y.npz.partial: another run is at work there; wait until it ends, or"):
            F.map({"x": X, "w": W}, {"x": 0}, out="y.npz", chunk=CHUNK, resume=resume)
        saved.fill(None)
    np.testing.assert_array_equal(np.load("y.npz")["y"], F.map({"x": X, "w": W}, {"x": 0})["y"])
    assert os.listdir() == ["y.npz"]


def test_a_folder_of_something_else_is_left_alone(tmp_path, monkeypatch):
    """It has the name of that of chunks, which is removed when all is done, and when nothing is."""
    monkeypatch.chdir(tmp_path)
    os.mkdir("y.npz.partial")
    Path("y.npz.partial", "notes.txt").write_text("mine")
    with pytest.raises(DocumentError, match=r"y.npz.partial: there is a directory of something else; remove it, or choose anoth"):
        F.map({"x": X, "w": W}, {"x": 0}, out="y.npz")
    assert os.listdir("y.npz.partial") == ["notes.txt"]
    os.unlink("y.npz.partial/notes.txt")
    F.map({"x": X, "w": W}, {"x": 0}, out="y.npz")
    assert os.listdir() == ["y.npz"]


def test_where_nothing_is_done_nothing_stays(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3)[:, None] // [3, 2] * (2**53 + 1))
    with pytest.raises(TiduError, match=r"chunk 0 .* would be rounded to f64$"):
        F.map({"x": tmp_path / "x.npy", "w": W}, {"x": 0}, out=tmp_path / "y.npz", chunk=3)
    with pytest.raises(TiduError, match="npy holds one array, and there are 2 "):
        F.map({"x": X, "w": W}, {"x": 0}, out=tmp_path / "y.npy")
    assert os.listdir(tmp_path) == ["x.npy"]


def test_sums_are_kept_by_groups(tmp_path, monkeypatch):
    """Sums of the first 64 chunks are there when one fails after that; the mean is that of one run, and written and returned."""
    x = np.random.default_rng(2).normal(size=(200, 2))
    expected = F.map({"x": x, "w": W}, {"x": 0}, reduce="mean", chunk=1)
    np.save(tmp_path / "x.npy", x)
    monkeypatch.setattr("tidu_cli.cluster.work.run_chunk", failing(100))
    how = {"reduce": "mean", "chunk": 1, "out": tmp_path / "y.npz"}
    with pytest.raises(TiduError, match="chunk 100: lost; what is done is kept, go on with resume=True"):
        F.map({"x": tmp_path / "x.npy", "w": W}, {"x": 0}, **how)
    monkeypatch.undo()
    assert sorted(os.listdir(tmp_path / "y.npz.partial")) == ["0.chunk", "manifest.json"]
    resumed = F.map({"x": tmp_path / "x.npy", "w": W}, {"x": 0}, **how, resume=True)
    written = np.load(tmp_path / "y.npz")
    assert all(resumed[k].tobytes() == expected[k].tobytes() == written[k].tobytes() for k in ("y", "z"))


def failing(at):
    from tidu_cli.cluster.work import Failure, run_chunk

    return lambda name, index, *more: Failure(f"chunk {index}: lost") if index == at else run_chunk(name, index, *more)


def test_misuse():
    for how, message in (
        ({"resume": True}, "resume=True goes on from what is beside out; give the 'out' of the run that broke off"),
        ({"out": "y.json"}, "'y.json': results are written to a .zarr directory, or a .npz or .npy file"),
        ({"out": "y.zarr", "reduce": "sum"}, "'y.zarr': results are written to a .npz or .npy file"),
        ({"out": 3}, "argument 'out' takes the name of a file"),
        ({"out": "y.npz", "resume": 1}, "argument 'resume' takes True or False"),
    ):
        with pytest.raises(ArgumentError, match=message):
            F.map({"x": X, "w": W}, {"x": 0}, **how)


def test_two_runs_of_one_document_side_by_side():
    """What one has let go of, the other still has."""
    batch = batch_of(materialize(GRAPH).head, {key("x"): X, key("w"): W}, {key("x"): 0}, chunk=CHUNK)
    first, second = parts(batch, None), parts(batch, None)
    next(first), next(second)
    first.close()
    assert len(list(second)) == len(batch.plan) - 1


def test_a_run_that_is_left_is_forgotten_whatever_goes_on():
    """Its iterator may be collected while another run holds the table of what is kept."""
    batch = batch_of(materialize(GRAPH).head, {key("x"): X, key("w"): W}, {key("x"): 0}, chunk=CHUNK)
    left = parts(batch, None)
    next(left)

    def collect():
        with work._lock:
            left.close()

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive() and batch.job.name not in work._kept
