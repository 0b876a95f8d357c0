"""Random programs of all primitives and dtypes: all ways to write, derive and run one agree, and so do derivatives and values."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tests.formats.plain import described
from tests.fuzz.choices import Choices
from tests.fuzz.differences import difference_interval, is_decided
from tests.fuzz.target import Target, require_message
from tests.graphs.interpret import evaluate, every_value, inner, random_value, tree, zeros
from tests.runtime.engines.local import ELEMENTWISE
from tests.runtime.plans.test_plans import bits
from tests.transforms.large.test_bulk import large_from
from tidu_cli.checking.numeric.trials import example_cases
from tidu_cli.control_flow.while_loop import NO_REVERSE
from tidu_cli.errors import MissingRuleError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Case, CaseTable, Document, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.types import INEXACT, TensorType, Type, leaves, real_dtype, storage_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.runtime.batches import evaluate_batch
from tidu_cli.runtime.plans.program import compile_graph, grouped_program, plain_program
from tidu_cli.transforms.batch import vectorized
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

Values = dict[Key, Any]

EPSILON = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}

ROUNDINGS = 2**12
"""In how many last places of its parts a sum may differ from another order of the same sum, condition of the program included."""

PLAIN = ELEMENTWISE | {"dot_general", "reduce_sum", "reduce_max", "reduce_min", "cumsum", "dynamic_slice", "dynamic_update_slice"}
"""What engines are held to units of; XLA compiles special functions and factorizations for many seconds."""


@cache
def cases() -> tuple[tuple[Case, ...], ...]:
    """The examples of all primitives in all dtypes; those in double precision, for difference quotients; and plain ones."""
    every = tuple(case for p in BUILTIN for _, case in example_cases(BUILTIN, p))
    double = tuple(c for c in every if not _dtypes(c) & (INEXACT - {"f64", "c128"}))
    return every, double, tuple(c for c in every if c.op in PLAIN)


@cache
def _by_operand(some: int) -> dict[Type, tuple[Case, ...]]:
    index: dict[Type, list[Case]] = defaultdict(list)
    for case in cases()[some]:
        for type_ in {t for t in case.operands if t is not None}:
            index[type_].append(case)
    return {type_: tuple(of_type) for type_, of_type in index.items()}


def _dtypes(case: Case) -> set[str]:
    return {leaf.dtype for t in (*case.operands, *case.results) if t is not None for _, leaf in leaves(t)}


def make(choices: Choices) -> bytes:
    """A document of any examples, or of those in double precision."""
    return program(choices, int(bool(choices.below(3))))


def program(choices: Choices, some: int) -> bytes:
    """A document of one graph of some of `cases()`, by number, whose nodes mostly read one another."""
    made: dict[Type, list[tuple[int, int]]] = defaultdict(list)  # of each type, (node, slot), or (-1, number) of an input
    inputs: list[Type] = []
    nodes: list[tuple[Case, list[tuple[int, int]]]] = []
    for node in range(1 + choices.below(8)):
        fitting = [c for t in list(made)[-3:] for c in _by_operand(some).get(t, ())]
        case = choices.pick(fitting if fitting and not choices.one_in(5) else cases()[some])
        operands = []
        for type_ in case.operands:
            assert type_ is not None
            if not made[type_] or choices.one_in(6):
                made[type_].append((-1, len(inputs)))
                inputs.append(type_)
            operands.append(choices.pick(made[type_][-3:]))
        nodes.append((case, operands))
        for slot, type_ in enumerate(case.results):
            made[type_] = [*made.pop(type_, []), (node, slot)]
    table = CaseTable()
    builder = GraphBuilder(table, [Input(Key(f"x{k}"), t) for k, t in enumerate(inputs)])
    first = {-1: 0}
    for node, (case, operands) in enumerate(nodes):
        first[node] = builder.append(table.intern(case), [first[n] + slot for n, slot in operands])
    read = {operand for _, operands in nodes for operand in operands}
    results = [(n, slot, t) for n, (case, _) in enumerate(nodes) for slot, t in enumerate(case.results)]
    ends = [r for r in results if r[:2] not in read] or results
    outputs = [Output(Key(f"y{k}"), first[n] + slot, t) for k, (n, slot, t) in enumerate(ends)]
    return format_document(Document((builder.build("f", outputs),), table), "json")


def judge(case: bytes) -> str:
    """Hold everything that is done with a program against the plain interpreter, and its derivative against its values."""
    document = parse_document(case, "f")[0]
    rng = np.random.default_rng(zlib.crc32(case))
    at = {i.key: drawn(i.type, rng) for i in document.head.inputs}
    with np.errstate(all="ignore"):
        in_every_form(document)
        by_every_engine(document, at)
        merged_alike(document, at, rng)
        in_batches(document, at, rng)
        wrt = [i.key for i in document.head.inputs if isinstance(i.type, TensorType) and i.type.inexact]
        if not wrt:
            return "agrees, without derivatives"
        derived = in_every_way(lambda: linearize(document, wrt))
        if isinstance(derived, str):
            return "agrees, without rules"
        turned = in_every_way(lambda: transpose(derived))
        assert not isinstance(turned, str) or NO_REVERSE in turned, f"a derivative without a transpose: {turned}"
        v = {i.key: random_value(i.type, rng) for i in derived.head.inputs}
        u = {o.key.dual(): random_value(o.type, rng) for o in derived.head.outputs if o.value is not None}
        for derivative, point in ((derived, at | v), (turned, at | u)):
            if isinstance(derivative, str):
                continue
            expected = evaluate(derivative, point)
            merged = in_every_way(lambda derivative=derivative: materialize(derivative))
            assert not isinstance(merged, str), f"materialize misses a rule: {merged}"
            assert same_bits(evaluate(merged, point), expected), "materialize changes a bit of a derivative"
            by_every_engine(merged, point, expected)
        zero = evaluate(derived, at | {i.key: zeros(i.type) for i in derived.head.inputs})
        pushed = evaluate(derived, at | v)
        if not all(
            np.isfinite(x).all() for y in (pushed, every_value_of(document, at)) for value in y.values() for x in parts(value)
        ):
            return "agrees, not finite"
        assert not any(np.any(x) for value in zero.values() for x in parts(value)), "a linear graph is not zero at zero"
        if not isinstance(turned, str):
            adjoint(document, derived, turned, at, v, u)
        return against_differences(document, at, {k: v[k.tangent(1)] for k in wrt}, pushed)


def drawn(type_: Type, rng: np.random.Generator) -> Any:
    """A value of a type: mostly numbers between 0 and 1, where most functions are defined."""
    value = random_value(type_, rng)
    if rng.integers(3) and isinstance(type_, TensorType) and type_.inexact:
        return np.asarray(np.abs(value.real) / 2 + 0.1 + (1j * value.imag if type_.complex else 0)).astype(value.dtype)
    return value


def parts(value: Any) -> list[Any]:
    """The arrays of a value."""
    if isinstance(value, tuple):
        return [x for part in value for x in parts(part)]
    return [] if value is None else [np.asarray(value)]


def every_value_of(document: Document, at: Values) -> Values:
    """All values of the head, by number."""
    return {Key(str(k)): value for k, value in enumerate(every_value(document, at)[-1])}


def in_every_form(document: Document) -> None:
    """JSON and msgpack, listed and packed, hold the same."""
    for format_ in ("json", "msgpack"):
        for listed in (True, False):
            again = parse_document(format_document(document, format_, listed=listed), "again")[0]
            assert described(again) == described(document), f"another document in {format_}, listed={listed}"


def in_every_way(derive: Callable[[], Document]) -> Document | str:
    """What a transform gives node by node and in bulk, which is the same; or what it says of a rule that is missing."""
    ways: list[Any] = []
    for n_nodes in (10**9, 1):
        with large_from(n_nodes):
            try:
                ways.append(derive())
            except MissingRuleError as error:
                require_message(error)
                ways.append(str(error))
    plain, bulk = ways
    if isinstance(plain, str):
        assert plain == bulk, "in bulk another failure"
        return plain
    assert format_document(bulk, "json") == format_document(plain, "json"), "in bulk another document"
    assert isinstance(plain, Document)
    return plain


def by_every_engine(document: Document, at: Values, expected: Values | None = None) -> None:
    """Programs step by step, in groups and as chosen give the bits of the interpreter."""
    expected = evaluate(document, at) if expected is None else expected
    for plan in (plain_program, compile_graph, grouped_program):
        program = plan(document.head)
        if program is not None:
            values = dict(zip((o.key for o in program.outputs), program.run(at), strict=True))
            assert same_bits(values, expected), f"{plan.__name__} gives other bits"


def merged_alike(document: Document, at: Values, rng: np.random.Generator) -> None:
    """A program that has each node twice gives the same bits, before materialize merges them and after."""
    graph = document.head
    builder = GraphBuilder(document.cases, graph.inputs)
    copies: list[tuple[int, ...]] = [(k,) for k in range(len(graph.inputs))]
    for node, code in enumerate(graph.code):
        firsts = [builder.append(code, [int(rng.choice(copies[a])) for a in graph.operands(node)]) for _ in range(2)]
        copies += [tuple(first + slot for first in firsts) for slot in range(len(graph.cases[code].results))]
    outputs = [Output(o.key, None if o.value is None else int(rng.choice(copies[o.value])), o.type) for o in graph.outputs]
    repeated = Document((builder.build(graph.name, outputs),), document.cases)
    expected = evaluate(document, at)
    for each in (repeated, materialize(repeated)):
        by_every_engine(each, at, expected)


def same_bits(one: Values, other: Values) -> bool:
    """Whether two evaluations gave the same, but for which NaN."""
    ours, expected = (bits([x for value in values.values() for x in parts(value)]) for values in (one, other))
    return ours == expected


def in_batches(document: Document, at: Values, rng: np.random.Generator) -> None:
    """A batch gives what its items give one by one, up to the order of sums."""
    keys = [i.key for i in document.head.inputs if isinstance(i.type, TensorType)]
    if not keys:
        return
    size, chosen = 3, keys[: 1 + int(rng.integers(len(keys)))]
    items = [
        at,
        *({**at, **{i.key: drawn(i.type, rng) for i in document.head.inputs if i.key in chosen}} for _ in range(size - 1)),
    ]
    together = {**at, **{k: np.stack([item[k] for item in items]) for k in chosen}}
    axes = dict.fromkeys(chosen, 0)
    try:
        batch, _ = evaluate_batch(document.head, _outward(document, together, axes), axes, vectorized)
    except MissingRuleError as error:
        require_message(error)
        return
    program, tolerance = plain_program(document.head), ROUNDINGS * _epsilon(document)
    alone = [program.run({i.key: item[i.key] for i in program.inputs}) for item in items]
    moved = [program.run({i.key: _nudged(i.type, item[i.key]) for i in program.inputs}) for item in items]
    for k, o in enumerate(document.head.outputs):
        if not isinstance(o.type, TensorType) or not o.type.inexact:
            continue
        one_by_one, nudged = np.stack([a[k] for a in alone]), np.stack([m[k] for m in moved])
        room = tolerance * (1 + np.abs(one_by_one)) + ROUNDINGS * np.abs(nudged - one_by_one)
        off = ~((np.abs(batch[o.key] - one_by_one) <= room) | (np.isnan(room) | np.isinf(room)))
        assert not off.any(), "a batch gives other values than its items"


def _outward(document: Document, values: Values, axes: dict[Key, int]) -> Values:
    """Values as users give them: datetimes as NumPy's."""
    types = {i.key: i.type for i in document.head.inputs}

    def given(type_: Type, x: Any) -> Any:
        if isinstance(type_, TensorType):
            return np.asarray(x).view(f"M8[{type_.dtype[9:-1]}]") if type_.dtype.startswith("datetime") else x
        fields = [given(t, part) for (_, t), part in zip(type_.fields, x, strict=True)]
        return tuple(fields) if type_.is_tuple else dict(zip(type_.names, fields, strict=True))

    return {k: given(types[k], x) for k, x in values.items()}


