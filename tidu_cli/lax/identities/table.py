"""The table of identities, by the op of the node that they replace."""

from __future__ import annotations

from functools import cache

from tidu_cli.lax.identities import arithmetic, movement, selection
from tidu_cli.lax.identities.constants import may_fold
from tidu_cli.rules.identities import Identity

IDENTITIES: tuple[Identity, ...] = (*arithmetic.IDENTITIES, *movement.IDENTITIES, *selection.IDENTITIES)


@cache
def identities(assumptions: frozenset[str]) -> dict[str, tuple[Identity, ...]]:
    """Those that hold where this is assumed, by op, in the order of the table."""
    found: dict[str, tuple[Identity, ...]] = {}
    for identity in IDENTITIES:
        if identity.assumes <= assumptions:
            found[identity.op] = (*found.get(identity.op, ()), identity)
    return found


def may_change(op: str, assumptions: frozenset[str]) -> bool:
    """Whether there may be something that stands for nodes of an op."""
    return op in identities(assumptions) or may_fold(op)


LOOKED_AT = frozenset({
    "neg", "mul", "div", "sub", "abs", "not", "conj", "complex", "real", "imag", "convert_element_type", "reshape", "expand_dims",
    "squeeze", "broadcast_in_dim", "transpose", "rev", "slice", "split", "concatenate", "pad", "record",
})  # fmt: skip
"""The ops of makers of operands that identities ask for."""
