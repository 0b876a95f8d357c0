"""The built-in set of primitives: JAX lax's vocabulary, StableHLO's semantics."""

from __future__ import annotations

from tidu_cli.primitives import arithmetic, comparison, complexes, contraction, elementary, reduction, structural
from tidu_cli.primitives.contract import PrimitiveSet

FAMILIES = (arithmetic, elementary, complexes, comparison, structural, reduction, contraction)
"""The modules that hold the primitives, in the order of the catalogue."""

BUILTIN = PrimitiveSet.of([primitive for family in FAMILIES for primitive in family.PRIMITIVES])
"""Every primitive that tidu comes with. Cotangents accumulate with `add`."""
