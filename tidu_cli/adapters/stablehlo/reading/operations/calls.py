"""Calls of functions of the module, and composites, which stand for one."""

from __future__ import annotations

from collections.abc import Sequence

from tidu_cli.adapters.stablehlo.reading.site import Reader, Site
from tidu_cli.rules.terms import Term


def _call(site: Site, *operands: Term) -> Sequence[Term]:
    return site.called(site.attribute("callee"), operands)


def _composite(site: Site, *operands: Term) -> Sequence[Term]:
    return site.called(site.attribute("decomposition"), operands)


OPERATIONS: dict[str, Reader] = {"func.call": _call, "stablehlo.composite": _composite}
