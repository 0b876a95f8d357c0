"""What workers are to do, in parcels that travel once to each worker: tasks name them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

from tidu_cli import __version__
from tidu_cli.cluster.items.plan import Items
from tidu_cli.errors import is_called_in_shell
from tidu_cli.formats.write import format_document
from tidu_cli.frozen import Frozen, field
from tidu_cli.graph.graph import Document, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.limits import limits
from tidu_cli.runtime.engines.choosing import PLAIN, Choice
from tidu_cli.watching import listening


class Parcel(Frozen, slots=False):
    """A self-contained document of one graph as bytes, by a name that follows from them."""

    name: str
    data: bytes
    plugins: tuple[str, ...] = ()
    version: str = __version__


class Job(Frozen, slots=False):
    """How the document of a parcel is run: the inputs that have items, and the values of all others.

    `items` are those that every worker can read by itself; others come with the tasks. `memory` and `steps` are the limits that the
    user set, None for each worker's own memory, and for any number of steps; `name` is what tasks call it.
    """

    document: str
    batched: tuple[Key, ...]
    shared: Mapping[Key, Any]
    reduction: str | None = None
    engine: Choice = PLAIN
    max_memory: int | None = None
    memory: int | None = field(default_factory=lambda: limits().memory)
    steps: int | None = field(default_factory=lambda: limits().steps)
    items: Mapping[Key, Items] = field(default_factory=dict)
    in_shell: bool = field(default_factory=is_called_in_shell)
    name: str = field(default_factory=lambda: f"tidu-{os.urandom(8).hex()}")


def parcel_of(graph: Graph, plugins: tuple[str, ...] = ()) -> Parcel:
    """A self-contained graph on its way."""
    with listening(None):
        data = format_document(Document((graph,), graph.cases), "msgpack")
    return Parcel(f"tidu-document-{hashlib.sha256(data).hexdigest()[:32]}", data, plugins)
