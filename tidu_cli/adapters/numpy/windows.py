"""What networks need and NumPy has not got: convolutions with features, and reductions of windows, by lax's names.

Arguments are those of `jax.lax`'s functions. Of traced arrays it is recorded what is computed, and of NumPy's it is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import name_of
from tidu_cli.adapters.numpy.arrays.operands import Operand, array_dtype, arrays_in, lift
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.signal.convolution import ConvDimensionNumbers
from tidu_cli.lax.signal.sliding import spread
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.contract import Types

Pads = str | Sequence[tuple[int, int]]
"""`VALID`, `SAME`, or [low, high] for each axis."""


def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Pads,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: tuple[str, str, str] | ConvDimensionNumbers | None = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
) -> Any:
    """The convolution of lhs by rhs, which is not reversed. Raises TypeRuleError for shapes that do not fit.

    `dimension_numbers` are texts such as ("NHWC", "HWIO", "NHWC"): N for the batch, C for features, and for rhs O and I; by default
    ("NCHW", "OIHW", "NCHW"), with as many axes after the first two.
    """
    rank = np.ndim(rhs)
    numbers = _numbers(dimension_numbers, rank)
    ones = (1,) * (rank - 2)
    lhs_dilation, rhs_dilation = tuple(lhs_dilation or ones), tuple(rhs_dilation or ones)
    places = _spread([np.shape(lhs)[axis] for axis in numbers.lhs_spec[2:]], lhs_dilation)
    window = _spread([np.shape(rhs)[axis] for axis in numbers.rhs_spec[2:]], rhs_dilation)
    return _applied(
        "conv_general_dilated",
        (lhs, rhs),
        window_strides=tuple(window_strides),
        padding=_padding(padding, places, window, window_strides),
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=numbers,
        feature_group_count=feature_group_count,
        batch_group_count=batch_group_count,
    )


def _numbers(given: Any, rank: int) -> ConvDimensionNumbers:
    if isinstance(given, ConvDimensionNumbers):
        return given
    if given is None:
        axes = tuple(range(rank))
        return ConvDimensionNumbers(lhs_spec=axes, rhs_spec=axes, out_spec=axes)
    lhs, rhs, out = given
    if not set(lhs) == set(out) == {"N", "C"} | (set(rhs) - {"O", "I"}) or not len(lhs) == len(rhs) == len(out) == rank:
        raise BuildError(f"dimension_numbers {given} of arrays of {rank} axes; write such as ('NHWC', 'HWIO', 'NHWC')")
    rest = [letter for letter in rhs if letter not in "OI"]
    specs = (tuple(map(text.index, [*first, *rest])) for text, first in ((lhs, "NC"), (rhs, "OI"), (out, "NC")))
    return ConvDimensionNumbers(**dict(zip(("lhs_spec", "rhs_spec", "out_spec"), specs, strict=True)))


def _padding(padding: Pads, places: Sequence[int], window: Sequence[int], strides: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Padding in numbers; `SAME` gives as many windows as there are strides in an axis, the odd place being after it."""
    if not isinstance(padding, str):
        return tuple((low, high) for low, high in padding)
    if padding == "VALID":
        return ((0, 0),) * len(places)
    if padding != "SAME":
        raise BuildError(f"padding is 'SAME', 'VALID' or [low, high] for each axis, not {padding!r}")
    missing = [max(((n + s - 1) // s - 1) * s + w - n, 0) for n, w, s in zip(places, window, strides, strict=True)]
    return tuple((total // 2, total - total // 2) for total in missing)


def _reduction(kind: str, what: str) -> Callable[..., Any]:
    def reduce_window(
        operand: Any,
        window_dimensions: Sequence[int],
        window_strides: Sequence[int] | None = None,
        padding: Pads = "VALID",
        base_dilation: Sequence[int] | None = None,
        window_dilation: Sequence[int] | None = None,
    ) -> Any:
        ones = (1,) * len(window_dimensions)
        strides, base, dilation = (tuple(given or ones) for given in (window_strides, base_dilation, window_dilation))
        places, window = _spread(np.shape(operand), base), _spread(window_dimensions, dilation)
        return _applied(
            f"reduce_window_{kind}",
            (operand,),
            window_dimensions=tuple(window_dimensions),
            window_strides=strides,
            padding=_padding(padding, places, window, strides),
            base_dilation=base,
            window_dilation=dilation,
        )

    reduce_window.__name__ = reduce_window.__qualname__ = f"reduce_window_{kind}"
    reduce_window.__doc__ = f"The {what} of each window. Raises TypeRuleError for windows that do not fit."
    return reduce_window


reduce_window_sum = _reduction("sum", "sum")
reduce_window_max = _reduction("max", "maximum")
reduce_window_min = _reduction("min", "minimum")


def _spread(sizes: Sequence[int], dilation: Sequence[int]) -> list[int]:
    return [spread(n, d) for n, d in zip(sizes, dilation, strict=False)]  # what does not fit is told of by the type rule


def _applied(op: str, operands: Sequence[Operand], **attrs: object) -> Any:
    """A primitive of operands, made of one dtype: recorded where one of them is traced, else computed."""
    held, dtype = arrays_in(operands), array_dtype(*operands)
    if held:
        first, *rest = (lift(x, held[0], dtype) for x in operands)
        return first.emit(op, *rest, **attrs)
    arrays = [np.asarray(x, dtype) for x in operands]
    types = [TensorType(name_of(x.dtype), x.shape) for x in arrays]
    case = BUILTIN.case(op, BUILTIN.parse_attrs(op, attrs), None, types)
    return BUILTIN[op].evaluation.kernel(np, case.attrs, tuple(types), cast(Types, case.results))(*arrays)
