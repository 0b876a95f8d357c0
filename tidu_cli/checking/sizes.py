"""Documents with open sizes at some numbers, at which laws are tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.open_sizes import open_names

if TYPE_CHECKING:
    from tidu_cli.graph.sizes.algebra import Name


def at_sizes(document: Document, given: Mapping[Key, Any]) -> Iterator[tuple[str, Document]]:
    """A document of the sizes that some inputs have, and of others twice: the least that each may be, and then different ones.

    With each comes how reports name it: " at N=3, T=4", or nothing where no size is open. Raises TransformError, EvaluationError.
    """
    names = open_names(document)
    if not names:
        yield "", document
        return
    from tidu_cli.lax.vocabulary import vocabulary
    from tidu_cli.rules.specializing import specialized
    from tidu_cli.runtime.sizing import sizes_given

    known = sizes_given(list(document.inputs.values()), given)
    free = sorted(set(names) - set(known))
    for trial in (0, 1) if free else (0,):
        sizes = {**known, **{name: _number(names[name], trial * (k + 2)) for k, name in enumerate(free)}}
        told = ", ".join(f"{name}={sizes[name]}" for name in sorted(sizes))
        yield f" at {told}", specialized(document, sizes, vocabulary(document.cases))


def _number(name: Name, after: int) -> int:
    """A number that a name may stand for: the one that comes this far after the least, or the greatest."""
    low, high = name.bounds
    return int(min(max(low, 1) + after if high >= 1 else low, high)) * name.multiple
