"""rename: give inputs, outputs and graphs of a document other names.

Names are those that users gave: with an input x go its tangents x@1 and its cotangents x@-1, with an output y its cotangents y@-1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tidu_cli.errors import TransformError, UnknownNameError, did_you_mean
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key


class Owner(NamedTuple):
    """Whose tangent or cotangent a key is: the input, or the output, of this name. A plain key is its own."""

    is_input: bool
    name: str


def owner(key: Key, *, is_input: bool) -> Owner:
    """The owner of the key of an input, or of an output.

    A tangent stays on its owner's side and a cotangent changes sides: `x@-1` among the outputs belongs to the input x, `y@-1` among
    the inputs to the output y, and `x@-1@-2` among the inputs to the input x.
    """
    changes = sum(step < 0 for step in key.path)
    return Owner(is_input == (changes % 2 == 0), key.name)


def owners(document: Document) -> Iterator[Owner]:
    """The owners of all keys of a document."""
    for graph in document.graphs:
        yield from (owner(i.key, is_input=True) for i in graph.inputs)
        yield from (owner(o.key, is_input=False) for o in graph.outputs)


@dataclass(frozen=True)
class Renaming:
    """New names of inputs, of outputs and of graphs, by the old ones."""

    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    graphs: Mapping[str, str] = field(default_factory=dict)

    def input_key(self, key: Key) -> Key:
        """What the key of an input becomes."""
        return self._key(key, is_input=True)

    def output_key(self, key: Key) -> Key:
        """What the key of an output becomes."""
        return self._key(key, is_input=False)

    def _key(self, key: Key, *, is_input: bool) -> Key:
        owned_by_input, name = owner(key, is_input=is_input)
        return replace(key, name=(self.inputs if owned_by_input else self.outputs).get(name, name))


def rename(document: Document, renaming: Renaming) -> Document:
    """The document with other names, which computes the same.

    Raises UnknownNameError for a name that nothing in the document has; TransformError for a new name that would make two inputs,
    two outputs or two graphs one, and for inputs of a document with detached values, whose digests hold their names.
    """
    found = dict.fromkeys(owners(document))
    _require_distinct("input", renaming.inputs, [name for is_input, name in found if is_input])
    _require_distinct("output", renaming.outputs, [name for is_input, name in found if not is_input])
    _require_distinct("graph", renaming.graphs, [graph.name for graph in document.graphs])
    if document.detached and (renaming.inputs or renaming.outputs):
        raise TransformError(
            f"the document reads the detached value {document.detached[0].digest}, which may depend on inputs by their old names; "
            "resolve it with the document that defines it"
        )
    return with_other_keys(document, renaming.input_key, renaming.output_key, lambda name: renaming.graphs.get(name, name))


def with_other_keys(
    document: Document, input_key: Callable[[Key], Key], output_key: Callable[[Key], Key], graph_name: Callable[[str], str]
) -> Document:
    """The document with other keys of inputs and outputs, and other names of graphs, each told from the old one."""
    graphs = [
        replace(
            graph,
            name=graph_name(graph.name),
            inputs=tuple(replace(i, key=input_key(i.key)) for i in graph.inputs),
            outputs=tuple(replace(o, key=output_key(o.key)) for o in graph.outputs),
        )
        for graph in document.graphs
    ]
    return replace(document, graphs=tuple(graphs), bindings=tuple(replace(b, key=input_key(b.key)) for b in document.bindings))


def _require_distinct(what: str, new_name: Mapping[str, str], known: list[str]) -> None:
    for old in new_name:
        if old not in known:
            raise UnknownNameError(f"there is no {what} '{old}' to rename{did_you_mean(old, known)}")
    source: dict[str, str] = {}
    for old in known:
        new = new_name.get(old, old)
        if new in source:
            raise TransformError(f"two {what}s would be named '{new}': '{source[new]}' and '{old}'; choose another name")
        source[new] = old
