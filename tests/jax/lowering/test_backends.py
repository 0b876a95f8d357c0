"""`tidu ops --backends`: by what engines and formats compute a primitive, as they do when they run it or are written."""

from __future__ import annotations

import pytest

import tidu
from tidu_cli.api.checks import taken_by
from tidu_cli.lax.vocabulary import BUILTIN

pytestmark = pytest.mark.jax

REFUSED = "bitcast_convert_type complex eig eigh expm expm_frechet fft field imag logm logm_frechet nextafter pinv polar real record schur solve_sylvester sqrtm svd"  # noqa: E501


def test_what_no_backend_takes_is_refused_with_the_reason_of_the_primitive() -> None:
    ways = {p.name: taken_by(p, BUILTIN) for p in BUILTIN}
    refusing = ("ONNX", "C", "Python")
    assert {e: way for way in ways.values() for e, way in way.items() if e not in refusing and "has no" in way} == {}
    for name in REFUSED.split():
        assert "write it with format=" in ways[name]["ONNX"], name
    for name in ("cofactors", "eigh", "svd"):
        assert f"C has no {name}" in ways[name]["C"]
    for name in ("nextafter", "sqrtm", "svd"):
        assert BUILTIN[name].evaluation.opaque in ways[name]["ONNX"]


@pytest.mark.parametrize(
    ("op", "due"),
    [
        ("sin", ["machine code", "functions of JAX", "Sin", "functions of JAX", "an expression", "NumPy"]),
        ("bessel_j", ["NumPy's kernel", "its definition", "its definition, ", "its definition", "its definition", "NumPy"]),
        ("reduce_sum", ["machine code", "functions of JAX", "ReduceSum", "functions of JAX", "loops", "NumPy"]),
    ],
)
def test_kernels_and_definitions(op: str, due: list[str]) -> None:
    (known,) = tidu.ops(op, backends=True)
    assert list(known["backends"]) == ["native", "xla", "ONNX", "StableHLO", "C", "Python"]
    for text, way in zip(due, known["backends"].values(), strict=True):
        assert way.startswith(text)
