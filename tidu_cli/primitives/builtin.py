"""The built-in set of primitives: JAX lax's vocabulary, StableHLO's semantics.

A document uses few families, and so a command imports few: which family has an op is written down here, and a test holds it to what
the families say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType

from tidu_cli.primitives.contract import Primitive, PrimitiveSet

FAMILIES: Mapping[str, str] = {
    "arithmetic": "add sub mul div neg integer_pow pow max min abs sign",
    "elementary": "exp exp2 expm1 log log1p logistic sqrt rsqrt cbrt square",
    "trigonometric": "sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh",
    "special": "erf erfc erf_inv lgamma digamma polygamma zeta igamma igammac regularized_incomplete_beta bessel_i0e bessel_i1e",
    "rounding": "floor ceil round rem is_finite nextafter",
    "complexes": "conj real imag complex",
    "comparison": "eq ne lt le gt ge select_n clamp",
    "bitwise": "not and or xor shift_left shift_right_logical shift_right_arithmetic population_count clz",
    "structural": "constant convert_element_type broadcast_in_dim reshape transpose stop_gradient optimization_barrier",
    "slicing": "slice dynamic_slice dynamic_update_slice split",
    "joining": "pad concatenate squeeze expand_dims rev iota copy",
    "gather": "gather",
    "scatter": "scatter scatter-add scatter-sub scatter-mul scatter-max scatter-min",
    "reduction": "reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or reduce_xor argmax argmin",
    "cumulative": "cumsum cumprod cummax cummin cumlogsumexp",
    "sorting": "sort top_k",
    "precision": "reduce_precision",
    "contraction": "dot_general",
    "linear_algebra": "cholesky triangular_solve lu",
    "records": "record field",
    "times": "difference retract",
}
"""The ops of each family, which is a module of this package, in the order of the catalogue."""


class _OnDemand(Mapping[str, Primitive]):
    """Primitives by name; a family is imported when one of its ops is asked for."""

    def __init__(self) -> None:
        self._family = {op: family for family, ops in FAMILIES.items() for op in ops.split()}
        self._found: dict[str, Primitive] = {}

    def __getitem__(self, op: str) -> Primitive:
        found = self._found.get(op)
        if found is None:
            self._found |= {p.name: p for p in family(self._family[op]).PRIMITIVES}
            found = self._found[op]
        return found

    def __contains__(self, op: object) -> bool:
        return op in self._family

    def __iter__(self) -> Iterator[str]:
        return iter(self._family)

    def __len__(self) -> int:
        return len(self._family)


def family(name: str) -> ModuleType:
    """The module of a family."""
    return import_module(f"tidu_cli.primitives.{name}")


BUILTIN = PrimitiveSet(_OnDemand())
"""Every primitive that tidu comes with. Cotangents accumulate with `add`."""
