"""Recording a graph: nodes in the order of their emission, equal ones once, and in the end without those that are not needed.

The functions of loops and branches are recorded within the recording around them: while one of them is open, whatever is computed
is recorded there, and values of those around it that it reads become inputs of its graph.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain, count
from operator import itemgetter
from typing import Any, NoReturn, cast

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, Record, Traced, dtype_of, known
from tidu_cli.adapters.numpy.arrays.operands import Node, Repeats
from tidu_cli.adapters.numpy.arrays.storage import A_NUMBER, current, rooted
from tidu_cli.adapters.numpy.buffers.elements import LEAK, ElementTable, marked
from tidu_cli.adapters.numpy.buffers.memory import RUNNING, innermost_running, resolved
from tidu_cli.adapters.numpy.errors import BuildError, Sources
from tidu_cli.adapters.numpy.numpy.functions import PROTOCOLS
from tidu_cli.errors import UnknownNameError, did_you_mean
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import Case, CaseTable, Document, Graph, Input, Meta, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.open_sizes import has_open_size
from tidu_cli.graph.select import covered, is_pattern
from tidu_cli.graph.types import TIMES, RecordType, TensorType, Type, itemsize, storage_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.limits import more_than
from tidu_cli.rules.vocabulary import PrimitiveSet

MAX_NODES = 10_000_000
"""A function that emits more nodes than this is taken to run in circles. Formulas have a limit (`tidu_cli.limits`)."""

LARGE = 64
"""Constants of more bytes that the function of a loop or branch closes over stand outside of it, so that its graph stays small."""

FOREIGN = (
    "an array of another trace was used; traces cannot be mixed or nested, and what the function of a loop or branch computes is "
    "known outside of it only if it is returned"
)


@contextmanager
def running(recorder: Recorder | None) -> Iterator[None]:
    """Within the block this recording runs: loops and branches without traced arguments may be of values that it has."""
    token = RUNNING.set(recorder)
    try:
        with sizes_of(recorder):
            yield
    finally:
        RUNNING.reset(token)


def sizes_of(recorder: Recorder | None) -> AbstractContextManager[None]:
    """Within the block, open sizes of its inputs are numbers of this recording where arithmetic needs them."""
    if recorder is None or not any(has_open_size(i.type) for i in recorder.inputs):
        return nullcontext()
    from tidu_cli.adapters.numpy.arrays.sizes import sizes_as_numbers  # which most graphs do without

    return sizes_as_numbers(recorder)


def innermost() -> Recorder | None:
    """The innermost recording that runs."""
    return cast("Recorder | None", innermost_running())


class Recorder:
    """A recording in progress, alone or `within` another one. Inputs are declared before the first node.

    `open` are the recordings in one another that are going on, the innermost last. `taken` has the values of the one around this
    that it reads, by their numbers: the number of the input that stands for it, and its type. `reads_traced` says whether there are
    such values but for constants. `meta` is that of nodes, by the number of one of their results.
    `sources` say where they arise, if that is asked for. Constants that are `LARGE` stand outside unless it `keeps_constants`.
    """

    numpy = PROTOCOLS

    def __init__(self, primitives: PrimitiveSet = BUILTIN, most: int | None = None, within: Recorder | None = None) -> None:
        self.primitives = primitives
        self._most = most
        self.open: list[Recorder] = within.open if within is not None else [self]
        self.around = list(within.open) if within is not None else []
        self.elements: ElementTable = within.elements if within is not None else ElementTable()
        self.taken: dict[int, tuple[int, Type]] = {}
        self.reads_traced = False
        self.cases = CaseTable()
        self.inputs: list[Input] = []
        self._declared: set[Key] = set()
        self._nodes: list[tuple[int, tuple[int, ...], int]] = []
        self._n_values = 0
        self._known: dict[tuple[int, tuple[int, ...]], int] = {}
        self._codes: dict[object, int] = {}
        self._scalars: dict[tuple[str, bytes], Array] = {}
        self._large: set[int] = set()
        self.meta: dict[int, Meta] = {}
        self._repeats = Repeats(self)
        self._numbers: dict[Any, Array] = {}
        self.sources: Sources | None = within.sources if within is not None else None
        self.keeps_constants = False

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Within the block, what is computed is recorded here, and not in the recording around it."""
        assert self.open == self.around
        self.open.append(self)
        try:
            yield
        finally:
            self.open.pop()

    def input(self, key: Key, type_: Type) -> Array | Record:
        """Declare an input. Raises BuildError for a key that is declared already."""
        assert not self._nodes
        if key in self._declared:
            raise BuildError(f"input '{key}' is declared twice")
        self._declared.add(key)
        self.inputs.append(Input(key, type_))
        self._n_values += 1
        return self.an_input(self._traced(self._n_values - 1, type_))

    def argument(self, name: str, type_: TensorType) -> Array:
        """Declare an input for code that changes no array in place."""
        x = self.input(Key(name), type_)
        assert isinstance(x, Array)
        x.share = None
        return x

    def an_input(self, x: Array | Record) -> Array | Record:
        """An input, or a field of one. Without axes it may be a number or an array: NumPy's functions take both."""
        if isinstance(x, Array) and not x.type.rank:
            rooted(x, doubt=A_NUMBER)
        return x

    def _traced(self, value: int, type_: Type) -> Array | Record:
        if isinstance(type_, RecordType):
            return Record(Traced(self, value, type_))
        return Array(self, value, type_)

    def emit(self, op: str, *operands: Array | Traced, **attrs: object) -> Array:
        """The first result of a node. Raises TypeRuleError for what the primitive does not take."""
        return self.open[-1]._record(op, operands, attrs)[0]

    def emit_all(self, op: str, operands: Sequence[Array | Traced], **attrs: object) -> tuple[Array, ...]:
        """All results of a node; those of the node recorded before, if it is the same."""
        return self.open[-1]._record(op, operands, attrs)

    def inlined(self, graph: Graph, operands: Sequence[Array | Traced | None]) -> list[Array]:
        """The outputs of a self-contained graph, whose nodes are recorded here, of these operands for its inputs.

        None stands for what no node reads.
        """
        here = self.open[-1]
        values = [-1 if x is None else here.value_of(x) for x in operands]
        for node in range(graph.n_nodes):
            case = graph.case(node)
            code = here.cases.intern(replace(case, mask=None))
            first = here.node(code, tuple([values[x] for x in graph.operands(node)]), len(case.results))
            values += range(first, first + len(case.results))
        return [
            cast("Array", here._traced(values[o.value], o.type)) if o.value is not None else here._zeros(o.type)
            for o in graph.outputs
        ]

    def _zeros(self, type_: Type) -> Array:
        assert isinstance(type_, TensorType)
        return self._constant(np.zeros((), dtype_of(type_.dtype))).broadcast(type_.shape)

    def field(self, record: Traced, name: str) -> Array | Record:
        """A field of a record of this recording, which is recorded where the record is: it may be taken again elsewhere."""
        return self.an_input(self._record("field", (record,), {"name": name})[0])

    def _record(self, op: str, operands: Sequence[Array | Traced], attrs: dict[str, object]) -> tuple[Array, ...]:
        values = tuple([x.value if x.recorder is self and x.share is None else self.value_of(x) for x in operands])
        code = self._code(op, attrs, tuple([x.type for x in operands]))
        results = self.cases[code].results
        first = self.node(code, values, len(results))
        # Arrays of their own, as they may be changed in place.
        return cast("tuple[Array, ...]", tuple([self._traced(first + k, type_) for k, type_ in enumerate(results)]))

    def node(self, code: int, operands: tuple[int, ...], n_results: int) -> int:
        """The first result of a node; of that recorded before, if it is the same."""
        identity = code, operands
        first = self._known.get(identity)
        if first is None:
            if len(self._nodes) >= (self._most or MAX_NODES):
                self._refuse_more()
            first = self._known[identity] = self._n_values
            self._n_values += n_results
            self._nodes.append((code, operands, first))
            if self.sources is not None:
                self.meta[first] = {"source": self.sources.now()}
        return first

    def made_by(self, value: int) -> tuple[Case, Sequence[int]] | None:
        """The case of the node whose first result a value is, and what it reads; None of others."""
        at = bisect_left(self._nodes, value, key=itemgetter(2))
        code, operands, first = self._nodes[at] if at < len(self._nodes) else (0, (), -1)
        return (self.cases[code], operands) if first == value else None

    @property
    def repeats(self) -> Repeats:
        """The calls that were recorded where values are computed now."""
        return self.open[-1]._repeats

    @property
    def numbers(self) -> dict[Any, Array]:
        """Constants by a number of Python's and a dtype, where values are computed now."""
        return self.open[-1]._numbers

    def placeholder(self, type_: TensorType) -> Array:
        """A value that nothing gives."""
        self._n_values += 1
        return Array(self, self._n_values - 1, type_)

    def recorded(self, function: Callable[..., Any], operands: Sequence[Array]) -> tuple[Any, list[Node]]:
        """What a function gives for these operands, and the nodes that were new."""
        before = len(self._nodes)
        result = function(*operands)
        return result, [(*node, self.cases.n_results[node[0]]) for node in self._nodes[before:]]

    def value_of(self, x: Array | Traced) -> int:
        """The number of a value here: one of a recording around this is taken in. Raises BuildError for those of others."""
        if x.recorder is not self and x.recorder not in self.around:
            raise BuildError(FOREIGN)
        if x.share is not None:
            current(x)
        if x.recorder is self:
            return x.value
        owner: Recorder = x.recorder
        outer = self.around[-1].value_of(x)
        self.reads_traced = self.reads_traced or x.value not in owner._large
        if outer not in self.taken:
            self.taken[outer] = self._n_values, x.type
            self._n_values += 1
        return self.taken[outer][0]

    def require_room(self, n: int) -> None:
        """Raises BuildError if n more nodes would exceed the limit, so that work which is in vain is not begun."""
        if len(self._nodes) + n > (self._most or MAX_NODES):
            self._refuse_more()

    def _refuse_more(self) -> NoReturn:
        if self._most:
            told = more_than("expansion", self._most, "write it with whole arrays, or ")
            raise BuildError(f"stands for {self._most + 1:,} nodes at least, {told}")
        raise BuildError(f"more than {MAX_NODES:,} nodes")

    def constant(self, value: Any) -> Array:
        """A NumPy array or scalar as a constant node; where all elements are the same, one of them is broadcast."""
        value = resolved(value)
        return value if isinstance(value, Array) else self.open[-1]._constant(np.asarray(value))

    def _constant(self, array: Any) -> Array:
        dtype = known(array.dtype)
        if not array.ndim:
            scalar = dtype, array.tobytes()
            constant = self._scalars.get(scalar)
            if constant is not None:
                return constant
        if self.elements.arrays and marked(array):
            raise BuildError(LEAK)
        if array.size > 1 and not any(array.strides):  # one number, of which nobody shall make as many
            return self._constant(array[(0,) * array.ndim]).broadcast(array.shape)
        if dtype in TIMES:
            array = _held(array, dtype)
        little = array.astype(array.dtype.newbyteorder("<"), copy=False) if dtype != "bf16" else array
        data = little.tobytes()
        size = itemsize(dtype)
        if array.size > 1 and data == data[:size] * array.size:
            return self.emit("constant", value=Literal(TensorType(dtype), data[:size])).broadcast(array.shape)
        outermost = self.open[0] if len(data) > LARGE and not self.keeps_constants else self
        constant = outermost._record("constant", (), {"value": Literal(TensorType(dtype, array.shape), data)})[0]
        if outermost is not self:
            outermost._large.add(constant.value)
            constant = Array(self, self.value_of(constant), constant.type)
        if not array.ndim:
            self._scalars[scalar] = constant
        return constant

    def document(self, name: str, outputs: Mapping[str, Array]) -> Document:
        """A document of one graph: all inputs, and the nodes that the outputs depend on."""
        graph = self.graph(name, self.inputs, range(len(self.inputs)), [(key, x.value, x.type) for key, x in outputs.items()])
        return Document((graph,), graph.cases)

    def graph(
        self,
        name: str,
        inputs: Sequence[Input],
        values: Iterable[int | None],
        outputs: Sequence[tuple[str | Key, int, Type]],
        meta: Meta = None,
    ) -> Graph:
        """The graph of these outputs: of each its key, value and type. `values` are those that the inputs stand for, if any."""
        needed, node_meta = self.needed(outputs), dict[int, Meta]()
        cases = CaseTable(self.primitives if self.primitives.definitions else None)
        builder = GraphBuilder(cases, inputs)
        new_id = [-1] * self._n_values
        for k, value in enumerate(values):
            if value is not None:
                new_id[value] = k
        codes = dict[int, int]()
        for code, operands, first in self._nodes:
            n_results = self.cases.n_results[code]
            if 1 in needed[first : first + n_results]:
                if code not in codes:
                    codes[code] = cases.intern(self.cases[code])
                at = builder.append(codes[code], [new_id[x] for x in operands])
                new_id[first : first + n_results] = range(at, at + n_results)
                told = next((self.meta[v] for v in range(first, first + n_results) if v in self.meta), None)
                if told is not None:
                    node_meta[len(builder.code) - 1] = told
        graph_outputs = [Output(key if isinstance(key, Key) else Key(key), new_id[value], type_) for key, value, type_ in outputs]
        return builder.build(name, graph_outputs, meta=meta, node_meta=node_meta)

    def needed(self, outputs: Iterable[tuple[str | Key, int, Type]]) -> bytearray:
        """Of each value whether outputs depend on it."""
        needed = bytearray(self._n_values)
        for _, value, _ in outputs:
            needed[value] = 1
        for code, operands, first in reversed(self._nodes):
            if 1 in needed[first : first + self.cases.n_results[code]]:
                for operand in operands:
                    needed[operand] = 1
        return needed

    def closed(
        self, outside: Sequence[tuple[int, Type]], own: Sequence[int], outputs: Sequence[tuple[str, int, Type]]
    ) -> ClosedGraph:
        """The graph of outputs as one that reads nothing but its inputs: values of the recording around this, then `own` ones."""
        inputs = [self.inputs[k] for k in own]
        names = distinct([*[self.around[-1].name_of(v) for v, _ in outside], *[i.key.name for i in inputs]])
        types = [*[t for _, t in outside], *[i.type for i in inputs]]
        values = [*[self.taken[v][0] if v in self.taken else None for v, _ in outside], *own]
        given = [Input(Key(name), t) for name, t in zip(names, types, strict=True)]
        return ClosedGraph.of(self.graph("", given, values, outputs))

    def name_of(self, value: int) -> str:
        """What a value is called within loops and branches that read it: as the input that it is, else c."""
        if value < len(self.inputs):
            return self.inputs[value].key.name
        outer = next((v for v, (inner, _) in self.taken.items() if inner == value), None)
        return "c" if outer is None else self.around[-1].name_of(outer)

    def _code(self, op: str, attrs: dict[str, object], types: tuple[Type, ...]) -> int:
        # Numbers that are equal but of another kind (1, True) make other attrs, so their kinds are part of what is looked up.
        identity = (op, types, *((k, v, type(v)) for k, v in attrs.items()))
        code = self._codes.get(identity)
        if code is None:
            case = self.primitives.case(op, self.primitives.parse_attrs(op, attrs), None, types)
            code = self._codes[identity] = self.cases.intern(case)
        return code


