"""Large documents in JSON to plain data, piece by piece: long lists of nodes become `listed` columns.

Nothing here knows the grammar of JSON. Where to cut is a guess, and json's own reader says whether it was right:

- If two texts in brackets are lists, both joined by a comma are, in brackets, the list of the entries of both.
- If a text with NaN somewhere is JSON but for this value, it is JSON with any other value in its place.
- A key ends in a quote, and a colon follows. If a text has no more of these than there are keys in what was read, no object had
  a key twice.

All else is left to those who read the text as a whole, and say what is wrong with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from tidu_cli.errors import TiduError
from tidu_cli.formats.nodes.listed import Listed

PIECE = 2**16
"""So many bytes of a list at once: what is made of them stays in the processor's cache. Shorter lists are not cut."""

_NODES = b'"nodes"'
_BEGIN = re.compile(rb"[ \t\n\r]*:[ \t\n\r]*\[")
_BETWEEN = re.compile(rb'\}[ \t\n\r]*,[ \t\n\r]*(?=\{[ \t\n\r]*"(?:op|inputs|attrs|role|types|meta)")')
_END_OF_KEY = re.compile(r'"[ \t\n\r]*:')
_BLANK = b"NaN"


def parsed_in_pieces(
    data: bytearray, strict: dict[str, Any], keys_once: dict[str, Any], require_room: Callable[[bytearray], None]
) -> object:
    """The plain data of a text, with `Listed` as the nodes of large graphs; None if it is not to be read this way.

    `strict` and `keys_once` are settings of json's reader. The first refuse what it takes and JSON has not, the second keys that
    occur twice; by ValueError or TiduError. `require_room` is told what is parsed at once.
    """
    lists: list[Listed] = []
    rest: list[bytearray] = []
    done = at = in_vain = 0
    decoder = json.JSONDecoder(**strict)
    while (at := data.find(_NODES, at)) >= 0 and in_vain <= len(data):
        at += len(_NODES)
        if (begin := _BEGIN.match(data, at)) is None:
            continue
        nodes, end = _long_list(data, begin.end(), decoder, require_room)
        if nodes is None:
            in_vain += end - at
            continue
        lists.append(nodes)
        rest.append(data[done : begin.end() - 1])
        done = at = end
    rest.append(data[done:])
    if not lists or any(_BLANK in part for part in rest):
        return None
    outline = bytearray(_BLANK).join(rest)
    require_room(outline)
    return _joined(outline, lists, {**strict, **keys_once})


def _long_list(
    data: bytearray, begin: int, decoder: json.JSONDecoder, require_room: Callable[[bytearray], None]
) -> tuple[Listed | None, int]:
    """The list whose first entry begins here, and its end.

    If it is short, or not all nodes are of the common forms, None and how far it was looked at.
    """
    listed, in_pieces = Listed(), False
    while True:
        cut = _BETWEEN.search(data, begin + PIECE)
        stop = cut.start() + 1 if cut else len(data)
        piece = data[begin:stop]
        require_room(piece)
        try:
            text = f"[{piece.decode()}]"
            nodes, end = decoder.raw_decode(text)
        except (ValueError, RecursionError, TiduError):
            return None, stop
        closed = end < len(text)  # by a bracket of its own
        if (closed and not in_pieces) or not _taken(listed, nodes, text, end):
            return None, stop
        if closed:
            return listed, begin + len(text[1:end].encode())
        if cut is None:
            return None, stop
        begin, in_pieces = cut.end(), True


def _taken(listed: Listed, nodes: list[Any], text: str, end: int) -> bool:
    n_keys = listed.take(nodes)
    # In strings there may be colons too, but hardly any that follow a quote.
    return n_keys is not None and (text.count(":", 0, end) == n_keys or len(_END_OF_KEY.findall(text, 0, end)) == n_keys)


def _joined(outline: bytearray, lists: list[Listed], settings: dict[str, Any]) -> object:
    blanks = iter(lists)

    def filled(constant: str) -> Listed:
        if constant != _BLANK.decode():
            raise ValueError
        return next(blanks)

    try:
        plain = json.loads(outline.decode(), **{**settings, "parse_constant": filled})
    except (ValueError, RecursionError, TiduError):
        return None
    graphs = plain.get("graphs") if isinstance(plain, dict) else None
    node_lists = [graph.get("nodes") for graph in graphs if isinstance(graph, dict)] if isinstance(graphs, list) else []
    # Elsewhere, say under meta, a list must be a list; and a blank in a string is none.
    return plain if sum(isinstance(nodes, Listed) for nodes in node_lists) == len(lists) else None
