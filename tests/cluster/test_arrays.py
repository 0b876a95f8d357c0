"""Arrays of Dask's in and out: as lazy as they came, and of the values of one process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tidu_cli as tidu
from tests.cli.running import document, graph
from tests.cluster.clusters import bits, elementwise, needs_dask, products, same, values
from tidu_cli.adapters.dask import port
from tidu_cli.errors import ArgumentError, EvaluationError

pytestmark = needs_dask
AXES = {"x": 0, "y": 0}


@pytest.fixture
def da():
    """Dask's arrays, computed by one thread unless a client is named."""
    import dask
    import dask.array

    with dask.config.set(scheduler="synchronous"):
        yield dask.array


@pytest.fixture
def runs(monkeypatch):
    """The chunks that were run in this process, as they are run."""
    spans = []
    run = port.run_chunk

    def counted(name, index, start, stop, given):
        spans.append((start, stop))
        return run(name, index, start, stop, given)

    monkeypatch.setattr(port, "run_chunk", counted)
    return spans


def computed(lazy):
    import dask

    return dask.compute(lazy)[0]


def test_nothing_is_computed_before_it_is_wanted(da, runs):
    import dask

    made, at = [], values(20)

    def block(k):
        made.append(k)
        return at["x"][5 * k : 5 * k + 5]

    delayed = dask.delayed(block)
    x = da.concatenate([da.from_delayed(delayed(k), (5, 3), "f8") for k in range(4)])
    lazy = tidu.compile(elementwise()).map({"x": x, "y": at["y"]}, AXES)
    assert {key: (type(a), a.shape, a.dtype, a.chunks) for key, a in lazy.items()} == {
        key: (da.Array, (20, 3), np.dtype("f8"), ((5, 5, 5, 5), (3,))) for key in "ab"
    }
    assert not made and not runs
    first = lazy["a"][:7].compute()
    assert sorted(made) == [0, 1] and sorted(runs) == [(0, 5), (5, 10)], "and only the blocks that are"
    due = tidu.evaluate(elementwise(), at, batch=AXES)
    assert bits(first) == bits(due["a"][:7])
    assert same(computed(lazy), due)


@pytest.mark.parametrize("blocks", [1, 4, (1, 6, 13), 20, 50])
def test_blocks_of_any_size(blocks, da):
    at = values(20)
    given = {"x": da.from_array(at["x"], chunks=(blocks, 2)), "y": da.from_array(at["y"], chunks=7)}
    lazy = tidu.compile(elementwise()).map(given, AXES)
    assert same(computed(lazy), tidu.evaluate(elementwise(), at, batch=AXES))


@pytest.mark.parametrize("reduce", [None, "sum", "mean"])
def test_sums_axes_and_complex_numbers(reduce, da):
    rng = np.random.default_rng(0)
    at = {"x": rng.normal(size=(4, 3, 60)), "z": rng.normal(size=(3, 60)) + 1j * rng.normal(size=(3, 60))}
    program, axes = tidu.compile(products()), {"x": 2, "z": -1}
    lazy = {"x": da.from_array(at["x"], chunks=(2, 3, 7)), "z": at["z"]}
    results = computed(program.map(lazy, axes, reduce=reduce))
    due = program.map(at, axes, reduce=reduce, chunk=7)
    if reduce is None:
        assert same(results, due)
    for key in due:
        assert (results[key].dtype, results[key].shape) == (due[key].dtype, due[key].shape)
        np.testing.assert_allclose(results[key], due[key], rtol=1e-13)


@pytest.mark.parametrize("reduce", [None, "sum", "mean"])
def test_no_items(reduce, da):
    program, at = tidu.compile(elementwise()), values(0)
    lazy = {"x": da.from_array(at["x"], chunks=(4, 3)), "y": at["y"]}
    assert same(computed(program.map(lazy, AXES, reduce=reduce)), program.map(at, AXES, reduce=reduce))


@pytest.mark.parametrize("reduce", [None, "sum"])
def test_files_beside_arrays(reduce, da, tmp_path):
    """A batch is read in parts by whoever computes a block, a shared value now."""
    at = values(20)
    np.save(tmp_path / "y.npy", at["y"])
    np.save(tmp_path / "one.npy", at["y"][0])
    program, x = tidu.compile(elementwise()), da.from_array(at["x"], chunks=(7, 3))
    results = computed(program.map({"x": x, "y": tmp_path / "y.npy"}, AXES, reduce=reduce))
    assert same(results, program.map(at, AXES, reduce=reduce, chunk=7))
    results = computed(program.map({"x": x, "y": tmp_path / "one.npy"}, {"x": 0}, reduce=reduce))
    assert same(results, program.map(at | {"y": at["y"][0]}, {"x": 0}, reduce=reduce, chunk=7))
    with pytest.raises(EvaluationError, match="batches differ in size: y has 20, and others 7"):
        program.map({"x": x[:7], "y": tmp_path / "y.npy"}, AXES)


def test_arrays_that_no_output_depends_on(da):
    """A batch says how many items there are; what is no input says nothing."""
    document = tidu.trace(lambda x, w: {"y": x + 1, "v": w * 2}, x="f64[]", w="f64[]")
    program, x = tidu.compile(document, output="v"), np.arange(5.0)
    due = program.map({"x": x, "w": 3.0}, {"x": 0})
    assert same(computed(program.map({"x": da.from_array(x, chunks=2), "w": 3.0}, {"x": 0})), due)
    assert same(program.map({"x": x, "w": 3.0, "z": da.zeros(5)}, {"x": 0}), due)
    with pytest.raises(EvaluationError, match="input x is an array of Dask's without a batch"):
        program.map({"x": da.from_array(x, chunks=2), "w": x}, {"w": 0})


