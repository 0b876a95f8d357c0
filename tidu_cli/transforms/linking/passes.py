"""The passes of documents that are linked, and other numbers for those of one document.

A pass number is one call of linearize in each document. Where documents mean two calls by it, the tangents of both would have the
same keys, and become the same inputs: a derivative that is linear in neither.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from itertools import count

import msgpack

from tidu_cli.errors import Remedy, TransformError, UnknownNameError
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import not_linear, own_tangent_read
from tidu_cli.graph.graph import Document, Graph
from tidu_cli.graph.identity import digest_text
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import link
from tidu_cli.graph.select import listed
from tidu_cli.transforms.linking.rename import with_other_keys

_STEP = re.compile(r"@(-?)([1-9][0-9]*)(?![^@.])")
"""A pass in the name of a graph: f@1, f@-1@2, f@1.residual."""


def joint_passes(documents: Sequence[Document], one_pass: Collection[int], names: Sequence[str]) -> dict[int, str]:
    """The identities of the passes of all documents, of which no number has two, unless `one_pass` says that its calls are one.

    Then the identity is one of all of them, in whatever order they come. Documents that give a pass no identity agree with any.
    `names` are how messages call the documents. Raises TransformError for a number of two calls, UnknownNameError for one of
    `one_pass` that no document uses.
    """
    used = set().union(*(document.used_passes() for document in documents))
    for number in one_pass:
        if number not in used:
            raise UnknownNameError(f"no document uses pass {number} (passes: {_listed(used)})")
    calls: dict[int, dict[str, int]] = {}
    for k, document in enumerate(documents):
        for number, identity in document.passes.items():
            calls.setdefault(number, {}).setdefault(identity, k)
    for number, identities in calls.items():
        if len(identities) > 1 and number not in one_pass:
            first, second = (_place(documents, k, number, names) for k in list(identities.values())[:2])
            free = _free(used)
            raise TransformError(
                f"pass {number} is one call of linearize in {first} and another in {second}, whose tangents would be mixed up; "
                "renumber one (",
                Remedy("passes", f"{number}={free}", "renumber", "convert", "--pass", f"renumber(document, {{{number}: {free}}})"),
                ", or ",
                Remedy("pass_number", free, "linearize", flag="--pass"),
                "), or give ",
                Remedy("one_pass", number, python=f"one_pass=[{number}]"),
                " if both are along one direction",
            )
    return {number: _joint(identities) for number, identities in calls.items()}


def _free(used: Collection[int]) -> int:
    return next(number for number in count(1) if number not in used)


def _listed(used: Collection[int]) -> str:
    return listed(list(map(str, sorted(used))))


def _joint(identities: Collection[str]) -> str:
    if len(identities) == 1:
        return next(iter(identities))
    return digest_text(sha256(msgpack.packb(["one pass", sorted(identities)])).digest())


def _place(documents: Sequence[Document], k: int, number: int, names: Sequence[str]) -> str:
    document = documents[k]
    graph = next((graph for graph in document.graphs if number in Document((graph,), graph.cases).used_passes()), document.head)
    return f"{names[k] if names else f'document {k + 1}'} (graph '{graph.name}')"


def passes_of(name: str) -> set[int]:
    """The passes that a graph came of, as its name says."""
    return {int(number) for _, number in _STEP.findall(name)}


def require_linear(document: Document) -> None:
    """Raises TransformError if bindings make what a linear graph reads depend on tangents of its own pass."""
    steps = {step for graph in document.graphs if graph.linear is not None for step in _steps(graph)}
    if not document.bindings or not steps:
        return
    logical = link(document)
    free = {key: flat for key, flat in logical.source.items() if key not in document.bound}
    for step in sorted(steps):
        linear = [g for g, graph in enumerate(document.graphs) if graph.linear is not None and step in _steps(graph)]
        read = logical.depends_on_externals(linear)
        mixed = next((key for key, flat in free.items() if key.path[-1:] == (step,) and read[flat]), None)
        if mixed is not None:
            name = document.graphs[linear[-1]].name
            raise TransformError(
                f"graph '{name}' is linear in pass {abs(step)}, but through bindings it reads values that "
                f"depend on '{mixed}' of the same pass; make that another one with "
                f"{Remedy(function='renumber', command='convert', flag='--pass')}, or "
                f"{Remedy('pass_number', function='linearize', flag='--pass')}"
            )
    if wrong := own_tangent_read(document):
        graph, key = wrong
        raise TransformError(
            f"{not_linear(graph, key)}; bind the input to an output of a linear graph, or to what needs no tangents"
        )


def _steps(graph: Graph) -> set[int]:
    return {step for i in graph.inputs for step in i.key.path[-1:]}


def renumber(document: Document, numbers: Mapping[int, int]) -> Document:
    """The document with other pass numbers, all exchanged at once: in keys, linear graphs and names of graphs.

    Raises UnknownNameError for a pass that is not in use; TransformError if two passes would have one number, or two graphs one
    name, and for a pass on whose tangents detached values may depend, since their digests hold its number.
    """
    used = document.used_passes()
    for number in numbers:
        if number not in used:
            raise UnknownNameError(f"pass {number} is not in use (passes: {_listed(used)})")
    source: dict[int, int] = {}
    for old in sorted(used):
        new = numbers.get(old, old)
        if new in source:
            raise TransformError(f"passes {source[new]} and {old} would both be pass {new}; {_free(used)} is free")
        source[new] = old
    changed = {old: new for old, new in numbers.items() if new != old}
    _require_attached(document, changed)

    def renumbered(old: int) -> int:
        return changed.get(old, old)

    def key(old: Key) -> Key:
        return replace(old, path=tuple(renumbered(step) if step > 0 else -renumbered(-step) for step in old.path))

    def name(old: str) -> str:
        return _STEP.sub(lambda step: f"@{step[1]}{renumbered(int(step[2]))}", old)

    renamed = with_other_keys(document, key, key, name)
    _require_distinct(document.graphs, renamed.graphs)
    graphs = tuple(graph if graph.linear is None else replace(graph, linear=renumbered(graph.linear)) for graph in renamed.graphs)
    return replace(renamed, graphs=graphs, passes={renumbered(old): identity for old, identity in document.passes.items()})


def _require_attached(document: Document, numbers: Collection[int]) -> None:
    # What linear graphs of a pass read depends on none of its tangents. Of other detached values nobody knows.
    if not document.detached:
        return
    logical = link(document)
    for number in sorted(numbers):
        known = logical.depends_on_externals(g for g, graph in enumerate(document.graphs) if graph.linear == number)
        for k, entry in enumerate(document.detached):
            if not known[logical.base[-1] + k]:
                raise TransformError(
                    f"the document reads the detached value {entry.digest}, which may depend on tangents of pass {number}; "
                    "resolve it with the document that defines it"
                )


def _require_distinct(before: Sequence[Graph], after: Sequence[Graph]) -> None:
    source: dict[str, str] = {}
    for old, new in zip(before, after, strict=True):
        if (first := source.setdefault(new.name, old.name)) != old.name:
            raise TransformError(f"graphs '{first}' and '{old.name}' would both be named '{new.name}'; choose another pass")
