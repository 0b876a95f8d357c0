"""SciPy's functions record while something is traced, whichever name they go by, and are themselves again afterwards."""

from __future__ import annotations

import functools
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.special
import scipy.stats
from scipy.linalg import solve_triangular
from scipy.special import softmax

from tests.build.comparing import check
from tests.cli.running import ROOT
from tidu_cli.adapters.numpy.scipy.calling import scipy_traced
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.errors import TiduError

X = np.array([[2.0, 0.0], [0.5, 3.0]])
ROWS = functools.partial(softmax, axis=1)
NAMED = {"columns": lambda x: softmax(x, axis=0)}


def test_by_any_name() -> None:
    check(lambda x: scipy.special.softmax(x), X)
    check(softmax, X)
    check(ROWS, X)
    check(NAMED["columns"], X)
    check(lambda x: solve_triangular(x, np.ones(2), lower=True), X)  # a closure, in SciPy


def test_an_import_within_the_function() -> None:
    program = """
import sys
import numpy as np
import tidu_cli as tidu

def f(x):
    from scipy.special import log_softmax
    import scipy
    return log_softmax(x) + scipy.linalg.solve_triangular(np.eye(3), x)

assert not any(name.startswith("scipy") for name in sys.modules), "SciPy was imported before"
document = tidu.trace(f, "f64[3]")
assert "triangular_solve" in [case.op for case, _ in document.head.nodes()], "not recorded"
from scipy.special import log_softmax
assert log_softmax.__code__.co_filename.endswith("_logsumexp.py"), "not restored"
assert not any("tidu" in str(type(finder)) for finder in sys.meta_path)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT)
    assert not done.returncode, done.stderr


def test_scipy_is_imported_by_those_who_use_it() -> None:
    program = "import sys, tidu_cli; tidu_cli.trace(lambda x: x * x, 'f64[]'); sys.exit('scipy' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


def test_constants_are_computed_by_scipy() -> None:
    document = trace(lambda x: x + softmax(np.ones(2)), "f64[2]")
    assert [case.op for case, _ in document.head.nodes()] == ["constant", "broadcast_in_dim", "add"]


def test_scipy_is_as_it_was_afterwards() -> None:
    before = softmax.__code__, solve_triangular.__code__

    def fails(x):
        assert softmax.__code__ is not before[0]
        with scipy_traced():
            pass
        assert softmax.__code__ is not before[0]
        raise ValueError

    with pytest.raises(TiduError):
        trace(fails, "f64[2]")
    assert (softmax.__code__, solve_triangular.__code__) == before


def test_other_threads_see_no_difference() -> None:
    values = []

    def traced(x):
        thread = threading.Thread(target=lambda: values.append(softmax(np.array([0.0, 0.0]), axis=0)))
        thread.start()
        thread.join()
        return softmax(x)

    trace(traced, "f64[2]")
    assert values[0].tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: scipy.optimize.minimize(lambda p: (p - x[0]) ** 2, 0.0), "scipy.optimize.minimize cannot be traced.*Newton"),
        (lambda x: scipy.stats.gmean(x), "scipy.stats.gmean cannot be traced; write the formula"),
        (lambda x: scipy.linalg.companion(x), "scipy.linalg.companion cannot be traced"),
        (lambda x: softmax(x, axis=3), "test_calling.py:[0-9]+: ValueError: axis 3 is out of range"),
        (lambda x: softmax(x, axes=0), "test_calling.py:[0-9]+: TypeError: softmax.* unexpected keyword argument 'axes'"),
    ],
)
def test_what_cannot_be_traced_is_named(function, message: str) -> None:
    with pytest.raises(TiduError, match=message):
        trace(function, "f64[2]")
