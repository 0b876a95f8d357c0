"""Identities of choices and of logic."""

from __future__ import annotations

from functools import partial

from tidu_cli.lax.identities.arithmetic import Of, only, same, whole_number
from tidu_cli.rules.terms import Identity, Operand, Site, Term, op

select_n = op("select_n")


def _equal_cases(site: Site) -> Term | None:
    """Of one case, or of equal ones."""
    _, first, *rest = site.operands
    return first.term if all(x.number == first.number for x in rest) else None


def _known_choice(site: Site) -> Term | None:
    which, *cases = site.operands
    number = whole_number(which)
    return None if number is None else cases[min(max(number, 0), len(cases) - 1)].term


def _swapped_choice(site: Site, which: Operand) -> Term | None:
    cases = [x.term for x in site.operands[1:]]
    return select_n(which.operands[0].term, *reversed(cases)) if which.dtype == "bool" and len(cases) == 2 else None


def _twice_not(site: Site, y: Operand) -> Term | None:
    return y.operands[0].term if y.dtype == "bool" else None


def _with_known(number: int, site: Site) -> Term | None:
    x, y = site.operands
    if x.dtype != "bool":
        return None
    return x.term if y.equals(number) else y.term if x.equals(number) else None


_BOOL = frozenset({"bool"})

IDENTITIES = (
    Identity("select_n", "of equal cases: one", _equal_cases),
    Identity("select_n", "by a constant: that case", _known_choice),
    Identity("select_n", "not p ? x : y = p ? y : x", Of(("not",), _swapped_choice)),
    Identity("not", "not not p = p", Of(("not",), _twice_not)),
    Identity("and", "p and p = p", partial(same, only, _BOOL)),
    Identity("or", "p or p = p", partial(same, only, _BOOL)),
    Identity("and", "p and true = p", partial(_with_known, 1)),
    Identity("or", "p or false = p", partial(_with_known, 0)),
)
