"""Special functions of one number with fixed parameters, which are attrs: SciPy's in double precision, by their derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tidu_cli.graph.types import FLOATS
from tidu_cli.lax.arrays.dtypes import numpy_dtype
from tidu_cli.lax.recipes.index import Recipe
from tidu_cli.rules.contract import JVP, Attrs, Example, JVPRule, Kernel, KernelRule, Primitive, Types
from tidu_cli.rules.families import Intervals, elementwise
from tidu_cli.rules.terms import Term


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
