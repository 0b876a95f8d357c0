"""Random graphs that compute with records, each with the same graph of arrays alone, to hold its values and derivatives against.

The twin has an input or output for every array in those of the graph, named by where it is: `p.x` for field x of p.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.graphs.interpret import random_value
from tests.graphs.sketch import Sketch, Value, document, key
from tidu_cli.graph.graph import CaseTable, Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import DATETIMES, Path, RecordType, TensorType, Type, leaves, moves, tangent_type
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.vocabulary import PrimitiveSet

Draw = Callable[[Any], Any]

LEAVES = ("f64[]", "f64[2]", "f64[2]", "i64[]", "bool[]", "datetime[ms][2]", "duration[h][2]")
NAMES = ("Point", "Event", "Pair")


class Twins(NamedTuple):
    """A value, and the arrays in it, as values of the other graph."""

    whole: Value
    arrays: Mapping[Path, Value]

    @property
    def type(self) -> Type:
        return self.whole.type

    def field(self, name: str) -> dict[Path, Value]:
        return {path[1:]: value for path, value in self.arrays.items() if path[0] == name}


@dataclass
class Pool:
    """Two graphs under construction, and the values that there are in both."""

    draw: Draw
    with_records: Sketch
    flat: Sketch
    values: list[Twins]

    def pick(self, suits: Callable[[Type], bool]) -> Twins | None:
        candidates = [v for v in self.values[-8:] if suits(v.type)]
        return self.draw(st.sampled_from(candidates)) if candidates else None

    def leaf(self, *dtypes: str) -> Twins | None:
        return self.pick(lambda t: isinstance(t, TensorType) and t.dtype in dtypes)

    def alike(self, suits: Callable[[Type], bool]) -> tuple[Twins, Twins] | None:
        x = self.pick(suits)
        y = None if x is None else self.pick(lambda t: t == x.type)
        return None if x is None or y is None else (x, y)

    def apply(self, op: str, *operands: Twins, **attrs: object) -> None:
        """An operation on arrays, the same in both graphs."""
        whole = self.with_records.apply(op, *[x.whole for x in operands], **attrs)
        self.values.append(Twins(whole, {(): self.flat.apply(op, *[x.arrays[()] for x in operands], **attrs)}))


def _arithmetic(pool: Pool) -> None:
    pair = pool.alike(lambda t: isinstance(t, TensorType) and t.dtype in ("f64"))
    if pair is not None:
        pool.apply(pool.draw(st.sampled_from(["add", "mul", "mul", "sub"])), *pair)


def _sine(pool: Pool) -> None:
    if (x := pool.leaf("f64")) is not None:
        pool.apply("sin", x)


def _number(pool: Pool) -> None:
    if (x := pool.leaf("i64", "duration[h]", "duration[ms]")) is not None:
        pool.apply("convert_element_type", x, new_dtype="f64")


def _between(pool: Pool) -> None:
    if (pair := pool.alike(lambda t: isinstance(t, TensorType) and t.dtype in DATETIMES)) is not None:
        pool.apply("sub", *pair)


def _field(pool: Pool) -> None:
    if (r := pool.pick(lambda t: isinstance(t, RecordType))) is not None:
        name = pool.draw(st.sampled_from(r.type.names))
        pool.values.append(Twins(pool.with_records.apply("field", r.whole, name=name), r.field(name)))


def _record(pool: Pool) -> None:
    """One of a declared type, if there are values for all its fields; else one that is spelled out, or a tuple."""
    declared = pool.draw(st.sampled_from([*pool.with_records.primitives.records.values(), None]))
    fields: dict[str, Twins] = {}
    if declared is not None:
        members = {name: pool.pick(lambda t, type_=type_: t == type_) for name, type_ in declared.fields}
        if any(value is None for value in members.values()):
            return
        type_, fields = declared, members
    else:
        names = pool.draw(st.sampled_from([("a", "b"), ("0", "1"), ("0",), ("x", "a", "y")]))
        fields = {name: pool.draw(st.sampled_from(pool.values[-8:])) for name in names}
        type_ = RecordType("", tuple((name, value.type) for name, value in fields.items()))
    if sum(1 for _ in leaves(type_)) > 12:
        return
    whole = pool.with_records.apply("record", *[value.whole for value in fields.values()], type=type_)
    pool.values.append(Twins(whole, {(name, *path): a for name, value in fields.items() for path, a in value.arrays.items()}))


def _leafwise(pool: Pool, op: str, x: Twins, y: Twins, whole: Value) -> None:
    arrays = {path: pool.flat.apply(op, x.arrays[path], y.arrays[path]) for path, _ in leaves(whole.type) if path in y.arrays}
    unmoved = {path: a for path, a in x.arrays.items() if path not in arrays and path in dict(leaves(whole.type))}
    pool.values.append(Twins(whole, {path: (arrays | unmoved)[path] for path, _ in leaves(whole.type)}))


def _sum(pool: Pool) -> None:
    addable = {"f64", "i64", "duration[h]", "duration[ms]"}
    pair = pool.alike(lambda t: isinstance(t, RecordType) and all(leaf.dtype in addable for _, leaf in leaves(t)))
    if pair is not None:
        _leafwise(pool, "add", *pair, pool.with_records.apply("add", *[x.whole for x in pair]))


def _difference(pool: Pool) -> None:
    if (pair := pool.alike(lambda t: isinstance(t, RecordType) and moves(t))) is not None:
        _leafwise(pool, "difference", *pair, pool.with_records.apply("difference", *[x.whole for x in pair]))


def _retract(pool: Pool) -> None:
    """Of floats alone: integers and datetimes would round, and then derivatives of values say little."""
    floats = ("f64", "duration[h]", "bool")
    x = pool.pick(lambda t: isinstance(t, RecordType) and moves(t) and all(leaf.dtype in floats for _, leaf in leaves(t)))
    d = None if x is None else pool.pick(lambda t: t == tangent_type(x.type))
    if x is not None and d is not None:
        _leafwise(pool, "retract", x, d, pool.with_records.apply("retract", x.whole, d.whole))


def _barrier(pool: Pool) -> None:
    x, y = pool.draw(st.sampled_from(pool.values[-8:])), pool.draw(st.sampled_from(pool.values[-8:]))
    made = pool.with_records.apply_all("optimization_barrier", x.whole, y.whole)
    pool.values += [Twins(whole, value.arrays) for whole, value in zip(made, (x, y), strict=True)]


MAKERS = (
    *(_arithmetic, _arithmetic, _sine, _number, _between),
    *(_field, _field, _field, _record, _record, _sum, _sum),
    *(_difference, _retract, _barrier),
)


@st.composite
def vocabularies(draw: Draw) -> PrimitiveSet:
    """The built-in primitives with random record types: of arrays, of tuples and of one another."""
    records: dict[str, RecordType] = {}
    for name in NAMES:
        choices: list[Type] = [TensorType(*_parts(text)) for text in LEAVES]
        choices += [*records.values(), *records.values()]
        choices.append(RecordType("", (("0", choices[0]), ("1", draw(st.sampled_from(choices))))))
        types = draw(st.lists(st.sampled_from(choices), min_size=1, max_size=3))
        records[name] = RecordType(name, tuple(zip("xyz", types, strict=False)))
    return replace(BUILTIN, records=records)


def _parts(text: str) -> tuple[str, tuple[int, ...]]:
    dtype, _, shape = text.removesuffix("]").rpartition("[")
    return dtype, tuple(map(int, shape.split(","))) if shape else ()


@st.composite
def record_graphs(draw: Draw) -> tuple[Document, Document]:
    """A graph with inputs p and q of random record types and an array x, and its twin."""
    primitives = draw(vocabularies())
    types: dict[str, Type] = {name: draw(st.sampled_from(list(primitives.records.values()))) for name in "pq"}
    types["x"] = TensorType("f64", (2,))
    cases = CaseTable(primitives)
    flat_types = {named(name, path): leaf for name, type_ in types.items() for path, leaf in leaves(type_)}
    with_records = Sketch(types, cases=cases, primitives=primitives)
    flat = Sketch(flat_types, cases=cases, primitives=primitives)
    arrays = dict(zip(flat_types, flat.inputs, strict=True))
    values = [
        Twins(value, {path: arrays[named(name, path)] for path, _ in leaves(type_)})
        for (name, type_), value in zip(types.items(), with_records.inputs, strict=True)
    ]
    pool = Pool(draw, with_records, flat, values)
    for make in draw(st.lists(st.sampled_from(MAKERS), min_size=3, max_size=14)):
        make(pool)
    chosen = draw(st.lists(st.sampled_from(pool.values[-5:]), min_size=1, max_size=3))
    wholes = {f"y{k}": value.whole for k, value in enumerate(chosen)}
    parts = {named(f"y{k}", path): a for k, value in enumerate(chosen) for path, a in value.arrays.items()}
    return document(with_records.build("f", wholes)), document(flat.build("f", parts))


def named(name: str, path: Path) -> Key:
    return key(".".join([name, *path]))


def flattened(values: Mapping[Key, Any], types: Mapping[Key, Type]) -> dict[Key, Any]:
    """The arrays of values, by the keys of the twin: of p@1 with field x, `p.x@1`."""
    return {Key(".".join([k.name, *path]), k.path): a for k, x in values.items() for path, a in _arrays(x, types[k])}


def _arrays(value: Any, type_: Type) -> Iterator[tuple[Path, Any]]:
    if isinstance(type_, TensorType):
        yield (), value
        return
    for part, (name, field) in zip(value, type_.fields, strict=True):
        for path, a in _arrays(part, field):
            yield (name, *path), a


def random_arguments(types: Mapping[Key, Type], rng: Any) -> dict[Key, Any]:
    """Random values of these types, records as tuples."""
    return {k: random_value(t, rng) for k, t in types.items()}
