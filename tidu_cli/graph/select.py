"""Finding inputs and outputs by key, and fresh names for graphs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import count

from tidu_cli.errors import UnknownNameError, did_you_mean, worded
from tidu_cli.graph.graph import Document, Output, Place
from tidu_cli.graph.keys import Key, is_digest
from tidu_cli.graph.types import DATETIMES, Type, leaves


def select_outputs(document: Document, keys: Sequence[Key] | None) -> list[tuple[int, Output]]:
    """The outputs of these keys, each once, with the number of the graph that has them; by default all of the head's.

    A key is looked up in the head first, then in the latest graph that has it. One that no graph has may be the digest of a value,
    which is then an output of this key. Raises UnknownNameError.
    """
    last = len(document.graphs) - 1
    if not keys:
        return [(last, output) for output in document.head.outputs]
    found: dict[Key, tuple[int, Output]] = {}
    for g, graph in enumerate(document.graphs):
        found.update({output.key: (g, output) for output in graph.outputs})
    for key in keys:
        if key not in found:
            if not is_digest(key):
                known = list(map(str, found))
                raise UnknownNameError(f"no graph has an output '{key}'{output_hint(key, known)} (outputs: {listed(known)})")
            g, v = find_value([document], key)
            found[key] = g, Output(key, v, document.graphs[g].type_of(v))
    return [found[key] for key in dict.fromkeys(keys)]


def find_value(documents: Sequence[Document], key: Key, apart_from: Key | None = None) -> Place:
    """The value of this digest: the number of the first graph that has it, counted through all documents, and its local id.

    Graphs that declare the input `apart_from` do not count. Raises UnknownNameError.
    """
    from tidu_cli.graph.identity import PREFIX, digests

    digest = bytes.fromhex(key.name.removeprefix(PREFIX))
    n_before = 0
    for document in documents:
        for g, values in enumerate(digests(document)):
            if digest in values and all(i.key != apart_from for i in document.graphs[g].inputs):
                return n_before + g, values.index(digest)
        n_before += len(document.graphs)
    if any(entry.digest == key.name for document in documents for entry in document.detached):
        raise UnknownNameError(f"the value {key} is detached: nothing here defines it; resolve it with the document that does")
    which = f"graph without an input '{apart_from}'" if apart_from else "graph"
    raise UnknownNameError(f"no {which} has a value {key}; {worded(*_LISTS)} lists those of a document")


_LISTS = ("tidu info --digests", "info(document, digests=True)")
"""What lists digests, of commands and of Python."""


def output_hint(key: Key, known: list[str]) -> str:
    """What messages add of an output that is not there."""
    if str(key).startswith("sha256:"):
        return f"; a digest is sha256: and 64 digits of 0-9a-f, and {worded(*_LISTS)} lists those of a document"
    return did_you_mean(str(key), known)


def require_inputs(document: Document, keys: Iterable[Key]) -> None:
    """Raises UnknownNameError, with a suggestion, if some key is no input of any graph."""
    for key in keys:
        if key not in document.inputs:
            known = list(map(str, document.inputs))
            raise UnknownNameError(
                f"no graph has an input '{key}'{did_you_mean(str(key), known)} (inputs: {listed(sorted(known))})"
            )


def matching_inputs(document: Document, keys: Iterable[Key]) -> list[Key]:
    """The inputs of these keys, of which one that no input has may be a pattern, as shells have them: conv1.* or layer[0-3].weight.

    A pattern stands for the inputs whose keys match it and of which a part is no integer, but for those that are bound or are
    there already. Other keys stay, also where there is no such input. Raises UnknownNameError for a pattern that matches none.
    """
    declared, found = document.inputs, dict[Key, None]()
    for key in keys:
        if key in declared or not _MARKS & set(str(key)):
            found[key] = None
            continue
        from fnmatch import fnmatchcase

        movable = {str(k): k for k, i in declared.items() if k not in document.bound and _is_movable(i.type)}
        matching = [k for text, k in movable.items() if fnmatchcase(text, str(key))]
        if not matching:
            raise UnknownNameError(f"no input to differentiate by matches '{key}' (inputs: {listed(sorted(movable))})")
        found.update(dict.fromkeys(matching))
    return list(found)


_MARKS = frozenset("*?[")
"""What a pattern has one of."""


def _is_movable(type_: Type) -> bool:
    return any(leaf.inexact or leaf.dtype in DATETIMES for _, leaf in leaves(type_))


def fresh_name(document: Document, name: str) -> str:
    """`name`, or `name.2`, `name.3`, ... if graphs of the document have those names already."""
    taken = {graph.name for graph in document.graphs}
    return another_name(name, taken) if name in taken else name


def another_name(name: str, taken: Collection[str]) -> str:
    """`name.2`, or the next of `name.3`, `name.4`, ... that is not taken."""
    return next(candidate for n in count(2) if (candidate := f"{name}.{n}") not in taken)


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names as messages tell them: the first few, and how many there are."""
    shown = ", ".join(names[:most])
    return f"{shown}, ... {len(names)} in all" if len(names) > most else shown or "none"
