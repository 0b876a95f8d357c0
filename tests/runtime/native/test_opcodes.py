"""Every opcode against the kernel of NumPy that it stands for, on edge values and on any others."""

from __future__ import annotations

import numpy as np
import pytest

from tests.runtime.graphs import Sketch
from tests.runtime.native.agreement import assert_agrees, native
from tidu_cli.adapters.native import compiling, integers
from tidu_cli.adapters.native.machine import SPECIAL, TABLE
from tidu_cli.adapters.native.opcodes import FLOATS, INTEGERS
from tidu_cli.graph.keys import Key

FLOAT_EDGES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    -1.5,
    2.5,
    0.49999999999999994,
    2.0,
    3.0,
    -3.0,
    np.inf,
    -np.inf,
    np.nan,
    1e-3,
    1e3,
]
N_RANDOM = 400


def edges(dtype):
    if dtype in FLOATS:
        info = np.finfo(dtype.replace("f", "float"))
        extremes = [info.max, info.min, info.tiny, -info.tiny, info.smallest_subnormal, -info.smallest_subnormal, info.eps]
        whole = [2.0**31, -(2.0**31), 2.0**63, 2.0**64, 255.0, 256.0, -128.7, 127.9]
        return np.array([*FLOAT_EDGES, *extremes, *whole], info.dtype)
    if dtype in INTEGERS:
        info = np.iinfo(dtype.replace("i", "int").replace("u", "uint"))
        values = {info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, -1, -2, -8}
        return np.array(sorted(v for v in values if info.min <= v <= info.max), info.dtype)
    if dtype == "bool":
        return np.array([False, True])
    part = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan, 1e-3], "f4" if dtype == "c64" else "f8")
    grid = np.empty((len(part), len(part)), "c8" if dtype == "c64" else "c16")
    grid.real, grid.imag = part[:, None], part[None, :]
    return grid.ravel()


def some(dtype, rng):
    if dtype in FLOATS:
        return (rng.choice([1e-5, 1.0, 30.0], N_RANDOM) * rng.normal(size=N_RANDOM)).astype(dtype.replace("f", "float"))
    if dtype in INTEGERS:
        info = np.iinfo(dtype.replace("i", "int").replace("u", "uint"))
        return rng.integers(info.min, info.max, N_RANDOM, info.dtype, endpoint=True)
    if dtype == "bool":
        return rng.integers(0, 2, N_RANDOM) > 0
    return (rng.normal(size=N_RANDOM) + 1j * rng.normal(size=N_RANDOM)).astype("c8" if dtype == "c64" else "c16")


def operands(dtypes, rng):
    """Edge values of each dtype with all those of the others, then any values."""
    choices = [edges(t) for t in dtypes]
    if len(choices) > 2:
        choices = [c if len(c) <= 20 else np.append(c[:6], c[13:22]) for c in choices]
    grid = [x.ravel() for x in np.meshgrid(*choices, indexing="ij")]
    return [np.concatenate([g, some(t, rng)]) for g, t in zip(grid, dtypes, strict=True)]


def cases(signature):
    """The operation, its attrs, and how many operands are its own."""
    op, *variant = signature.op.split()
    n = len(signature.operands)
    if op == "integer_pow":
        return [(op, {"y": int(variant[0])}, n)] if variant else [(op, {"y": y}, 1) for y in (0, 5, 7, -2, -3, 2**31 - 1)]
    if op == "round":
        return [(op, {"rounding_method": variant[0]}, n)]
    return [(op, {"new_dtype": signature.result} if op == "convert_element_type" else {}, n)]


@pytest.mark.every  # each opcode is a line of its own, and takes 3 ms
@pytest.mark.parametrize("signature", TABLE, ids=lambda s: f"{s.op}-{'-'.join(s.operands)}-{s.result}".replace(" ", "-"))
def test_an_opcode_gives_what_numpy_gives(signature):
    rng = np.random.default_rng(3)
    for op, attrs, n in cases(signature):
        values = operands(signature.operands[:n], rng)
        for begin in range(0, len(values[0]), 1024):
            part = [np.ascontiguousarray(v[begin : begin + 1024]) for v in values]
            s = Sketch(**{f"x{k}": f"{t}[{len(part[0])}]" for k, t in enumerate(signature.operands[:n])})
            graph = s.graph(y=s.apply(op, *range(n), **attrs))
            program = native(graph)
            assert not program.layout.escapes
            assert_agrees(graph, {Key(f"x{k}"): v for k, v in enumerate(part)}, made=program)


def test_functions_that_scipy_does_not_export_are_called_through_python(monkeypatch):
    from scipy.special import cython_special

    table = [signature for signature in integers.TABLE if signature.result == "f64"]
    other = {"gammainc": cython_special.__pyx_capi__["gammaln"]}  # which has another signature
    monkeypatch.setattr(cython_special, "__pyx_capi__", other)
    try:
        compiling._give_special_functions.__wrapped__("run")
        assert set(compiling._CALLBACKS) == set(integers.FUNCTIONS)
        for signature in table:
            test_an_opcode_gives_what_numpy_gives(signature)
    finally:
        monkeypatch.undo()
        compiling._give_special_functions.__wrapped__("run")


def test_only_what_calls_functions_of_scipy_has_it_imported():
    assert {signature.op for signature in list(TABLE)[SPECIAL.start : SPECIAL.stop]} == integers.OPERATIONS
    assert integers.OPERATIONS.isdisjoint(signature.op for signature in list(TABLE)[: SPECIAL.start])
