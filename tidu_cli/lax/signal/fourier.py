"""Fourier transforms: discrete ones, over the last axes (StableHLO's fft).

Adjoints are for ⟨a, b⟩ = Re(conj(a) b): that of the complex transform of n elements is n times the inverse one. What a real
transform keeps stands for what it leaves out, too, and counts twice: all entries of the last axis but the first, and for an even
length the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import log2, prod
from typing import Annotated, Any, Literal, cast

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.graph import Case
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import COMPLEXES, TensorType, complex_dtype, real_dtype
from tidu_cli.rules.attrs import sizes
from tidu_cli.rules.catalogue import Caption, listed
from tidu_cli.rules.contract import Attrs, Example, Kernel, Transposition, Types
from tidu_cli.rules.families import linear
from tidu_cli.rules.fields import Sized
from tidu_cli.rules.terms import Number, Term, op

broadcast_in_dim, convert, fft, pad = map(op, ("broadcast_in_dim", "convert_element_type", "fft", "pad"))

Length = Annotated[int, sizes(1, 2**62)]


class FftAttrs(Attrs):
    """`fft_type`: FFT; its inverse IFFT; RFFT of real numbers, which keeps n // 2 + 1 entries of the last axis; its inverse IRFFT.

    `fft_lengths`: the lengths n of the last axes, over which it goes; of IRFFT, those of the result.
    """

    fft_type: Literal["FFT", "IFFT", "RFFT", "IRFFT"]
    fft_lengths: Annotated[tuple[Length, ...], Sized(1)]


_FUNCTIONS = {"FFT": "fftn", "IFFT": "ifftn", "RFFT": "rfftn", "IRFFT": "irfftn"}
_REAL = frozenset({"f32", "f64"})


def _kept(lengths: Sequence[int]) -> tuple[int, ...]:
    """The sizes of the axes of a real transform's result."""
    return (*lengths[:-1], lengths[-1] // 2 + 1)


def _types(attrs: FftAttrs, operands: Types) -> Types:
    (operand,), kind, lengths = operands, attrs.fft_type, attrs.fft_lengths
    taken = _REAL if kind == "RFFT" else COMPLEXES
    if operand.dtype not in taken:
        of_real = "RFFT of real numbers, or " if kind == "FFT" and operand.dtype in _REAL else ""
        takes = " or ".join(sorted(taken, key=lambda dtype: int(dtype[1:])))
        raise TypeRuleError(f"{kind} takes {takes}, got {operand}; use {of_real}convert_element_type first")
    if len(lengths) > operand.rank:
        raise TypeRuleError(f"fft_lengths {list(lengths)} name {len(lengths)} last axes; the operand {operand} has {operand.rank}")
    batch, sizes = operand.shape[: -len(lengths)], operand.shape[-len(lengths) :]
    due = _kept(lengths) if kind == "IRFFT" else lengths
    if sizes != due:
        raise TypeRuleError(
            f"{kind} of lengths {list(lengths)} is over last axes of {list(due)}, the operand is {operand}; use pad or slice first"
        )
    if kind == "RFFT":
        return (TensorType(complex_dtype(operand.dtype), (*batch, *_kept(lengths))),)
    return (TensorType(real_dtype(operand.dtype), (*batch, *lengths)),) if kind == "IRFFT" else operands


def _kernel(np: Any, attrs: FftAttrs, operands: Types, results: Types) -> Kernel:
    axes = tuple(range(-len(attrs.fft_lengths), 0))
    return partial(getattr(np.fft, _FUNCTIONS[attrs.fft_type]), s=attrs.fft_lengths, axes=axes)


def _adjoint(node: Transposition, ct: Term, type_: TensorType) -> Term:
    kind, lengths = node.attrs.fft_type, node.attrs.fft_lengths
    n: int = prod(lengths)
    if kind == "FFT":
        return n * fft(ct, fft_type="IFFT", fft_lengths=lengths)
    if kind == "IFFT":
        return fft(ct, fft_type="FFT", fft_lengths=lengths) * _over(ct, 1, n)
    if kind == "RFFT":
        return fft(_of_last_axis(ct, lengths, n, _over(ct, n, 2)), fft_type="IRFFT", fft_lengths=lengths)
    return _of_last_axis(fft(ct, fft_type="RFFT", fft_lengths=lengths), lengths, _over(ct, 1, n), _over(ct, 2, n))


def _over(x: Term, a: int, b: int) -> Number | Term:
    """a / b, of open sizes a number of x's dtype."""
    if not isinstance(a, OpenSize) and not isinstance(b, OpenSize):
        return a / b
    number = TensorType(real_dtype(x.type.dtype))
    quotient = x.trace.full(a, number) / x.trace.full(b, number)
    return quotient if number.dtype == x.type.dtype else convert(quotient, new_dtype=x.type.dtype)


def _of_last_axis(x: Term, lengths: Sequence[int], whole: Number | Term, doubled: Number | Term) -> Term:
    """x, which a real transform gives or takes, times `doubled` where an entry stands for two, and `whole` where it does not."""
    twice, even = (lengths[-1] - 1) // 2, lengths[-1] // 2 - (lengths[-1] - 1) // 2
    inner, outer = (_repeated(x, v, (twice,) * one) for v, one in ((doubled, 1), (whole, 0)))
    weights = pad(inner, outer, padding_config=((1, even, 0),))
    return x * broadcast_in_dim(weights, shape=x.type.shape, broadcast_dimensions=(x.type.rank - 1,))


def _repeated(x: Term, value: Number | Term, shape: tuple[int, ...]) -> Term:
    if not isinstance(value, Term):
        return x.trace.full(value, x.type.with_shape(shape))
    return broadcast_in_dim(value, shape=shape, broadcast_dimensions=()) if shape else value


def _flops(attrs: FftAttrs, operands: Types, results: Types) -> int:
    """5 n log₂ n of complex numbers, the usual measure, and half of it of real ones."""
    n, batch = prod(attrs.fft_lengths), prod(operands[0].shape[: -len(attrs.fft_lengths)])
    whole = round(5 * n * log2(n)) * batch
    return whole // 2 if attrs.fft_type in ("RFFT", "IRFFT") else whole


def _caption(case: Case, operands: Sequence[str]) -> Caption:
    attrs = cast(FftAttrs, case.attrs)
    what = {"FFT": "", "IFFT": "inverse ", "RFFT": "real ", "IRFFT": "inverse real "}[attrs.fft_type]
    axes = "the last axis" if len(attrs.fft_lengths) == 1 else f"the last {len(attrs.fft_lengths)} axes"
    label = f"{attrs.fft_type} of {listed(attrs.fft_lengths)}"
    return Caption(f"{attrs.fft_type.lower()}({operands[0]})", f"the {what}Fourier transform over {axes}", label=label)


PRIMITIVES = (
    linear(
        "fft",
        _types,
        _kernel,
        _adjoint,
        attrs=FftAttrs,
        sparsity=lambda node: [(k, k, None) for k in range(node.operand.rank - len(node.attrs.fft_lengths))],
        dtypes=_REAL | COMPLEXES,
        examples=(
            Example(("c128[2,5]",), {"fft_type": "FFT", "fft_lengths": [5]}),
            Example(("c64[3,4]",), {"fft_type": "IFFT", "fft_lengths": [3, 4]}),
            Example(("f64[2,6]",), {"fft_type": "RFFT", "fft_lengths": [6]}),
            Example(("f64[2,3,5]",), {"fft_type": "RFFT", "fft_lengths": [3, 5]}),
            Example(("c128[2,4]",), {"fft_type": "IRFFT", "fft_lengths": [6]}),
            Example(("c128[3,3]",), {"fft_type": "IRFFT", "fft_lengths": [3, 5]}),
            Example(("f32[1]",), {"fft_type": "RFFT", "fft_lengths": [1]}),
        ),
        fresh=True,
        flops=_flops,
        formula="Σ x exp(-2πi j k / n) over the last axes",
        summary="discrete Fourier transform, its inverse, and those of real numbers",
        caption=_caption,
    ),
)
