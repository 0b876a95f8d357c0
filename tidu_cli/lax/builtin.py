"""The built-in set of primitives: JAX lax's vocabulary, StableHLO's semantics.

A document uses few families, and so a command imports few: which family has an op is written down here, and a test holds it to what
the families say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from types import ModuleType

from tidu_cli.graph.graph import CaseTable
from tidu_cli.rules.contract import Definition, Primitive, PrimitiveSet

FAMILIES: Mapping[str, str] = {
    "elementwise.arithmetic": "add sub mul div neg integer_pow pow max min abs sign",
    "elementwise.elementary": "exp exp2 expm1 log log1p logistic sqrt rsqrt cbrt square",
    "elementwise.trigonometric": "sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh",
    "elementwise.special": "erf erfc erf_inv lgamma digamma polygamma zeta igamma igammac regularized_incomplete_beta "
    "bessel_i0e bessel_i1e",
    "elementwise.rounding": "floor ceil round rem is_finite nextafter",
    "elementwise.complex_numbers": "conj real imag complex",
    "elementwise.comparison": "eq ne lt le gt ge select_n clamp",
    "elementwise.bitwise": "not and or xor shift_left shift_right_logical shift_right_arithmetic population_count clz",
    "arrays.structural": "constant convert_element_type broadcast_in_dim reshape transpose stop_gradient optimization_barrier",
    "arrays.slicing": "slice dynamic_slice dynamic_update_slice split",
    "arrays.joining": "pad concatenate squeeze expand_dims rev iota copy",
    "arrays.gather": "gather",
    "arrays.scatter": "scatter scatter-add scatter-sub scatter-mul scatter-max scatter-min",
    "reductions.reduction": "reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or reduce_xor argmax argmin",
    "reductions.cumulative": "cumsum cumprod cummax cummin cumlogsumexp",
    "reductions.sorting": "sort top_k",
    "elementwise.precision": "reduce_precision",
    "linear_algebra.contraction": "dot_general",
    "linear_algebra.factorizations": "cholesky triangular_solve lu",
    "records.records": "record field",
    "records.motion": "difference retract",
}
"""The ops of each family, a module of this package by its path, in the order of the catalogue."""


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
    return import_module(f"tidu_cli.lax.{name}")


BUILTIN = PrimitiveSet(_OnDemand())
"""Every primitive that tidu comes with. Cotangents accumulate with `add`."""


def vocabulary(cases: CaseTable) -> PrimitiveSet:
    """The set of primitives that a table's cases are of."""
    return cases.vocabulary if isinstance(cases.vocabulary, PrimitiveSet) else BUILTIN


def used_definitions(cases: CaseTable, codes: Iterable[int]) -> list[Definition]:
    """The definitions of custom operations in these cases, and in the graphs of those; and all that are the document's own."""
    primitives = vocabulary(cases)
    return primitives.reached_from([cases[code].op for code in codes] + [d.name for d in primitives.definitions if not d.origin])
