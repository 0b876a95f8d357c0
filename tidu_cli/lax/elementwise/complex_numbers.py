"""Complex numbers: parts, conjugate, and making them from parts.

The transposes are adjoints for <a, b> = Re(conj(a) b), under which conj, real and imag, linear over the reals only, have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidu_cli.graph.types import COMPLEXES, complex_dtype
from tidu_cli.rules.analysis import free
from tidu_cli.rules.contract import JVP, TOGETHER
from tidu_cli.rules.families import computed, elementwise, linear_transpose, real_of, unary
from tidu_cli.rules.terms import Term, op

_F32_F64 = frozenset({"f32", "f64"})

conj, convert, imag, make_complex, real = map(op, ("conj", "convert_element_type", "imag", "complex", "real"))


def _of_parts(np: Any, re: Any, im: Any) -> Any:
    # Filled part by part: re + 1j * im would turn an infinite im into a NaN re.
    z = np.empty(np.shape(re), f"c{2 * re.dtype.itemsize}")
    z.real, z.imag = re, im
    return z


def _complex_jvp(node: JVP) -> Sequence[Term | None]:
    re, im = node.tangents
    if im is None:
        return [convert(re, new_dtype=node.results[0].type.dtype)]
    return [make_complex(0 if re is None else re, im)]


PRIMITIVES = (
    unary(
        "conj",
        COMPLEXES,
        "conj z",
        "complex conjugate",
        adjoint=lambda node, ct, type_: conj(ct),
        kernel="conjugate",
        flops=lambda attrs, operands, results: results[0].size,
    ),
    unary(
        "real",
        COMPLEXES,
        "Re z",
        "real part",
        adjoint=lambda node, ct, type_: convert(ct, new_dtype=type_.dtype),
        result=real_of,
        flops=free,
    ),
    unary(
        "imag", COMPLEXES, "Im z", "imaginary part", adjoint=lambda node, ct, type_: make_complex(0, ct), result=real_of, flops=free
    ),
    elementwise(
        "complex",
        2,
        _F32_F64,
        _complex_jvp,
        transpose=linear_transpose(lambda node, ct, type_: real(ct), lambda node, ct, type_: imag(ct)),
        kernel=computed(_of_parts),
        result=lambda t: t.with_dtype(complex_dtype(t.dtype)),
        linear=TOGETHER,
        flops=free,
        formula="x + iy",
        summary="complex number from its parts",
    ),
)
