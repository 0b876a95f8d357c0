"""Finding inputs and outputs by key, and fresh names for graphs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import count

from tidu_cli.errors import Remedy, UnknownNameError, did_you_mean
from tidu_cli.graph.graph import Document, Input, Output, Place
from tidu_cli.graph.keys import Key, is_digest
from tidu_cli.graph.types import DATETIMES, Type, leaves


def select_outputs(document: Document, keys: Sequence[Key] | None) -> list[tuple[int, Output]]:
    """The outputs of these keys, each once, with the number of the graph that has them; by default all of the head's.

    A key is looked up in the head first, then in the latest graph that has it. One that no graph has may be the digest of a value,
    which is then an output of this key, or as in `covered` stand for several. Raises UnknownNameError.
    """
    last = len(document.graphs) - 1
    if not keys:
        return [(last, output) for output in document.head.outputs]
    outputs: dict[Key, tuple[int, Output]] = {}
    for g, graph in enumerate(document.graphs):
        outputs.update({output.key: (g, output) for output in graph.outputs})
    chosen: dict[Key, None] = {}
    known = {str(key): key for key in outputs}
    for key in keys:
        if key in outputs:
            chosen[key] = None
        elif is_digest(key):
            g, v = find_value([document], key)
            outputs[key], chosen[key] = (g, Output(key, v, document.graphs[g].type_of(v))), None
        elif several := covered(str(key), known):
            chosen.update((known[text], None) for text in several)
        else:
            what = f"no output matches '{key}'" if is_pattern(str(key)) else f"no graph has an output '{key}'"
            raise UnknownNameError(f"{what}{output_hint(key, list(known))} (outputs: {listed(list(known))})")
    return [outputs[key] for key in chosen]


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
    raise UnknownNameError(f"no {which} has a value {key}; {_LISTS} lists those of a document")


_LISTS = Remedy("digests", True, "info")
"""What lists digests."""


def output_hint(key: Key, known: list[str]) -> str:
    """What messages add of an output that is not there."""
    if str(key).startswith("sha256:"):
        return f"; a digest is sha256: and 64 digits of 0-9a-f, and {_LISTS} lists those of a document"
    return did_you_mean(str(key), known)


def require_inputs(document: Document, keys: Iterable[Key]) -> None:
    """Raises UnknownNameError, with a suggestion, if some key is no input of any graph."""
    for key in keys:
        if key not in document.inputs:
            known = list(map(str, document.inputs))
            told = listed(sorted(_labelled(i) for i in document.inputs.values()))
            raise UnknownNameError(f"no graph has an input '{key}'{did_you_mean(str(key), known)} (inputs: {told})")


def _labelled(declared: Input) -> str:
    """The key of an input, and what the program that it comes from calls it, as its reader wrote into meta."""
    parts = (part for part in (declared.meta or {}).values() if isinstance(part, dict))
    label = next((text for part in parts if isinstance(text := part.get("argument"), str)), "")
    return f"{declared.key} ({label})" if label else str(declared.key)


def matching_inputs(document: Document, keys: Iterable[Key]) -> list[Key]:
    """The inputs of these keys, of which one that no input has may stand for several, as in `covered`.

    These are the inputs of which a part is no integer, but for those that are bound or are there already. Other keys stay, also
    where there is no such input. Raises UnknownNameError for a pattern that matches none.
    """
    declared, matched = document.inputs, dict[Key, None]()
    for key in keys:
        several = [] if key in declared else covered_inputs(document, key)
        movable = [k for k in several if is_movable(declared[k].type)]
        if several and not movable:
            raise UnknownNameError(f"'{key}' stands for {listed(list(map(str, several)))}, which are integers")
        if not several and is_pattern(str(key)) and key not in declared:
            known = sorted(str(k) for k, i in declared.items() if k not in document.bound and is_movable(i.type))
            hint = did_you_mean(str(key), known)
            raise UnknownNameError(f"no input to differentiate by matches '{key}'{hint} (inputs: {listed(known)})")
        matched.update(dict.fromkeys(movable or [key]))
    return list(matched)


def movable_inputs(document: Document) -> list[Key]:
    """The inputs that are not bound, and of which a part is no integer. Raises UnknownNameError if there are none."""
    movable = [i.key for i in document.free_inputs if is_movable(i.type)]
    if not movable:
        raise UnknownNameError("there is no input to differentiate by: none is of floats, complex numbers or times")
    return movable


def covered_inputs(document: Document, key: Key) -> list[Key]:
    """The inputs that a key stands for and that are not bound, integers too."""
    free = {str(k): k for k in document.inputs if k not in document.bound}
    return [free[text] for text in covered(str(key), free)]


def covered(text: str, names: Collection[str]) -> list[str]:
    """The names that one stands for that is not among them: of a pattern of the shell's, conv1.* or layer[0-3].w, those that match.

    Of the first parts of dotted names, params, it is all that are below: params.w, params.layers.0.b.
    """
    if not is_pattern(text):
        return [name for name in names if name.startswith(f"{text}.")]
    from fnmatch import fnmatchcase

    return [name for name in names if fnmatchcase(name, text)]


def is_pattern(text: str) -> bool:
    """Whether a text has a mark of a pattern."""
    return any(mark in text for mark in "*?[")


def is_movable(type_: Type) -> bool:
    """Whether a part of it is no integer."""
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