def _nudged(type_: Type, x: Any) -> Any:
    """A value moved by a last place or two: how far results move then says what rounding can do."""
    if isinstance(type_, TensorType) and type_.inexact:
        return (np.asarray(x) * (1 + 2 * EPSILON[real_dtype(storage_dtype(type_.dtype))])).astype(np.asarray(x).dtype)
    return x


def _epsilon(document: Document) -> float:
    used = {graph.cases[code] for graph in document.graphs for code in set(graph.code)}
    dtypes = {real_dtype(storage_dtype(d)) for case in used for d in _dtypes(case)}
    return max((EPSILON[d] for d in dtypes if d in EPSILON), default=EPSILON["f64"])


def adjoint(document: Document, derived: Document, turned: Document, at: Values, v: Values, u: Values) -> None:
    """<u, J v> = <J* u, v>, up to rounding and what rounding of the point does."""
    if not u:
        return
    types = {i.key: i.type for i in document.head.inputs}

    def both(at: Values) -> tuple[float, float, float]:
        pushed, pulled = evaluate(derived, at | v), evaluate(turned, at | u)
        forward = [inner(u[k.dual()], x) for k, x in pushed.items() if k.dual() in u]
        scale = sum(inner(tree(np.abs, u[k.dual()]), tree(np.abs, x)) for k, x in pushed.items() if k.dual() in u)
        backward = [inner(x, v[k.dual()]) for k, x in pulled.items()]
        return (
            sum(forward),
            sum(backward),
            scale + sum(inner(tree(np.abs, x), tree(np.abs, v[k.dual()])) for k, x in pulled.items()),
        )

    forward, backward, scale = both(at)
    moved = both({k: _nudged(types[k], x) for k, x in at.items()})
    room = ROUNDINGS * (_epsilon(derived) * scale + abs(moved[0] - forward) + abs(moved[1] - backward))
    assert np.isnan(room) or np.isinf(room) or abs(forward - backward) <= room, "the transpose is not the adjoint"


