"""The built-in set of primitives: JAX lax's vocabulary, StableHLO's semantics."""

from __future__ import annotations

from tidu_cli.primitives import arithmetic, comparison, complexes, contraction, elementary, reduction, structural
from tidu_cli.primitives.contract import PrimitiveSet

BUILTIN = PrimitiveSet.of(
    [
        primitive
        for family in (arithmetic, elementary, complexes, comparison, structural, reduction, contraction)
        for primitive in family.PRIMITIVES
    ]
)
"""Every primitive that tidu comes with. Cotangents accumulate with `add`."""
