"""Other names for inputs, outputs and graphs of a document.

Names are those that users gave: with an input x go its tangents x@1 and its cotangents x@-1, with an output y its cotangents y@-1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

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
    """The document with other names, which computes the same, where they make no two inputs, outputs or graphs one.

    The digests of what detached values depend on hold the names of inputs: a document that reads such may keep only those.
    """
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
