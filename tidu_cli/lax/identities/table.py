"""The table of identities, by the op of the node that they replace."""

from __future__ import annotations

from functools import cache

from tidu_cli.lax.identities import arithmetic, conversion, joining, movement, selection
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
_MOVED = _RESHAPED | {"broadcast_in_dim"}
_LOOKED_AT: dict[str, frozenset[str]] = {
    **dict.fromkeys(("add", "sub", "mul", "div"), _MOVED | {"neg"}),
    "neg": _RESHAPED | {"neg", "mul", "div", "sub"},
    "abs": frozenset({"neg", "abs"}),
    "conj": frozenset({"conj"}),
    "real": frozenset({"complex", "conj", "convert_element_type"}),
    "imag": frozenset({"complex", "conj"}),
    "complex": frozenset({"real", "imag"}),
    "reduce_sum": frozenset({"neg"}),
    **dict.fromkeys(_MOVED, _MOVED),
    "transpose": frozenset({"broadcast_in_dim", "transpose"}),
    "rev": frozenset({"broadcast_in_dim", "rev"}),
    "concatenate": frozenset({"concatenate", "slice", "split"}),
    "slice": frozenset({"concatenate", "pad", "slice"}),
    "split": frozenset({"concatenate"}),
    "convert_element_type": frozenset({"convert_element_type"}),
    "field": frozenset({"record"}),
    "select_n": frozenset({"not"}),
    "not": frozenset({"not"}),
}
_LOOKED_AT["add"] |= {"pad"}


def looked_at(op: str) -> frozenset[str]:
    """What may have made operands of an op, where that is of importance to an identity."""
    return _LOOKED_AT.get(op, frozenset())
