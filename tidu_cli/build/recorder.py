"""Recording a graph: nodes in the order of their emission, equal ones once, and in the end without those that are not needed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, count
from typing import Any, NoReturn, cast

import numpy as np

from tidu_cli.build.arrays.aliasing import require_current
from tidu_cli.build.arrays.array import Array, Record, Share, Traced, name_of
from tidu_cli.build.errors import BuildError
from tidu_cli.build.numpy.functions import PROTOCOLS
from tidu_cli.errors import UnknownNameError, did_you_mean
from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.graph import CaseTable, Document, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.types import ITEMSIZE, TIMES, RecordType, TensorType, Type, unit_of
from tidu_cli.lax.builtin import BUILTIN
from tidu_cli.limits import more_than
from tidu_cli.rules.vocabulary import PrimitiveSet

MAX_NODES = 10_000_000
"""A function that emits more nodes than this is taken to run in circles. Formulas have a limit (`tidu_cli.limits`)."""


class Recorder:
    """A recording in progress. Inputs are declared before the first node."""

    numpy = PROTOCOLS

    def __init__(self, primitives: PrimitiveSet = BUILTIN, most: int | None = None) -> None:
        self.primitives = primitives
        self._most = most
        self.cases = CaseTable()
        self.inputs: list[Input] = []
        self._declared: set[Key] = set()
        self._nodes: list[tuple[int, tuple[int, ...], int]] = []
        self._n_values = 0
        self._known: dict[tuple[int, tuple[int, ...]], int] = {}
        self._codes: dict[object, int] = {}
        self._scalars: dict[tuple[str, bytes], Array] = {}

    def input(self, key: Key, type_: Type) -> Array | Record:
        """Declare an input. Raises BuildError for a key that is declared already, and for times."""
        assert not self._nodes
        if key in self._declared:
            raise BuildError(f"input '{key}' is declared twice")
        self._declared.add(key)
        self.inputs.append(Input(key, type_))
        self._n_values += 1
        return self.an_input(self._traced(self._n_values - 1, type_))

    def an_input(self, x: Array | Record) -> Array | Record:
        """An input, or a field of one. Without axes it may be a number or an array: NumPy's functions take both."""
        if isinstance(x, Array) and not x.type.rank:
            x.share = Share()
        return x

    def _traced(self, value: int, type_: Type) -> Array | Record:
        if isinstance(type_, RecordType):
            return Record(Traced(self, value, type_))
        if type_.dtype in TIMES:
            raise BuildError(
                f"a value of type {type_}: what is built computes with numbers; declare its count of {unit_of(type_.dtype)}, as f64"
            )
        return Array(self, value, type_)

    def emit(self, op: str, *operands: Array | Traced, **attrs: object) -> Array:
        """The first result of a node. Raises TypeRuleError for what the primitive does not take."""
        return self.emit_all(op, operands, **attrs)[0]

    def emit_all(self, op: str, operands: Sequence[Array | Traced], **attrs: object) -> tuple[Array, ...]:
        """All results of a node; those of the node recorded before, if it is the same."""
        for x in operands:
            if x.recorder is not self:
                raise BuildError("an array of another trace was used; traces cannot be mixed or nested")
            if x.share is not None:
                require_current(x)
        code = self._code(op, attrs, tuple([x.type for x in operands]))
        identity = code, tuple([x.value for x in operands])
        first, results = self._known.get(identity), self.cases[code].results
        if first is None:
            if len(self._nodes) >= (self._most or MAX_NODES):
                self._refuse_more()
            first = self._known[identity] = self._n_values
            self._n_values += len(results)
            self._nodes.append((code, identity[1], first))
        # Arrays of their own, as they may be changed in place.
        return cast("tuple[Array, ...]", tuple([self._traced(first + k, type_) for k, type_ in enumerate(results)]))

    def _refuse_more(self) -> NoReturn:
        if self._most:
            told = more_than("expansion", self._most, "write it with whole arrays, or ")
            raise BuildError(f"stands for {self._most + 1:,} nodes at least, {told}")
        raise BuildError(f"more than {MAX_NODES:,} nodes")

    def constant(self, value: Any) -> Array:
        """A NumPy array or scalar as a constant node; where all elements are the same, one of them is broadcast."""
        array = np.asarray(value)
        dtype = name_of(array.dtype)
        if not array.ndim:
            scalar = dtype, array.tobytes()
            known = self._scalars.get(scalar)
            if known is not None:
                return known
        if dtype not in ITEMSIZE:
            raise BuildError(f"a constant of NumPy dtype {array.dtype} has no place in a graph (dtypes: {', '.join(ITEMSIZE)})")
        little = array.astype(array.dtype.newbyteorder("<"), copy=False) if dtype != "bf16" else array
        data = little.tobytes()
        size = ITEMSIZE[dtype]
        if array.size > 1 and data == data[:size] * array.size:
            return self.emit("constant", value=Literal(TensorType(dtype), data[:size])).broadcast(array.shape)
        found = self.emit("constant", value=Literal(TensorType(dtype, array.shape), data))
        if not array.ndim:
            self._scalars[scalar] = found
        return found

    def document(self, name: str, outputs: Mapping[str, Array]) -> Document:
        """A document of one graph: all inputs, and the nodes that the outputs depend on."""
        needed = bytearray(self._n_values)
        for output in outputs.values():
            needed[output.value] = 1
        alive = []
        for code, operands, first in reversed(self._nodes):
            if 1 in needed[first : first + self.cases.n_results[code]]:
                alive.append((code, operands, first))
                for operand in operands:
                    needed[operand] = 1
        cases = CaseTable()
        builder = GraphBuilder(cases, self.inputs)
        new_id = list(range(self._n_values))
        for code, operands, first in reversed(alive):
            at = builder.append(cases.intern(self.cases[code]), [new_id[x] for x in operands])
            for k in range(self.cases.n_results[code]):
                new_id[first + k] = at + k
        declared = [Output(Key(key), new_id[x.value], x.type) for key, x in outputs.items()]
        return Document((builder.build(name, declared),), cases)

    def _code(self, op: str, attrs: dict[str, object], types: tuple[Type, ...]) -> int:
        # Numbers that are equal but of another kind (1, True) make other attrs, so their kinds are part of what is looked up.
        identity = (op, types, *((k, v, type(v)) for k, v in attrs.items()))
        code = self._codes.get(identity)
        if code is None:
            case = self.primitives.case(op, self.primitives.parse_attrs(op, attrs), None, types)
            code = self._codes[identity] = self.cases.intern(case)
        return code


def chosen(found: Mapping[str, Array], outputs: Sequence[str], whose: str) -> Mapping[str, Array]:
    """The outputs of these keys, all if there are none. Raises UnknownNameError."""
    for key in outputs:
        if key not in found:
            raise UnknownNameError(f"{whose} has no output '{key}'{did_you_mean(key, list(found))} (outputs: {', '.join(found)})")
    return {key: found[key] for key in outputs} if outputs else found


def default_output(inputs: Collection[str]) -> str:
    """What an output is called where nobody says: y, or where an input has that name out, or else out.2, ..."""
    names = chain(("y", "out"), (f"out.{k}" for k in count(2)))
    name: str = next(name for name in names if name not in inputs)
    return name
