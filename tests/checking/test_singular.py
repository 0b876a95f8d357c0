"""Where there is no derivative, nodes say why: eigenvalues or singular values that repeat, columns that depend on one another."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.checking.report import check_document
from tidu_cli.graph.keys import Key
from tidu_cli.lax.vocabulary import BUILTIN

ONE, ONES = 2 * np.eye(2), np.ones((2, 2))
SKEW = np.array([[1.0, 3.0], [0.0, 1.0]])  # has one eigenvector
BATCH = np.stack([[[2.0, 1.0], [1.0, 0.5]], ONE])

CASES = {
    "eigenvectors": (lambda x: np.linalg.eigh(x)[1], ONE, "node 0 (eigh): eigenvalues 0 and 1 are equal, 2: eigenvectors have no"),
    "eigenvectors of a batch": (lambda x: np.linalg.eigh(x)[1], BATCH, "eigenvalues 0 and 1 of matrix [1] are equal, 2"),
    "general eigenvectors": (lambda x: np.linalg.eig(x)[1], ONE, "node 0 (eig): eigenvalues 0 and 1 are equal, 2+0j: neither"),
    "a defective matrix": (np.linalg.eigvals, SKEW, "eigenvalues 0 and 1 are equal, 1+0j: neither they nor their vectors"),
    "singular vectors": (
        lambda x: np.linalg.svd(x)[0],
        ONE,
        "node 0 (svd): singular values 0 and 1 are equal, 2: singular",
    ),
    "second derivatives of a norm": (lambda x: np.linalg.norm(x, "nuc"), ONE, "nor have singular values a second one"),
    "a singular value of 0": (lambda x: np.linalg.norm(x, "nuc"), ONES, "node 0 (svd): singular value 1 is 0: it has a kink"),
    "dependent columns": (lambda x: np.linalg.qr(x)[0], ONES, "element of R's diagonal 1 is 0: columns are linearly dependent"),
    "a triangle": (lambda x: np.linalg.qr(x)[0], SKEW, "column 0 is 0 below the diagonal: there LAPACK leaves its sign"),
    "a rank that changes": (np.linalg.pinv, ONES, "node 0 (pinv): singular value 1 is 0: where the rank changes the pseudoinverse"),
    "a root of a singular matrix": (scipy.linalg.sqrtm, np.diag([0.0, 1.0]), "the root of a singular matrix has no derivative"),
    "polar factors": (lambda x: scipy.linalg.polar(x)[0], ONES, "node 0 (polar): singular value 1 is 0: the polar factors have no"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_reason_is_told(name: str) -> None:
    function, x, reason = CASES[name]
    report = check_document(trace(lambda x: function(x), x), BUILTIN, ["numeric"], given={Key("x"): x})
    (note,) = [line for line in report.lines() if "note" in line]
    assert note.startswith("numeric: note: graph '"), note
    assert reason in note, note
    told = [v["why"] for v in report.to_data()["numeric"].values() if "why" in v]
    assert told and all(reason in why[0] for why in told)


@pytest.mark.parametrize("name", CASES)
def test_elsewhere_there_is_nothing_to_tell(name: str) -> None:
    function, like, _ = CASES[name]
    x = np.broadcast_to([[3.0, 1.5], [0.5, 1.0]], like.shape).copy()
    report = check_document(trace(lambda x: function(x), x), BUILTIN, ["numeric"], given={Key("x"): x})
    assert not report.failures
    assert not [line for line in report.lines() if "note" in line]


def test_a_law_that_fails_is_told_with_the_reason() -> None:
    report = check_document(trace(lambda x: np.linalg.qr(x)[0], SKEW), BUILTIN, ["numeric"], given={Key("x"): SKEW})
    assert "above 1e-08; graph 'f', node 0 (qr): column 0 is 0 below the diagonal" in report.failures[0]
