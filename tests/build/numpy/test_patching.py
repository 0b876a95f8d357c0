"""What is NumPy's while a function is traced, and after: names, threads, packages, and arrays to all who ask."""

from __future__ import annotations

import math
import pickle
import sys
import threading
from typing import Any

import numpy as np
import pytest
from numpy import r_, zeros

import tidu_cli as tidu
from tidu_cli.adapters.numpy.buffers.buffer import Buffer
from tidu_cli.adapters.numpy.tracing import build_function, trace
from tidu_cli.errors import TiduError
from tidu_cli.graph.types import parse_type

X = np.array([1.25, 2.0, 3.5])
TABLE = np.arange(12.0).reshape(3, 4)


def makes_names():
    return np.zeros, zeros, math.sin, np.r_, r_, np.vectorize.__call__, np.linalg.inv, TABLE


def test_names_are_what_they_were_after_errors_and_traces_within_traces():
    before = makes_names()

    def function(x):
        assert zeros is np.zeros is not before[0]
        assert isinstance(TABLE, Buffer)
        trace(lambda y: y * 2, y="f64[]")
        assert zeros is np.zeros is not before[0]
        raise ValueError

    with pytest.raises(TiduError):
        trace(function, x="f64[3]")
    assert all(a is b for a, b in zip(makes_names(), before, strict=True))


def test_other_threads_have_numpys_own_arrays():
    types: list[type] = []

    def function(x):
        thread = threading.Thread(target=lambda: types.append(type(np.zeros(3))))
        thread.start()
        thread.join()
        return x

    trace(function, x="f64[3]")
    assert types == [np.ndarray]


def test_code_of_packages_has_numpys_own_arrays():
    import scipy.stats  # whose code makes arrays

    ranks: list[Any] = []

    def function(x):
        ranks.append(scipy.stats.rankdata([3.0, 1.0]))
        return x

    trace(function, x="f64[3]")
    assert type(ranks[0]) is np.ndarray


def test_functions_and_constants_of_files(tmp_path, monkeypatch):
    (tmp_path / "model.py").write_text(
        "import numpy as np\nimport of_model\n\nclass Model:\n    start = np.ones(3) * 2\n\n\n"
        "def f(x):\n    y = Model.start.copy()\n"
        "    y[0] = x[0]\n    return of_model.changed(y, x)\n"
    )
    (tmp_path / "of_model.py").write_text(
        "from numpy import zeros\n\n\ndef changed(y, x):\n    z = zeros(3)\n    z[1:] = x[1:]\n    y += z\n    return y\n"
    )
    monkeypatch.chdir(tmp_path)
    document = build_function("model.py:f", {"x": parse_type("f64[3]")})
    assert tidu.evaluate(document, x=X)["y"].tolist() == [1.25, 4.0, 5.5]
    assert sys.modules["of_model"].zeros is np.zeros
    del sys.modules["of_model"]


def test_arrays_stay_numpys_to_all_who_ask():
    def function(x):
        b = np.zeros((2, 3))
        assert isinstance(b, np.ndarray)
        assert b.base is None
        assert b.flags.owndata
        assert type(b[0, 0]) is np.float64
        assert type(b.sum()) is np.float64
        assert type(np.sum(b)) is np.float64
        assert hash(b[0, 0]) == 0
        assert np.asarray(b) is b
        assert repr(b) == "array([[0., 0., 0.],\n       [0., 0., 0.]])"
        assert f"{b[0]}" == "[0. 0. 0.]"
        assert not b.any()
        assert bool(b[0, 0]) is False
        assert list(range(5))[np.array(2)] == 2
        assert type(pickle.loads(pickle.dumps(b))) is np.ndarray
        assert b[0].base is b
        assert np.shares_memory(b.T, b)
        b[0, 0] = x[0]
        assert repr(b) == "<traced f64[2,3]>"
        assert repr(b[1]) == "array([0., 0., 0.])"
        assert (b.shape, b.ndim, b.size, b.dtype, len(b), b.strides) == ((2, 3), 2, 6, np.float64, 2, (24, 8))
        return b

    trace(function, x="f64[3]")
