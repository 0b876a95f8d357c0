"""What the meta of nodes says of where they come from, as paths: of calls and lines, or of names such as `layer1/attention`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Graph, Meta

_PLACE = re.compile(r"(\S+) (.+):(\d+)", re.S)
_SEPARATOR = re.compile(r"[/.]+")


class Label(Frozen):
    """A step of a path: a name, and where a line of code is what is meant, `file:line`."""

    name: str
    place: str = ""


Path = tuple[Label, ...]


def paths(graph: Graph) -> Sequence[Path]:
    """The path of each node, empty where nothing is known.

    An operator of ONNX may be several nodes, of which the last one has its name: those before it are of that operator, too.
    """
    if not graph.node_meta:
        return [()] * graph.n_nodes
    from_last: list[Path] = []
    path_of = cache(_path)
    following: Path = ()
    for node in range(graph.n_nodes - 1, -1, -1):
        if (meta := graph.node_meta.get(node)) is not None:
            places = lines(meta)
            following = () if places else path_of(given_name(meta))
            from_last.append(path_of(tuple(places)) if places else following)
        else:
            from_last.append(following)
    return from_last[::-1]


def lines(meta: Meta) -> Sequence[str]:
    """The places in a user's code that made a node, `FUNCTION FILE:LINE`, the outermost first."""
    places = (meta or {}).get("source")
    return [place for place in places if isinstance(place, str)] if isinstance(places, list | tuple) else []


def given_name(meta: Meta) -> str:
    """The name that a node has elsewhere: in a model of ONNX, or as `name` in its meta."""
    onnx = (meta or {}).get("onnx")
    names = [onnx.get("node"), onnx.get("value")] if isinstance(onnx, dict) else [(meta or {}).get("name")]
    return next((name for name in names if isinstance(name, str) and name), "")


def brief(place: str) -> str:
    """A place without the folders of its file."""
    return place.rpartition("/")[2]


def _path(told: tuple[str, ...] | str) -> Path:
    if isinstance(told, str):
        return tuple(Label(part) for part in _SEPARATOR.split(told) if part)
    matched = [match.groups() for place in told if (match := _PLACE.fullmatch(place))]
    # A line of a function is what it calls there; of the innermost one it is the line itself.
    called = [*(function for function, _, _ in matched[1:]), ""][: len(matched)]
    places = [f"{file}:{line}" for _, file, line in matched]
    return tuple(Label(name or brief(place), place) for name, place in zip(called, places, strict=True))
