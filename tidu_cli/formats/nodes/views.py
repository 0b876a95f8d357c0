"""Views of record types from plain data: their properties, and the graphs from and to the fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidu_cli.custom.views import view_of
from tidu_cli.errors import TypeTextError
from tidu_cli.formats.messages import naming
from tidu_cli.formats.nodes.numbering import GraphReader, Numbering
from tidu_cli.formats.shape.document import ViewData, shaped, type_reader
from tidu_cli.frozen import replace
from tidu_cli.graph.text.types import check_field
from tidu_cli.graph.types import RecordType, View
from tidu_cli.lax.builtin import BUILTIN


def read_views(
    record: RecordType, declarations: Mapping[str, Any], records: Mapping[str, RecordType], read_closed: GraphReader
) -> tuple[View, ...]:
    """The views of a record type, whose graphs may name these `records`. Raises DocumentError."""
    # Of built-in primitives: custom ones are made of record types, and these have their views by then.
    primitives = replace(BUILTIN, records=dict(records))
    around = Numbering(primitives, type_reader(primitives.records), iter, read_closed)
    views: list[View] = []
    owner: dict[str, str] = {}
    for name, data in declarations.items():
        with naming(f"type '{record.name}', view '{name}': "):
            shape = shaped(ViewData, data, around.read_type)
            for part in shape.properties:
                with naming(f"property '{part}': "):
                    check_field(part)
                    if owner.setdefault(part, name) != name:
                        raise TypeTextError(f"the view '{owner[part]}' has a property of this name, too; rename one of them")
            graphs = read_closed(shape.from_fields, "from_fields", around), read_closed(shape.to_fields, "to_fields", around)
            views.append(view_of(name, record, shape.properties, graphs, primitives))
    return tuple(views)
