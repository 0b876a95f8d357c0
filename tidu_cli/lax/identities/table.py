"""The table of identities, by the op of the node that they replace."""

from __future__ import annotations

from functools import cache

from tidu_cli.lax.identities import arithmetic, conversion, joining, movement, selection
from tidu_cli.lax.identities.arithmetic import Of
from tidu_cli.lax.identities.constants import may_fold
from tidu_cli.rules.terms import Identity

IDENTITIES: tuple[Identity, ...] = (
    *arithmetic.IDENTITIES,
    *movement.IDENTITIES,
    *joining.IDENTITIES,
    *conversion.IDENTITIES,
    *selection.IDENTITIES,
)


@cache
def identities(assumptions: frozenset[str]) -> dict[str, tuple[Identity, ...]]:
    """Those that hold where this is assumed, by op, in the order of the table."""
    by_op: dict[str, tuple[Identity, ...]] = {}
    for identity in IDENTITIES:
        if identity.assumes <= assumptions:
            by_op[identity.op] = (*by_op.get(identity.op, ()), identity)
    return by_op


def may_change(op: str, assumptions: frozenset[str]) -> bool:
    """Whether there may be something that stands for nodes of an op."""
    return op in identities(assumptions) or may_fold(op)


_RESHAPED = frozenset({"reshape", "expand_dims", "squeeze"})
_ARITHMETIC = _RESHAPED | {"broadcast_in_dim", "neg"}
_ALSO: dict[str, frozenset[str]] = {
    **dict.fromkeys(("sub", "mul", "div"), _ARITHMETIC),
    "add": _ARITHMETIC | {"pad"},
    "neg": _RESHAPED,
    "complex": frozenset({"real", "imag"}),
    "concatenate": frozenset({"concatenate", "slice", "split"}),
}
"""What made operands, of importance to identities that are not `Of` it."""


@cache
def looked_at(op: str) -> frozenset[str]:
    """What may have made operands of an op, where that is of importance to an identity."""
    inner = (i.rewrite.inner for i in IDENTITIES if i.op == op and isinstance(i.rewrite, Of))
    return _ALSO.get(op, frozenset()).union(*inner)
