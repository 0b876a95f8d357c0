"""Terms that read elements of shared arrays: what moves elements is cut off, where that takes fewer directions."""

from __future__ import annotations

import runpy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidu_cli as td
from tests.graphs.strategies import seeds
from tests.samples.running import SAMPLES
from tests.sparse.test_derivatives import array, dense
from tests.tiers import examples
from tidu_cli.graph.keys import parse_key
from tidu_cli.notes import heard_by
from tidu_cli.sparse import derivatives
from tidu_cli.sparse.derivatives import without_moves
from tidu_cli.transforms.linearize import linearize

BA = runpy.run_path(str(SAMPLES / "adbench" / "ba.py"))


def entries(document: Any, **at: Any) -> np.ndarray[Any, Any]:
    return array(td.evaluate(td.jacobian(document, wrt=list(at), sparse=True), at)).toarray()


def directions(document: Any, wrt: list[str]) -> int:
    """How many the way has that `jacobian` takes."""
    return derivatives.way(linearize(document, [parse_key(key) for key in wrt]), None).coloring.n_directions


def observed(n: int, cameras: int, points: int) -> Any:
    rng = np.random.default_rng(3)
    cam_of, point_of, feature = rng.integers(0, cameras, n), rng.integers(0, points, n), rng.normal(size=(n, 2))
    return td.trace(
        lambda cams, points, weights: BA["residuals"](cams, points, weights, cam_of, point_of, feature),
        cams=f"f64[{cameras},11]",
        points=f"f64[{points},3]",
        weights=f"f64[{n}]",
    ), (cam_of, point_of, feature)


def test_bundle_adjustment_takes_two_directions_and_has_the_blocks_of_each_observation() -> None:
    n, rng = 60, np.random.default_rng(1)
    document, (cam_of, point_of, feature) = observed(n, 4, 13)
    at = {"cams": rng.normal(size=(4, 11)), "points": rng.normal(size=(13, 3)) + 5, "weights": rng.uniform(1, 2, n)}
    assert directions(document, list(at)) == 2
    one = td.trace(BA["reprojection_error"], cam="f64[11]", point="f64[3]", weight="f64[]", feature="f64[2]")
    block = td.compile(td.jacobian(one, wrt=["cam", "point", "weight"]))
    due = np.zeros((2 * n, 44 + 39 + n))
    for k in range(n):
        c, p, rows = cam_of[k], point_of[k], slice(2 * k, 2 * k + 2)
        of = block(cam=at["cams"][c], point=at["points"][p], weight=at["weights"][k], feature=feature[k])
        due[rows, 11 * c : 11 * c + 11] = of["y/cam"]
        due[rows, 44 + 3 * p : 47 + 3 * p] = of["y/point"]
        due[rows, 83 + k] = of["y/weight"]
    np.testing.assert_allclose(entries(document, **at), due, rtol=1e-9, atol=1e-9)
    assert td.sparsity(document, wrt=list(at)).n_entries == 28 * n


@given(st.integers(1, 7), st.integers(1, 9), st.integers(1, 4), seeds)
@settings(max_examples=examples(200, check=30))
def test_terms_of_elements_at_random_places(n: int, terms: int, reads: int, seed: int) -> None:
    """Some read one element several times, and their parts add up."""
    rng = np.random.default_rng(seed)
    places, scale = rng.integers(0, n, (reads, terms)), rng.normal(size=(reads, terms))

    def function(x: Any, y: Any) -> Any:
        taken = [np.concatenate([y, x])[::-1][p] * s for p, s in zip(places, scale, strict=True)]
        return np.stack([np.sin(sum(taken)) * y[0], np.prod(np.stack(taken), axis=0)], axis=1)

    at = {"x": rng.normal(size=n), "y": rng.normal(size=2)}
    document = td.trace(function, x=f"f64[{n}]", y="f64[2]")
    due = dense(document, ["x", "y"], at)
    np.testing.assert_allclose(entries(document, **at), due, rtol=1e-10, atol=1e-12)


FEWER = {
    "neighbours": (lambda x: x[2:] * x[1:-1] * x[:-2], 1),
    "an arrow": (lambda x: np.concatenate([np.sin(x[1:-1] + x[2:] * x[:-2]) + x[0], x[-1:]]), 1),
    "twice the same": (lambda x: x[np.arange(8) // 2] * x[np.arange(8) // 4], 1),
    "nothing but moves": (lambda x: x[::-1][:5], 1),
    "no moves": (lambda x: np.cumsum(x), 8),
    "what is repeated is summed": (lambda x: np.broadcast_to(x, (3, 8)).sum() * np.arange(4.0), 3),
}


@pytest.mark.every
@pytest.mark.parametrize("name", FEWER)
def test_how_many_directions(name: str) -> None:
    function, due = FEWER[name]
    document = td.trace(function, x="f64[8]")
    assert directions(document, ["x"]) == due
    x = np.linspace(0.4, 1.1, 8)
    np.testing.assert_allclose(entries(document, x=x), dense(document, ["x"], {"x": x}), rtol=1e-13, atol=1e-14)


def test_places_that_are_inputs_are_no_cut() -> None:
    document = td.trace(lambda x, i: np.sin(x[i]), x="f64[6]", i="i64[4]")
    assert without_moves(linearize(document, [parse_key("x")]), 24) is None
    found = array(td.evaluate(td.jacobian(document, wrt="x", sparse=True), {"x": np.arange(6.0), "i": np.array([4, 0, 0, 5])}))
    assert (found.toarray() != 0).sum() == 4


def test_a_cut_that_would_make_many_more_entries_is_none() -> None:
    document = td.trace(lambda x: np.sin(np.broadcast_to(x, (1000, 4)).sum() * np.arange(1.0, 1001)), x="f64[4]")
    assert without_moves(linearize(document, [parse_key("x")]), 4000) is None


def test_the_hessian_of_a_bundle_adjustment() -> None:
    """Cameras are coupled with points, and points with cameras: rows of cameras share directions, and rows of points."""
    n, rng = 60, np.random.default_rng(1)
    _, (cam_of, point_of, feature) = observed(n, 4, 13)
    document = td.trace(
        lambda cams, points: np.sum(BA["residuals"](cams, points, np.ones(n), cam_of, point_of, feature) ** 2) / 2,
        cams="f64[4,11]",
        points="f64[13,3]",
    )
    at = {"cams": rng.normal(size=(4, 11)), "points": rng.normal(size=(13, 3)) + 5}
    blocks = td.evaluate(td.hessian(document, wrt=["cams", "points"]), at)
    due = np.block([[blocks[f"y/{a}/{b}"].reshape(at[a].size, -1) for b in at] for a in at])
    said: list[str] = []
    with heard_by(str, said.append):
        sparse = td.hessian(document, wrt=["cams", "points"], sparse=True)
    assert [line for line in said if line.endswith("in 14 directions")]
    found = array(td.evaluate(sparse, at)).toarray()
    np.testing.assert_allclose(found, due, rtol=1e-9, atol=1e-9 * np.abs(due).max())
