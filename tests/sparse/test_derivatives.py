"""Sparse derivatives have the numbers of the dense ones, whichever the directions."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import tidu_cli as td
from tests.cli.running import invoke, succeed
from tests.graphs.interpret import random_inputs
from tests.graphs.strategies import documents, seeds
from tests.programs import needs
from tests.sparse.test_patterns import is_real
from tests.tiers import examples
from tidu_cli.graph.graph import Document
from tidu_cli.sparse import coloring


def array(values: Any) -> Any:
    v = {str(key): value for key, value in values.items()}
    return scipy.sparse.coo_array((v["data"], (v["row"], v["col"])), shape=tuple(v["shape"]))


def dense(document: Document, wrt: list[str], at: Any) -> Any:
    blocks = {str(k): np.asarray(v) for k, v in td.evaluate(td.jacobian(document, wrt=wrt), at).items()}
    size = {str(i.key): i.type.size for i in document.inputs.values()}
    outputs = [(str(o.key), o.type.size) for o in document.head.outputs]
    zero = [[np.zeros((n, size[x])) for x in wrt] for _, n in outputs]
    return np.block([
        [blocks[f"{y}/{x}"].reshape(n, -1) if f"{y}/{x}" in blocks else zero[i][j] for j, x in enumerate(wrt)]
        for i, (y, n) in enumerate(outputs)
    ])  # fmt: skip


@given(documents(), seeds)
@settings(max_examples=examples(500, check=40))
def test_random_documents(document: Document, seed: int) -> None:
    document = td.materialize(document)
    wrt = [str(key) for key, i in document.inputs.items() if is_real(i.type)]
    if not wrt or not all(is_real(o.type) for o in document.head.outputs):
        return
    at = random_inputs(document, seed)
    due = dense(document, wrt, at)
    for mode in ({}, {"forward": True}, {"reverse": True}):
        found = array(td.evaluate(td.jacobian(document, wrt=wrt, sparse=True, **mode), at)).toarray()
        np.testing.assert_allclose(found, due, rtol=1e-10, atol=1e-10 * (1 + np.abs(due).max(initial=0)))


FUNCTIONS = {
    "neighbours": lambda x: x[2:] * x[:-2] - np.sin(x[1:-1]) * 2,
    "a dense row": lambda x: np.concatenate([(x**2).sum()[None], x[1:] * x[0]]),
    "all": lambda x: np.cumsum(x) * np.sin(x).sum(),
}


@pytest.mark.every
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_numbers_of_the_dense_jacobian_to_the_last_bit(name: str) -> None:
    document, x = td.trace(FUNCTIONS[name], x="f64[9]"), np.linspace(0.3, 2, 9)
    due = dense(document, ["x"], {"x": x})
    for mode in ({}, {"forward": True}):
        assert (array(td.evaluate(td.jacobian(document, wrt="x", sparse=True, **mode), {"x": x})).toarray() == due).all()


def test_a_dense_row_goes_by_rows_and_the_rest_by_columns() -> None:
    matrix = td.sparsity(td.trace(FUNCTIONS["a dense row"], x="f64[50]"), wrt="x").matrix
    counts = {mode: coloring.of_jacobian(matrix, mode).n_directions for mode in ("forward", "reverse", "both", None)}
    assert counts == {"forward": 50, "reverse": 50, "both": 3, None: 3}


@given(st.integers(1, 12), st.integers(1, 12), st.floats(0, 1), seeds)
@settings(max_examples=examples(300))
def test_columns_of_one_colour_share_no_row(m: int, n: int, share: float, seed: int) -> None:
    pattern = np.random.default_rng(seed).uniform(size=(m, n)) < share
    fewest = n
    for order in (*get_args(coloring.Order), None):
        colors = coloring.columns(scipy.sparse.csr_array(pattern), order)
        assert ((colors < 0) == ~pattern.any(axis=0)).all()
        fewest = min(fewest, colors.max(initial=-1))
        for color in range(colors.max(initial=-1) + 1):
            assert (pattern[:, colors == color].sum(axis=1) <= 1).all() and (colors == color).any()
    assert colors.max(initial=-1) == fewest


@given(st.integers(1, 12), st.floats(0, 1), seeds)
@settings(max_examples=examples(300))
def test_a_star_colouring_reads_each_entry_alone(n: int, share: float, seed: int) -> None:
    upper = np.triu(np.random.default_rng(seed).uniform(size=(n, n)) < share)
    pattern = upper | upper.T
    for order in (*get_args(coloring.Order), None):
        colors = coloring.star(scipy.sparse.csr_array(pattern), order)
        assert ((colors < 0) == ~pattern.any(axis=0)).all()
        for i, j in np.argwhere(pattern):
            assert any(pattern[r, colors == colors[c]].sum() == 1 for r, c in ((i, j), (j, i)))


def test_orders_that_follow_neighbours_find_a_grid_whose_points_are_shuffled() -> None:
    n = 30
    line = scipy.sparse.diags_array([np.ones(n - 1)] * 2 + [np.ones(n)], offsets=[-1, 1, 0])
    beside = scipy.sparse.diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1])
    grid = (scipy.sparse.kron(scipy.sparse.eye_array(n), line) + scipy.sparse.kron(beside, scipy.sparse.eye_array(n))).tocsr()
    places = np.random.default_rng(0).permutation(n * n)
    shuffled = grid[places][:, places].tocsr().astype(bool)
    counts = [coloring.columns(shuffled, order).max() + 1 for order in ("natural", "largest_first", None)]
    assert counts[2] <= 7 < min(counts[:2])


def test_an_arrow_takes_two_directions_whichever_way_it_points() -> None:
    arrow = np.eye(40, dtype=bool)
    arrow[-1] = arrow[:, -1] = True
    assert [coloring.star(scipy.sparse.csr_array(a)).max() for a in (arrow, arrow[::-1, ::-1])] == [1, 1]


HESSIANS = {
    "rosenbrock": lambda x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2),
    "an arrow": lambda x: np.sum(np.sin(x[1:]) * x[0] ** 2),
    "all": lambda x: np.sum(x) ** 3,
    "none": lambda x: np.sum(x) + 0 * x[0] ** 2,
}


@pytest.mark.every
@pytest.mark.parametrize("name", HESSIANS)
def test_hessians(name: str) -> None:
    document, x = td.trace(HESSIANS[name], x="f64[7]"), np.linspace(0.3, 2, 7)
    due = np.asarray(*td.evaluate(td.hessian(document, wrt="x"), {"x": x}).values())
    found = array(td.evaluate(td.hessian(document, wrt="x", sparse=True), {"x": x})).toarray()
    np.testing.assert_allclose(found, due, rtol=1e-14, atol=1e-13)


def test_a_million_rows() -> None:
    """In columns: neither a walk over elements nor a dense array anywhere."""
    n = 1_000_000
    document = td.trace(lambda x: x[2:] * x[:-2] - np.sin(x[1:-1]), x=f"f64[{n}]")
    x = np.linspace(0, 1, n)
    found = array(td.evaluate(td.jacobian(document, wrt="x", sparse=True), {"x": x})).tocsr()
    assert found.nnz == 3 * (n - 2)
    assert (found[[0, n - 3]].data == [x[2], -np.cos(x[1]), x[0], x[-1], -np.cos(x[-2]), x[-3]]).all()


def test_several_inputs_and_outputs_of_different_dtypes() -> None:
    document = td.trace(lambda x, y: (x * y[0], y.astype("f4") ** 2), x="f64[2]", y="f64[3]")
    at = {"x": np.array([1.0, 2.0]), "y": np.array([3.0, 4.0, 5.0])}
    found = array(td.evaluate(td.jacobian(document, wrt=["x", "y"], sparse=True), at)).toarray()
    assert found.tolist() == [[3, 0, 1, 0, 0], [0, 3, 2, 0, 0], [0, 0, 6, 0, 0], [0, 0, 0, 8, 0], [0, 0, 0, 0, 10]]


def test_the_derivative_of_entries(tmp_path: Any) -> None:
    """It is an ordinary document: it is differentiated again, and written as others are."""
    document = td.trace(lambda x: x**3, x="f64[4]")
    entries = td.jacobian(document, wrt="x", sparse=True)
    second = td.jacobian(entries, wrt="x", output="data")
    assert np.allclose(*td.evaluate(second, {"x": np.arange(4.0)}).values(), np.diag(6 * np.arange(4.0)))
    td.save(entries, tmp_path / "j.msgpack")
    assert td.diff(td.load(tmp_path / "j.msgpack"), entries)["same"]


F = ("x[1:] * x[:-1]", "-i", "x:f64[3]")


def test_files_that_others_read(tmp_path: Any) -> None:
    at = ("--wrt", "x", "--sparse", "--set", "x=2,3,5")
    for name in ("j.npz", "j.mtx"):
        succeed("jacobian", *F, *at, "-o", str(tmp_path / name))
    due = [[3, 2, 0], [0, 5, 3]]
    assert scipy.sparse.load_npz(tmp_path / "j.npz").toarray().tolist() == due
    assert scipy.io.mmread(tmp_path / "j.mtx").toarray().tolist() == due
    assert array({k: np.array(v) for k, v in json.loads(succeed("jacobian", *F, *at)).items()}).toarray().tolist() == due


def test_the_pattern_as_files(tmp_path: Any) -> None:
    for name in ("p.npz", "p.mtx", "p.svg", "p.png"):
        succeed("sparsity", *F, "--wrt", "x", "-o", str(tmp_path / name))
    due = [[1, 1, 0], [0, 1, 1]]
    assert scipy.sparse.load_npz(tmp_path / "p.npz").toarray().astype(int).tolist() == due
    assert scipy.io.mmread(tmp_path / "p.mtx").toarray().astype(int).tolist() == due
    assert json.loads(succeed("sparsity", *F, "--wrt", "x", "--format", "json")) == {
        "shape": [2, 3], "entries": 4, "dense": [], "row": [0, 0, 1, 1], "col": [0, 1, 1, 2]
    }  # fmt: skip
    assert succeed("sparsity", *F) == b"2 x 3, 4 entries (66.67%), at most 2 a row\n**.\n.**\n"  # by all inputs
    assert (tmp_path / "p.svg").read_text().count("h1v1h-1z") == 4
    picture = pytest.importorskip("PIL.Image", reason="pip install pillow").open(io.BytesIO((tmp_path / "p.png").read_bytes()))
    assert np.asarray(picture).astype(int)[::4, ::4].tolist() == [[0, 0, 1], [1, 0, 0]]


@pytest.mark.every
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("jacobian", "x * 1j", "-i", "x:c128[2]", "--wrt", "x", "--sparse"), "a sparse matrix is of real numbers"),
        (("jacobian", *F, "--wrt", "x", "--sparse", "--holomorphic"), "leave out --holomorphic"),
        (("hessian", *F, "--wrt", "x", "--sparse"), "a Hessian is of one real number"),
        (("sparsity", *F, "--wrt", "z"), "no graph has an input 'z'"),
    ],
)
def test_what_is_refused(args: Any, message: str) -> None:
    result = invoke(*args)
    assert result.exit_code != 0 and message in result.stderr and not result.stdout_bytes


@needs("dot")
def test_the_page_shows_the_pattern_beside_the_graph() -> None:
    document = td.trace(lambda x: x[1:] * x[:-1], x="f64[3]")
    page = td.view(td.jacobian(document, wrt="x", sparse=True))
    assert page.count("h1v1h-1z") == 4 and "<figcaption>2 x 3, 4 entries" in page
    assert '<figure class="beside">' not in td.view(document)
    named = td.trace(lambda x: {"data": x, "row": x, "col": x, "shape": x}, x="f64[2]")
    assert '<figure class="beside">' not in td.view(named)


SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.json"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_samples(path: Path) -> None:
    """The last digits may differ: sums of a product with several directions are rounded elsewhere."""
    document = td.materialize(td.load(path))
    wrt = [str(key) for key, i in document.inputs.items() if is_real(i.type)]
    if not wrt or not all(is_real(o.type) for o in document.head.outputs):
        return
    at = random_inputs(document, 3)
    due = dense(document, wrt, at)
    for mode in ({}, {"forward": True}, {"reverse": True}, {"both": True}):
        found = array(td.evaluate(td.jacobian(document, wrt=wrt, sparse=True, **mode), at)).toarray()
        np.testing.assert_allclose(found, due, rtol=1e-13, atol=1e-13 * np.abs(due).max(initial=0))
    if len(document.head.outputs) == 1 and document.head.outputs[0].type.size == 1:
        blocks = td.evaluate(td.hessian(document, wrt=wrt), at)
        y = document.head.outputs[0].key
        size = {str(i.key): i.type.size for i in document.inputs.values()}
        whole = np.block([[np.reshape(blocks[f"{y}/{a}/{b}"], (size[a], size[b])) for b in wrt] for a in wrt])
        found = array(td.evaluate(td.hessian(document, wrt=wrt, sparse=True), at)).toarray()
        np.testing.assert_allclose(found, whole, rtol=1e-13, atol=1e-13 * np.abs(whole).max(initial=0))
