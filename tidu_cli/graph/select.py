"""Finding inputs and outputs by key, and fresh names for graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidu_cli.errors import UnknownNameError, did_you_mean
from tidu_cli.graph.graph import Document, Output
from tidu_cli.graph.keys import Key


def select_outputs(document: Document, keys: Sequence[Key] | None) -> list[tuple[int, Output]]:
    """The outputs of these keys, each once, with the number of the graph that has them; by default all of the head's.

    A key is looked up in the head first, then in the latest graph that has it. Raises UnknownNameError.
    """
    last = len(document.graphs) - 1
    if not keys:
        return [(last, output) for output in document.head.outputs]
    found: dict[Key, tuple[int, Output]] = {}
    for g, graph in enumerate(document.graphs):
        found.update({output.key: (g, output) for output in graph.outputs})
    for key in keys:
        if key not in found:
            known = list(map(str, found))
            raise UnknownNameError(f"no graph has an output '{key}'{did_you_mean(str(key), known)} (outputs: {listed(known)})")
    return [found[key] for key in dict.fromkeys(keys)]


def require_inputs(document: Document, keys: Iterable[Key]) -> None:
    """Raises UnknownNameError, with a suggestion, if some key is no input of any graph."""
    declared = {i.key for graph in document.graphs for i in graph.inputs}
    for key in keys:
        if key not in declared:
            known = list(map(str, declared))
            raise UnknownNameError(
                f"no graph has an input '{key}'{did_you_mean(str(key), known)} (inputs: {listed(sorted(known))})"
            )


def fresh_name(document: Document, name: str) -> str:
    """`name`, or `name.2`, `name.3`, ... if graphs of the document have those names already."""
    taken = {graph.name for graph in document.graphs}
    candidate, n = name, 2
    while candidate in taken:
        candidate, n = f"{name}.{n}", n + 1
    return candidate


def listed(names: Sequence[str]) -> str:
    """Names as messages tell them: the first few, and how many there are."""
    shown = ", ".join(names[:8])
    return f"{shown}, ... {len(names)} in all" if len(names) > 8 else shown or "none"
