"""Sorts by the keys that a comparator says, and the greatest elements."""

from __future__ import annotations

from collections.abc import Sequence

from tidu_cli.adapters.stablehlo.reading.comparators import sort_keys
from tidu_cli.adapters.stablehlo.reading.site import Reader, RefusedError, Site
from tidu_cli.rules.terms import Term


def _sort(site: Site, *operands: Term) -> Sequence[Term]:
    """Descending orders are ascending ones of arrays that are turned round before and after, so that equals keep their order."""
    keys = sort_keys(site.operation.regions[0], lambda value: site.known(site.values[value]))
    if keys is None:
        raise RefusedError("its comparator is not less or greater of some operands, one after the other")
    numbers = [key.operand for key in keys]
    if len({key.descending for key in keys}) > 1 or len(set(numbers)) < len(numbers):
        raise RefusedError("its comparator has some keys in ascending and some in descending order")
    axis = site.attribute("dimension", -1) % operands[0].type.rank
    order = [*numbers, *[k for k in range(len(operands)) if k not in numbers]]
    given = [operands[k] for k in order]
    if keys[0].descending:
        given = [site.emit("rev", x, dimensions=(axis,)) for x in given]
    found = site.emit_all("sort", *given, dimension=axis, is_stable=True, num_keys=len(keys))
    if keys[0].descending:
        found = tuple(site.emit("rev", x, dimensions=(axis,)) for x in found)
    back = dict(zip(order, found, strict=True))
    return [back[k] for k in range(len(operands))]


def _top_k(site: Site, x: Term) -> Sequence[Term]:
    values, places = site.emit_all("top_k", x, k=site.attribute("k"), axis=x.type.rank - 1)
    due = site.results[1].dtype
    return values, places if due == places.type.dtype else site.emit("convert_element_type", places, new_dtype=due)


OPERATIONS: dict[str, Reader] = {"stablehlo.sort": _sort, "chlo.top_k": _top_k}
