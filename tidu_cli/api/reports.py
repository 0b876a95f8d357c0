"""What can be said of documents: what they are, whether they are right, and how two of them differ."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from tidu_cli.arguments import op_name
from tidu_cli.errors import PluginError
from tidu_cli.graph.graph import Document
from tidu_cli.installed import source_named
from tidu_cli.options import checked


@checked()
def info(document: Document, digests: bool = False) -> dict[str, Any]:
    """What a document is, as `tidu info --json` tells it: its graphs, and what evaluating it takes; with the digests of values."""
    from tidu_cli.checking.summary import summary_of

    return summary_of(document, with_digests=digests)


@checked()
def diff(a: Document, b: Document, exact: bool = False) -> dict[str, Any]:
    """How two documents differ in structure, as `tidu diff --json` tells it: "same", and where they differ.

    With `exact` graphs are also compared one by one: names, order, nodes, roles and meta.
    """
    from tidu_cli.checking.comparing.report import difference

    return difference(a, b, exact=exact)[1]


@checked()
def schema() -> dict[str, Any]:
    """The JSON Schema of documents."""
    from tidu_cli.formats.shape.schema import json_schema

    return json_schema()


@checked()
def show(document: Document, all: bool = False, formula: bool = False) -> str:
    """A document as text that people read, all nodes of it if `all`; or the head, a graph of numbers, as a formula.

    Raises BuildError for a graph that no formula has.
    """
    if formula:
        return str(source_named("formula").written(document))
    from tidu_cli.render.listing import listing

    return "\n".join(listing(document, every=all))


@checked(names=op_name)
def ops(
    *names: str, plugins: str | Sequence[str] = (), ops: str | PurePath | Sequence[str | PurePath] = ()
) -> list[dict[str, Any]]:
    """What is known of all primitives, or of those of these names, as `tidu ops --json` tells it.

    `plugins` names packages that may be imported for theirs, `ops` are files of libraries. Raises UnknownNameError; PluginError for
    one that two of these bring.
    """
    from tidu_cli.api.files import vocabulary_with
    from tidu_cli.checking.catalogue import data_of, known_ops

    primitives = vocabulary_with(plugins, ops)
    chosen, wrong = known_ops(names, primitives)
    if wrong:
        raise PluginError(wrong)
    return [data_of(op, primitives) for op in chosen]
