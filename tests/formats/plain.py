"""Documents as plain data: a structural description to compare them by, and random ones to try laws on."""

from __future__ import annotations

import json
from functools import cache

from hypothesis import strategies as st

from tidu_cli.formats.read import parse_document
from tidu_cli.graph.graph import Document, Externals
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import RecordType, Type
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.recording.linearity import is_vector

DIGESTS = ["sha256:" + digit * 64 for digit in "0a"]


def read(data) -> Document:
    """Parse bytes, or plain data as JSON."""
    return parse_document(data if isinstance(data, bytes) else json.dumps(data).encode(), "d")[0]


def described(document: Document) -> object:
    """Everything a document says, free of how it is numbered in memory: two documents are equal if this is."""

    def value(graph, argument):
        if argument is None or argument >= 0:
            return argument
        g, v = graph.external.graph[~argument], graph.external.value[~argument]
        return document.detached[v].digest if g == Externals.DETACHED else (g, v)

    graphs = [
        (
            graph.name,
            graph.linear,
            graph.meta,
            graph.inputs,
            [(graph.case(i), [value(graph, a) for a in graph.operands(i)], graph.node_meta.get(i)) for i in range(graph.n_nodes)],
            [(o.key, value(graph, o.value), o.type, o.meta) for o in graph.outputs],
        )
        for graph in document.graphs
    ]
    detached = sorted(document.detached, key=lambda d: d.digest)
    records = list(vocabulary(document.cases).records.items())
    return records, graphs, detached, document.bindings, document.meta, dict(document.passes)


TYPES = ["f64[]", "f32[2]", "c64[]", "i32[3,1]", "duration[h][]", "datetime[ms][2]"]
OPS = {
    "f64[]": ["add", "mul", "sin", "integer_pow"],
    "f32[2]": ["sub", "exp", "neg"],
    "c64[]": ["mul", "conj"],
    "i32[3,1]": ["add", "max"],
    "duration[h][]": ["add", "neg"],
    "datetime[ms][2]": ["max", "copy"],
}
BINARY = {"add", "mul", "sub", "max"}

_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
_metas = st.dictionaries(
    _text,
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | _text,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
        max_leaves=6,
    ),
    max_size=3,
)


@st.composite
def _keys(draw):
    key: object = draw(_text)
    for kind, number in draw(st.lists(st.tuples(st.sampled_from(["tangent", "cotangent"]), st.integers(1, 2**53 - 1)), max_size=3)):
        key = {kind: {"of": key, "pass": number}}
    return key


_words = st.text("abfPQ_1", min_size=1, max_size=3).filter(lambda word: not word[0].isdigit())


