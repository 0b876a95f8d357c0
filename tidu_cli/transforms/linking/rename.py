"""Other names for inputs, outputs and graphs of a document.

Names are those that users gave: with an input x go its tangents x@1 and its cotangents x@-1, with an output y its cotangents y@-1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from tidu_cli.errors import TransformError, UnknownNameError, did_you_mean
from tidu_cli.frozen import Frozen, field, replace
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


class Renaming(Frozen, slots=False):
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


def renamed(document: Document, keys: Mapping[str, str], graphs: Mapping[str, str]) -> Document:
    """The document with names that a user chose for keys, of inputs and outputs, and graphs, by the old ones.

    Tangents and cotangents follow their keys, and graphs that are derived from one, such as f@1, follow that.

    Raises UnknownNameError for a name that the document has not; TransformError where two would be one, and for a document that
    reads detached values, whose digests hold the names of inputs.
    """
    stems = {graph.name: graph.name.partition("@")[0] for graph in document.graphs}
    of_inputs = {i.key.name for graph in document.graphs for i in graph.inputs}
    of_outputs = {o.key.name for graph in document.graphs for o in graph.outputs}
    _require_one_to_one("input or output", keys, of_inputs | of_outputs)
    _require_one_to_one("graph", graphs, set(stems.values()))
    if document.detached and keys:
        raise TransformError(
            f"the document reads the detached value {document.detached[0].digest}, which may depend on inputs by their names; "
            "resolve it with the document that defines it"
        )
    derived = {old: graphs.get(stem, stem) + old[len(stem) :] for old, stem in stems.items()}
    return rename(document, Renaming(keys, keys, derived))


def _require_one_to_one(what: str, names: Mapping[str, str], known: Collection[str]) -> None:
    after = {old: old for old in known if old not in names}
    for old, new in names.items():
        if old not in known:
            hint = did_you_mean(old, sorted(known)) or f" ({', '.join(sorted(known)) or 'none'})"
            raise UnknownNameError(f"no {what} is named '{old}'{hint}")
        if not new or "@" in new:
            raise TransformError(f"{what} '{old}' cannot be named '{new}': a name is text without @, which begins a pass")
        if new in after:
            raise TransformError(f"'{after[new]}' and '{old}' would both be named '{new}'; choose another name")
        after[new] = old


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