def _held(array: Any, dtype: str) -> Any:
    """An array of times as the numbers that hold them. Raises BuildError for NaT."""
    if np.isnat(array).any():
        raise BuildError(f"a constant of {dtype} holds NaT, which is not a time, and no arithmetic would keep it apart from times")
    return array.astype(np.int64).astype(dtype_of(storage_dtype(dtype)))


def distinct(names: Sequence[str]) -> list[str]:
    """Names, the later ones of equals with a number: c, c.2, c.3."""
    unique: dict[str, None] = {}
    for name in names:
        unique[next(n for n in chain((name,), (f"{name}.{k}" for k in count(2))) if n not in unique)] = None
    return list(unique)


def chosen(arrays: Mapping[str, Array], outputs: Sequence[str], whose: str) -> Mapping[str, Array]:
    """The outputs of these keys, which may be patterns, all if there are none. Raises UnknownNameError."""
    keys: list[str] = []
    for key in outputs:
        several = [key] if key in arrays else covered(key, arrays)
        if not several:
            raise UnknownNameError(f"{whose} has no output '{key}'{did_you_mean(key, list(arrays))} (outputs: {', '.join(arrays)})")
        keys += several
    return {key: arrays[key] for key in keys} if outputs else arrays


def default_output(inputs: Collection[str], outputs: Sequence[str] = ()) -> str:
    """What an output is called that has no name: as `outputs` says if that is one name, and no pattern.

    Else it is y, or where an input has that name out, or else out.2, ...
    """
    if len(outputs) == 1 and not is_pattern(outputs[0]):
        return outputs[0]
    names = chain(("y", "out"), (f"out.{k}" for k in count(2)))
    return next(name for name in names if name not in inputs)
