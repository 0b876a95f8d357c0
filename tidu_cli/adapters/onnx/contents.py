"""What stands in a model, however deep: its nodes, its tensors, its names; and what is chosen of it by these when it is read.

That is sizes, weights, floats where it is cut, and where derivatives stop. Values through which no derivative goes have names of
the graph, and of graphs within nodes, as NODE/ATTRIBUTE/NAME.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

from tidu_cli.errors import ArgumentError, DocumentError, KeyTextError, Remedy, UnknownNameError, did_you_mean
from tidu_cli.formats.files import repeated
from tidu_cli.frozen import Frozen, field
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.select import listed
from tidu_cli.graph.types import FLOATS, TensorType, parse_type
from tidu_cli.limits import require

FLOAT_CODES = frozenset((1, 10, 11, 16))
"""The codes of f32, f16, f64 and bf16."""

MOST_LEVELS = 64
"""How deep graphs may stand within nodes of graphs, and functions call functions."""


def nodes_within(nodes: Iterable[Any]) -> Iterator[Any]:
    """Nodes, and those of graphs within them."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for inner in _graphs(attribute):
                yield from nodes_within(inner.node)


def tensors(model: Any) -> Iterator[Any]:
    """The tensors of a model: initializers, and attributes of nodes, also in functions and in graphs within nodes."""
    yield from (a.t for function in model.functions for a in function.attribute_proto if a.HasField("t"))
    nodes = nodes_within([*model.graph.node, *(node for function in model.functions for node in function.node)])
    attributes = [attribute for node in nodes for attribute in node.attribute]
    sparse: list[Any] = []
    for graph in (model.graph, *(inner for attribute in attributes for inner in _graphs(attribute))):
        yield from graph.initializer
        sparse += graph.sparse_initializer
    for attribute in attributes:
        yield from (*([attribute.t] if attribute.HasField("t") else ()), *attribute.tensors)
        sparse += [*([attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else ()), *attribute.sparse_tensors]
    for tensor in sparse:
        yield from (tensor.values, tensor.indices)


def constants(graph: Any) -> dict[str, int]:
    """The float tensors of the Constant nodes of a graph that have more than one number, as parameters have: how many each has."""
    nodes = (node for node in graph.node if node.op_type == "Constant" and node.output)
    held = {node.output[0]: a.t for node in nodes for a in node.attribute if a.HasField("t")}
    return {name: size for name, t in held.items() if t.data_type in FLOAT_CODES and (size := prod(t.dims)) > 1}


def require_sound(model: Any) -> None:
    """Raises DocumentError for names that are no text and graphs that nest too deep, LimitError for too many nodes.

    Of text that is not UTF-8 protobuf gives the bytes.
    """
    _require_text(model.producer_name, model.producer_version, model.doc_string, *(o.domain for o in model.opset_import))
    n = _sound(model.graph, 0)
    for f in model.functions:
        _require_text(f.name, f.domain, f.overload, *f.input, *f.output, *f.attribute, *(a.name for a in f.attribute_proto))
        _require_text(*(o.domain for o in f.opset_import))
        n += _sound_nodes(f.node, 0)
    require("nodes", n, "the model")


def _sound(graph: Any, level: int) -> int:
    """The number of its nodes."""
    if level > MOST_LEVELS:
        raise DocumentError(f"graphs within graphs nest deeper than {MOST_LEVELS} levels")
    _require_text(graph.name, graph.doc_string, *(t.name for t in graph.initializer))
    for kind, ports in (("input", graph.input), ("output", graph.output), ("initializer", graph.initializer)):
        name = repeated(port.name for port in ports)
        if name is not None:
            raise DocumentError(f"graph '{graph.name}' declares {kind} '{name}' twice")
    for port in (*graph.input, *graph.output):
        _require_text(port.name, *(d.dim_param for d in port.type.tensor_type.shape.dim))
    return _sound_nodes(graph.node, level)


def _sound_nodes(nodes: Iterable[Any], level: int) -> int:
    n = 0
    for node in nodes:
        n += 1
        _require_text(node.op_type, node.domain, node.name, node.doc_string, node.overload, *node.input, *node.output)
        for attribute in node.attribute:
            _require_text(attribute.name, attribute.ref_attr_name)
            for inner in _graphs(attribute):
                n += _sound(inner, level + 1)
    return n


def _graphs(attribute: Any) -> Iterable[Any]:
    return [*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs]


def _require_text(*texts: str) -> None:
    try:
        "".join(texts)
    except TypeError:
        raise DocumentError("is a damaged model of ONNX: it has a name that is not text") from None


def label(name: str, outputs: Iterable[str]) -> str:
    """What a node is called: by its name, else by the first value that it gives."""
    return name or next(filter(None, outputs), "")


def stopped_places(graph: Any, names: Sequence[str], known: Iterable[str]) -> frozenset[str]:
    """Where the values of these names are. A name within a node needs no more than itself where there is one value of it.

    `known` are further names of the graph. Raises UnknownNameError.
    """
    if not names:
        return frozenset()
    own = {name: name for name in (*known, *(p.name for p in (*graph.input, *graph.initializer)))}
    own |= {t.values.name: t.values.name for t in graph.sparse_initializer}
    inner: dict[str, list[str]] = {}
    for node in graph.node:
        own |= {name: name for name in node.output if name}
        for place, name in _within(node, ""):
            inner.setdefault(name, []).append(place)
    whole = own | {place: place for places in inner.values() for place in places}
    return frozenset(whole[name] if name in whole else _only(name, inner, whole) for name in names)


def _only(name: str, inner: Mapping[str, Sequence[str]], known: Iterable[str]) -> str:
    places = list(dict.fromkeys(inner.get(name, ())))
    if not places:
        raise UnknownNameError(f"has no value '{name}' to stop derivatives at{did_you_mean(name, [*known, *inner])}")
    if len(places) > 1:
        told = listed([f"'{place}'" for place in places])
        raise UnknownNameError(f"has {len(places)} values '{name}' to stop derivatives at, within nodes; name one as {told}")
    return places[0]


def _within(node: Any, path: str) -> Iterator[tuple[str, str]]:
    """The values of graphs within a node: where they are, and their names. Graphs do not nest deep, as `require_sound` says."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            inner = f"{path}{label(node.name, node.output)}/{attribute.name}/"
            ports = (p.name for p in (*attribute.g.input, *attribute.g.initializer))
            yield from ((f"{inner}{name}", name) for name in (*ports, *(o for n in attribute.g.node for o in n.output if o)))
            for each in attribute.g.node:
                yield from _within(each, inner)


class Choices(Frozen, slots=False):
    """`sizes` of symbolic dimensions by name, `types` of inputs by name, and `values` of inputs that are constants by name.

    With `weights` the initializers of floats are inputs. `cast` is the dtype for all floats, None for their own. `cuts` are
    names of values that become inputs, `stops` of those through which no derivative goes. With `straight_through` rounding has the
    derivative 1, with `statistics` new values of weights that a model updates are outputs.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    types: Mapping[str, TensorType] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    weights: bool = False
    cast: str | None = None
    cuts: tuple[str, ...] = ()
    straight_through: bool = False
    stops: tuple[str, ...] = ()
    statistics: bool = False

    @classmethod
    def of(cls, **options: Any) -> Choices:
        """What the options of `load_onnx` say. Raises TypeTextError, and ArgumentError for a dtype that is none of floats."""
        cast, flags = options.get("cast"), {name: bool(options.get(name)) for name in ("weights", "straight_through", "statistics")}
        if cast is not None and cast not in FLOATS:
            raise ArgumentError(f"argument 'cast' takes a dtype of floats ({', '.join(sorted(FLOATS))}), not {cast!r}")
        if flags["statistics"] and not flags["weights"]:
            raise ArgumentError(Remedy("statistics", True), " goes with ", Remedy("weights", "FILE.npz", python="weights=True"))
        sizes, given, values = (dict(options.get(name) or {}) for name in ("dims", "input_types", "set"))
        types = {name: parse_type(t) if isinstance(t, str) else t for name, t in given.items()}
        cuts, stops = ((x,) if isinstance(x, str) else tuple(x) for x in (options.get("cut", ()), options.get("stop", ())))
        return cls(sizes, types, values, cast=cast, cuts=cuts, stops=stops, **flags)


def as_key(name: str) -> Key:
    """The key of a name: that of which it is the text, else of this name."""
    try:
        return parse_key(name)
    except KeyTextError:
        return Key(name)