def against_differences(document: Document, at: Values, v: Values, pushed: Values) -> str:
    """The derivative lies where difference quotients say, if no kink can be near and they say it well enough."""
    used = {document.cases.cases[code] for code in set(document.head.code)}
    if any(not BUILTIN[c.op].rules.faithful or _dtypes(c) & (INEXACT - {"f64", "c128"}) for c in used):
        return "agrees, without difference quotients"
    decided = is_decided(document, at, v)
    if decided is None:
        return "agrees, near a kink"
    for o in document.head.outputs:
        if not isinstance(o.type, TensorType) or not o.type.inexact:
            continue
        middle, radius = difference_interval(lambda x, key=o.key: evaluate(document, x, [key])[key], at, v, decided)
        slope = np.asarray(pushed[o.key.tangent(1)])
        scale = np.abs(middle) + np.abs(slope)
        if not np.isfinite(radius).all() or (radius > 1e-4 * (1e-3 + scale)).any():
            return "agrees, quotients do not converge"
        rounding = ROUNDINGS * EPSILON["f64"]  # of tangents that cancel, where differences may be exactly 0
        assert (np.abs(slope - middle) <= radius + 1e-9 * scale + rounding).all(), "the derivative is not that of the values"
    return "agrees, with difference quotients"


PROGRAMS = Target("programs", ".json", make, judge)
