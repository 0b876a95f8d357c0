"""Identities of choices and of logic."""

from __future__ import annotations

from functools import partial

from tidu_cli.rules.terms import Identity, Site, Term, op

select_n = op("select_n")


def _equal_cases(site: Site) -> Term | None:
    """Of one case, or of equal ones."""
    _, first, *rest = site.operands
    return first.term if all(x.number == first.number for x in rest) else None


def _known_choice(site: Site) -> Term | None:
    which, *cases = site.operands
    if which.known is None or which.known.kind != "uniform" or which.known.element is None:
        return None
    number = int.from_bytes(which.known.element.data, "little", signed=which.dtype != "bool")
    return cases[min(max(number, 0), len(cases) - 1)].term


def _swapped_choice(site: Site) -> Term | None:
    which, *cases = site.operands
    if which.op != "not" or which.dtype != "bool" or len(cases) != 2:
        return None
    return select_n(which.operands[0].term, cases[1].term, cases[0].term)


def _twice_not(site: Site) -> Term | None:
    (y,) = site.operands
    return y.operands[0].term if y.op == "not" and y.dtype == "bool" else None


def _same(site: Site) -> Term | None:
    x, y = site.operands
    return x.term if x.number == y.number and x.dtype == "bool" else None


def _with_known(number: int, site: Site) -> Term | None:
    x, y = site.operands
    if x.dtype != "bool":
        return None
    return x.term if y.equals(number) else y.term if x.equals(number) else None


IDENTITIES = (
    Identity("select_n", "of equal cases: one", _equal_cases),
    Identity("select_n", "by a constant: that case", _known_choice),
    Identity("select_n", "not p ? x : y = p ? y : x", _swapped_choice),
    Identity("not", "not not p = p", _twice_not),
    Identity("and", "p and p = p", _same),
    Identity("or", "p or p = p", _same),
    Identity("and", "p and true = p", partial(_with_known, 1)),
    Identity("or", "p or false = p", partial(_with_known, 0)),
)
