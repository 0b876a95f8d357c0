"""Identities of conversions: a dtype that has all values of another loses none."""

from __future__ import annotations

from tidu_cli.graph.types import COMPLEXES, FLOATS, INTEGERS
from tidu_cli.lax.identities.arithmetic import Of, unchanged
from tidu_cli.rules.terms import Identity, Operand, Site, Term, op

convert = op("convert_element_type")


_DIGITS = {"f16": (11, 5), "bf16": (8, 8), "f32": (24, 8), "f64": (53, 11)}
"""The digits and the bits of the exponent of floats."""


def _holds(wide: str, narrow: str) -> bool:
    """Whether a dtype has all values of another, so that a conversion there and back changes none."""
    if narrow in FLOATS and wide in FLOATS:
        return all(a >= b for a, b in zip(_DIGITS[wide], _DIGITS[narrow], strict=True))
    if narrow in INTEGERS and wide in INTEGERS:
        more = int(wide[1:]) - int(narrow[1:])
        return more > 0 if (wide[0], narrow[0]) == ("i", "u") else more >= 0 and wide[0] == narrow[0]
    if wide in COMPLEXES:
        part = {"c64": "f32", "c128": "f64"}
        return _holds(part[wide], part.get(narrow, narrow)) if narrow in FLOATS | COMPLEXES else False
    return narrow == "bool" and (wide in INTEGERS or wide in FLOATS)


def _there_and_back(site: Site, y: Operand) -> Term | None:
    return y.operands[0].term if y.operands[0].type == site.type and _holds(y.dtype, site.type.dtype) else None


def _by_way_of_wider(site: Site, y: Operand) -> Term | None:
    if not {y.operands[0].dtype, y.dtype, site.type.dtype} <= FLOATS:
        return None
    x = y.operands[0]
    return convert(x.term, new_dtype=site.type.dtype) if _holds(y.dtype, x.dtype) and x.type != site.type else None


IDENTITIES = (
    Identity("convert_element_type", "to the same dtype: x", unchanged),
    Identity("convert_element_type", "to a wider dtype and back: x", Of(("convert_element_type",), _there_and_back)),
    Identity("convert_element_type", "by way of a wider float: at once", Of(("convert_element_type",), _by_way_of_wider)),
)
