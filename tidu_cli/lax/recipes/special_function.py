"""How special functions are defined: SciPy's in double precision, by their derivatives, and by recipes.

A recipe is what a function is in terms of elementary ones, for backends that have none of their own. Most functions are of one
number, with fixed parameters, which are attrs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from tidu_cli.errors import MissingRuleError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.types import FLOATS
from tidu_cli.lax.arrays.dtypes import numpy_dtype
from tidu_cli.rules.contract import JVP, Attrs, Example, JVPRule, Kernel, KernelRule, Primitive, Types
from tidu_cli.rules.families import Intervals, elementwise
from tidu_cli.rules.terms import Term

_LARGEST = {"hyp1f1": 16, "hyp2f1": 8, "expn": 2**31}
"""Orders and other parameters up to which recipes keep 11 digits, by op: sums of terms of larger ones cancel."""

_LARGEST_ORDER = 128
"""Those of other ops: powers of larger ones leave the range of f64."""


class Recipe(Frozen):
    """The definition of an op by its recipe: hundreds of operations, which are recorded when a backend needs them."""

    op: str

    def refusal(self, attrs: Attrs) -> str:
        """Why there is no recipe for these attrs; empty if there is one."""
        most = _LARGEST.get(self.op, _LARGEST_ORDER)
        large = [f"{name} {value:g}" for name, value in dict(attrs).items() if abs(value) > most]
        return f"its recipe is for parameters up to {most}, not {large[0]}" if large else ""

    def __call__(self, attrs: Any, operands: Sequence[Term]) -> Sequence[Term]:
        """The result, computed in f64 and rounded to the operands' dtype.

        Raises MissingRuleError where the recipe is not for these attrs.
        """
        import numpy as np

        from tidu_cli.lax.recipes.arrays import Array

        if reason := self.refusal(attrs):
            raise MissingRuleError(reason)
        type_ = operands[0].type
        arrays = [Array(x).reshape((type_.size,)).astype("f64") for x in operands]
        try:
            with np.errstate(all="ignore"):
                result = recipes()[self.op](attrs, *arrays)
        except (OverflowError, ZeroDivisionError):  # of gamma functions of the parameters
            raise MissingRuleError("its recipe is not for these parameters, whose gamma functions are not finite") from None
        return [result.astype(type_.dtype).reshape(type_.shape).term]


@cache
def recipes() -> dict[str, Callable[..., Any]]:
    """By op: from attrs and operands, arrays of f64 along one axis, to the result."""
    from tidu_cli.lax.recipes import error_functions, gamma, hypergeometric, incomplete, integrals

    families = (error_functions, gamma, hypergeometric, incomplete, integrals)
    return {op: recipe for family in families for op, recipe in family.RECIPES.items()}


def in_double(compute: Callable[..., Any]) -> KernelRule:
    """The kernel of a function of (numpy, scipy.special, attrs, operands in f64), whose result is rounded to the dtype."""

    def kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
        from scipy import special  # type: ignore[import-untyped]  # slow to import

        dtype = numpy_dtype(np, operands[0].dtype)

        def computed(*operands: Any) -> Any:
            # Along one axis, as some of SciPy's functions take fewer axes than NumPy.
            values = compute(np, special, attrs, *[np.asarray(x, np.float64).reshape(-1) for x in operands])
            return np.asarray(values).astype(dtype).reshape(np.shape(operands[0]))

        return computed

    return kernel


def of_floats(name: str, n: int, jvp: JVPRule, compute: Callable[..., Any], **more: Any) -> Primitive:
    """A function of n floats, with the kernel `in_double` of `compute` and the recipe of its name."""
    return elementwise(name, n, FLOATS, jvp, kernel=in_double(compute), definition=Recipe(name), **more)


def special_function(
    name: str,
    formula: str,
    summary: str,
    compute: Callable[..., Any],
    slope: Callable[[Any, Term, Term], Term],
    *,
    attrs: type[Attrs] = Attrs,
    tried: tuple[Mapping[str, Any], ...] = ({},),
    within: Intervals,
) -> Primitive:
    """A function, by its values, `compute(numpy, scipy.special, attrs, x)`, and its derivative, `slope(attrs, x, result)`.

    It is tried with attrs of which the first are those that the class has by default, if it has any.
    """

    def jvp(node: JVP) -> list[Term | None]:
        return [slope(node.attrs, *node.operands, *node.results) * node.tangent]

    return of_floats(
        name,
        1,
        jvp,
        compute,
        attrs=attrs,
        within=within,
        more=tuple(Example(("T[3]",), dict(a), within=within) for a in tried if a),
        formula=formula,
        summary=summary,
    )
