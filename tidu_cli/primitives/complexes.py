"""Complex numbers: parts, conjugate, and making them from parts.

The transposes are adjoints for <a, b> = Re(conj(a) b), under which conj, real and imag, linear over the reals only, have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidu_cli.graph.types import COMPLEXES, complex_dtype, real_dtype
from tidu_cli.primitives.contract import JVP, Kernel, Primitive, Transposition, Types
from tidu_cli.primitives.families import alike, linear_jvp, linear_transpose, numpy_function
from tidu_cli.primitives.trace import Term, op

_F32_F64 = frozenset({"f32", "f64"})

conj, convert, imag, make_complex, real = map(op, ("conj", "convert_element_type", "imag", "complex", "real"))


def _complex_kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
    dtype = {"c64": np.complex64, "c128": np.complex128}[results[0].dtype]

    def make(re: Any, im: Any) -> Any:
        # Filled part by part: re + 1j * im would turn an infinite im into a NaN re.
        z = np.empty(np.shape(re), dtype)
        z.real, z.imag = re, im
        return z

    return make


def _complex_jvp(node: JVP) -> Sequence[Term | None]:
    re, im = node.tangents
    if im is None:
        return [convert(re, new_dtype=node.results[0].type.dtype)]
    return [make_complex(0 if re is None else re, im)]


def _complex_transpose(node: Transposition) -> Sequence[Term | None]:
    (ct,), (re, im) = node.cotangents, node.active
    return [real(ct) if re else None, imag(ct) if im else None]


PRIMITIVES = (
    Primitive(
        "conj",
        1,
        alike(COMPLEXES),
        numpy_function("conjugate"),
        linear_jvp("conj"),
        linear_transpose(lambda attrs, ct, type_: conj(ct)),
        alike=True,
        formula="conj z",
        summary="complex conjugate",
    ),
    Primitive(
        "real",
        1,
        alike(COMPLEXES, lambda t: t.with_dtype(real_dtype(t.dtype))),
        numpy_function("real"),
        linear_jvp("real"),
        linear_transpose(lambda attrs, ct, type_: convert(ct, new_dtype=type_.dtype)),
        alike=True,
        formula="Re z",
        summary="real part",
    ),
    Primitive(
        "imag",
        1,
        alike(COMPLEXES, lambda t: t.with_dtype(real_dtype(t.dtype))),
        numpy_function("imag"),
        linear_jvp("imag"),
        linear_transpose(lambda attrs, ct, type_: make_complex(0, ct)),
        alike=True,
        formula="Im z",
        summary="imaginary part",
    ),
    Primitive(
        "complex",
        2,
        alike(_F32_F64, lambda t: t.with_dtype(complex_dtype(t.dtype))),
        _complex_kernel,
        _complex_jvp,
        _complex_transpose,
        alike=True,
        formula="x + iy",
        summary="complex number from its parts",
    ),
)