@pytest.mark.check
def test_on_a_cluster_where_the_blocks_lie(da, client):
    at = values(20)
    x = client.persist(da.from_array(at["x"], chunks=(4, 3)))
    lazy = tidu.compile(elementwise()).map({"x": x, "y": at["y"]}, AXES)
    computed_there = dict(zip(lazy, client.gather(client.compute(list(lazy.values()))), strict=True))
    assert same(computed_there, tidu.evaluate(elementwise(), at, batch=AXES))


def test_results_are_inputs_of_others(da, runs):
    """A gradient of the values of another document, of which nothing is computed before."""
    at = values(12)
    first = tidu.compile(elementwise()).map({"x": da.from_array(at["x"], chunks=(5, 3)), "y": at["y"]}, AXES)
    norm = tidu.trace(lambda a: {"s": (a * a).sum()}, a="f64[3]")
    second = tidu.compile(tidu.grad(norm, "a")).map({"a": first["a"] * 2}, {"a": 0})
    assert not runs
    np.testing.assert_array_equal(computed(second)["a@-1"], 4 * tidu.evaluate(elementwise(), at, batch=AXES)["a"])


def test_one_block_makes_each_chunk_once(da, runs):
    """Several outputs are of one run."""
    at = values(12)
    computed(tidu.compile(elementwise()).map({"x": da.from_array(at["x"], chunks=(4, 3)), "y": at["y"]}, AXES))
    assert sorted(runs) == [(0, 4), (4, 8), (8, 12)]


def refusal(error, given, **how):
    with pytest.raises(error) as caught:
        tidu.compile(elementwise()).map(given, **{"batch": AXES, **how})
    return str(caught.value)


def test_refusals(da):
    y, x = np.zeros(6), da.zeros((6, 3), chunks=2)
    assert refusal(EvaluationError, {"x": x, "y": y[:5]}) == (
        "batches differ in size: y has 5, and others 6; give as many items of each"
    )
    assert refusal(EvaluationError, {"x": x, "y": y}, batch={"y": 0}) == (
        "input x is an array of Dask's without a batch; give batch={'x': 0}, or its compute()"
    )
    assert refusal(EvaluationError, {"x": da.zeros((6, 4)), "y": y}) == "input x: expected items of f64[3], got shape [4]"
    assert refusal(EvaluationError, {"x": x[:, 0], "y": y}).startswith("input x: expected a batch of f64[3] along axis 0, got an")
    assert "its blocks are of unknown sizes" in refusal(EvaluationError, {"x": x[x[:, 0] >= 0], "y": y})
    assert refusal(EvaluationError, {"x": x}).startswith("missing inputs: y")
    for how in ({"scheduler": "local"}, {"chunk": 2}, {"out": Path("y.npz")}):
        (name,) = how
        assert refusal(ArgumentError, {"x": x, "y": y}, **how).endswith(f"leave out '{name}'")
    segment = tidu.load(Path(__file__).parents[2] / "samples" / "segment.json")
    lazy = {"a": {"x": da.zeros(6), "y": y}, "b": {"x": y, "y": y}}
    with pytest.raises(EvaluationError, match="input s is of Segment, and arrays of Dask's hold no records; compute"):
        tidu.compile(segment).map({"s": lazy}, {"s": 0})


def test_records_among_the_outputs_are_refused(da, tmp_path):
    path = tmp_path / "f.json"
    made = {"op": "record", "attrs": {"type": "{r: f64[], s: f64[]}"}, "inputs": [0, 0]}
    path.write_bytes(document(graph(inputs=[("x", "f64[]")], outputs=[("p", 1)]) | {"nodes": [made]}))
    with pytest.raises(EvaluationError, match=r"an output is of .*, and arrays of Dask's hold no records; choose its fields"):
        tidu.compile(tidu.load(path)).map({"x": da.zeros(6)}, {"x": 0})


def test_a_wrong_dtype_is_refused_before_anything_is_computed(da, runs):
    x = da.zeros((6, 3), chunks=2, dtype="c16")
    assert refusal(EvaluationError, {"x": x, "y": np.zeros(6)}).startswith("input x: expected f64[3], got c128[3]")
    lazy = tidu.compile(elementwise()).map({"x": da.ones((6, 3), chunks=2, dtype="i4"), "y": np.zeros(6)}, AXES)
    assert computed(lazy)["b"].tolist() == [[1, 1, 1]] * 6


def test_a_chunk_that_fails_is_named(da):
    """An integer that f64 does not hold, of which only its block knows."""
    x = da.concatenate([da.ones(4, chunks=2, dtype="i8"), da.full(2, 2**53 + 1), da.ones(2, dtype="i8")])
    twice = tidu.trace(lambda x: {"y": x + x}, x="f64[]")
    with pytest.raises(EvaluationError, match=r"^chunk 2 \(items 4 to 5\): input x: expected f64\[2\], got i64\[2\], and 9"):
        computed(tidu.compile(twice).map({"x": x}, {"x": 0}))