@cache
def _type_texts(names: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Types as tidu writes them: of tensors, of these names, and spelled out from such."""

    def spelled_out(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        records = st.dictionaries(_words, inner, min_size=1, max_size=3)
        tuples = st.lists(inner, min_size=1, max_size=3)
        return records.map(lambda fields: f"{{{', '.join(f'{k}: {t}' for k, t in fields.items())}}}") | tuples.map(
            lambda items: f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        )

    return st.recursive(st.sampled_from([*TYPES, "bool[]", *names]), spelled_out, max_leaves=4)


@st.composite
def type_tables(draw) -> dict[str, dict[str, str]]:
    """The field `types`: each type of tensors and of those before it, and then in any order."""
    table: dict[str, dict[str, str]] = {}
    for name in draw(st.lists(_words, min_size=1, max_size=3, unique=True)):
        table[name] = draw(st.dictionaries(_words, _type_texts(tuple(table)), min_size=1, max_size=3))
    return dict(draw(st.permutations(list(table.items()))))


def records_of(table: dict[str, dict[str, str]]) -> dict[str, RecordType]:
    """The record types that a table declares."""
    if not table:
        return {}
    return dict(vocabulary(read({"tidu": 1, "types": table, "graphs": [EMPTY]}).cases).records)


EMPTY = {"name": "", "inputs": [], "nodes": [], "outputs": []}


_MASKS = {
    **dict.fromkeys(("add", "sub"), ((True, True),)),
    "mul": ((True, False), (False, True)),
    **dict.fromkeys(("neg", "conj", "copy", "field", "record"), ((True,),)),
}
"""In which masks ops are linear without zeros."""


def masks_of(op: str, operands: list[object], type_: Type, linear: bool) -> list[list[bool]]:
    """The masks that a node of operands of this type may have; in a linear graph what is local is active."""
    masks = _MASKS.get(op, ()) if is_vector(type_) else ()
    return [list(m) for m in masks if not linear or list(m) == [isinstance(reference, int) for reference in operands]]


@st.composite
def documents(draw, detached: bool = True) -> dict[str, object]:
    """Valid documents, as JSON has them, with listed nodes."""

    def maybe_meta(fields):
        return {**fields, "meta": draw(_metas)} if draw(st.integers(0, 9)) == 0 else fields

    table = draw(type_tables()) if draw(st.booleans()) else {}
    records = records_of(table)
    more = draw(st.lists(_type_texts(tuple(table)), max_size=2)) if draw(st.booleans()) else []
    every_type = st.sampled_from([*TYPES, *table, *more])
    graphs: list[dict[str, object]] = []
    values: list[list[str]] = []  # the types of each graph's values
    declared: dict[str, tuple[object, str]] = {}
    names = draw(st.lists(_text, min_size=1, max_size=3, unique=True))
    bindings: list[dict[str, object]] = []
    for g, name in enumerate(names):
        linear = draw(st.integers(0, 3)) == 0
        keys = draw(st.lists(_keys(), max_size=3, unique_by=json.dumps))
        if linear:  # a residual must not depend on the graph's own inputs
            keys = [key for key in keys if json.dumps(key) not in declared]
        inputs = []
        for key in keys:
            first = json.dumps(key) not in declared
            type_ = declared.setdefault(json.dumps(key), (key, draw(every_type)))[1]
            inputs.append(maybe_meta({"key": key, "type": type_}))
            targets = [[h, v] for h in range(g) for v, t in enumerate(values[h]) if t == type_]
            # A linear graph whose input is a value must not read that value as a residual, either.
            if first and targets and not linear and draw(st.booleans()):
                bindings.append({"input": key, "value": draw(st.sampled_from(targets))})
        types = [str(i["type"]) for i in inputs]
        nodes = []
        for _ in range(draw(st.integers(0, 6))):
            references = list(enumerate(types)) + [([h, v], t) for h in range(g) for v, t in enumerate(values[h])]
            if not references:
                break
            first_reference, type_ = draw(st.sampled_from(references))
            record = parse_value_type(type_, records)
            if isinstance(record, RecordType):
                field, field_type = draw(st.sampled_from(record.fields))
                op, attrs, result = "field", {"name": field}, str(field_type)
            elif draw(st.integers(0, 5)) == 0:
                result = f"{{a: {type_}}}"
                op, attrs = "record", {"type": result}
            else:
                op, attrs, result = draw(st.sampled_from([*OPS.get(type_, []), "stop_gradient"])), {}, type_
            like = [r for r, t in references if t == type_]
            # Each digest has one type throughout: a detached value is one value.
            like += [d for d, t in zip(DIGESTS, TYPES, strict=False) if detached and t == type_]
            operands = [first_reference, *([draw(st.sampled_from(like))] if op in BINARY else [])]
            node = {"op": op, "inputs": operands}
            if op == "integer_pow":
                attrs = {"y": draw(st.integers(-3, 3))}
            if attrs:
                node["attrs"] = attrs
            if linear or draw(st.integers(0, 4)) == 0:
                masks = masks_of(op, operands, parse_value_type(type_, records), linear)
                if masks:
                    node["role"] = {"linearized": {"active_mask": draw(st.sampled_from(masks))}}
                elif linear:
                    continue
            if draw(st.integers(0, 4)) == 0:
                node["types"] = [result]
            nodes.append(maybe_meta(node))
            types.append(result)
        outputs = []
        choices = list(enumerate(types)) + [([h, v], t) for h in range(g) for v, t in enumerate(values[h])]
        zeros = [(None, f"{declared_name}{{z: f64[]}}") for declared_name in table]
        choices = list(enumerate(types)) if linear else [*choices, *([(DIGESTS[0], TYPES[0])] if detached else [])]
        choices += [(None, "f32[7]"), *zeros]
        for key in draw(st.lists(_keys(), max_size=3, unique_by=json.dumps)):
            value, type_ = draw(st.sampled_from(choices))
            outputs.append(maybe_meta({"key": key, "value": value, "type": type_}))
        head = {"name": name, **({"linear": {"pass": draw(st.integers(1, 5))}} if linear else {})}
        graphs.append(maybe_meta({**head, "inputs": inputs, "nodes": nodes, "outputs": outputs}))
        values.append(types)
    declarations = {"types": table} if table else {}
    used = sorted(_used_passes(graphs))
    passes = {str(number): draw(st.sampled_from(DIGESTS)) for number in used if draw(st.booleans())}
    named = {"passes": passes} if passes else {}
    return maybe_meta({"tidu": 1, **declarations, **named, "graphs": graphs, **({"bindings": bindings} if bindings else {})})


def _used_passes(graphs: list[dict[str, object]]) -> set[int]:
    """The pass numbers of keys and linear graphs, as JSON has them."""
    passes = {graph["linear"]["pass"] for graph in graphs if "linear" in graph}
    keys = [port["key"] for graph in graphs for port in (*graph["inputs"], *graph["outputs"])]
    while keys:
        if isinstance(key := keys.pop(), dict):
            (step,) = key.values()
            passes.add(step["pass"])
            keys.append(step["of"])
    return passes
