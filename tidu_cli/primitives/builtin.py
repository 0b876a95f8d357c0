"""The built-in set of primitives: JAX lax's vocabulary, StableHLO's semantics."""

from __future__ import annotations

from tidu_cli.primitives import (
    arithmetic,
    bitwise,
    comparison,
    complexes,
    contraction,
    cumulative,
    elementary,
    gather,
    joining,
    linear_algebra,
    precision,
    reduction,
    rounding,
    scatter,
    slicing,
    sorting,
    special,
    structural,
    trigonometric,
)
from tidu_cli.primitives.contract import PrimitiveSet

FAMILIES = (
    arithmetic,
    elementary,
    trigonometric,
    special,
    rounding,
    complexes,
    comparison,
    bitwise,
    structural,
    slicing,
    joining,
    gather,
    scatter,
    reduction,
    cumulative,
    sorting,
    precision,
    contraction,
    linear_algebra,
)
"""The modules that hold the primitives, in the order of the catalogue."""

BUILTIN = PrimitiveSet.of([primitive for family in FAMILIES for primitive in family.PRIMITIVES])
"""Every primitive that tidu comes with. Cotangents accumulate with `add`."""
