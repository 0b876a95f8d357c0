"""What a lowering sees of a node: how one of tidu's primitives is written with operators of ONNX."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import dtype_of, name_of
from tidu_cli.adapters.onnx.contents import nodes_within
from tidu_cli.adapters.onnx.loading import DTYPES, declared_shape, package
from tidu_cli.errors import DocumentError, MissingRuleError, Remedy
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.closed import ClosedGraph, forwards
from tidu_cli.graph.graph import Case, CaseTable
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import INTEGERS, RecordType, TensorType, Type
from tidu_cli.rules.recording.trace import Trace
from tidu_cli.rules.terms import Term
from tidu_cli.rules.vocabulary import PrimitiveSet

CODES = {name: code for code, name in DTYPES.items()}
"""The codes of element types by the names of dtypes."""

_GRAPHS = frozenset({"body", "then_branch", "else_branch"})
"""The attributes that are graphs, whose nodes read names, too."""

_REMOVED = {"Identity": None, "Cast": None, "Expand": None, "Slice": None, "Add": 0, "Mul": 1, "Sub": 0, "Div": 1}
"""Operators whose nodes onnxruntime removes where they change nothing: in arithmetic, by the number that does so.

It warns where graphs within nodes read both the operand and the result of such a node, of the first four whatever they change."""

MOST_LEVELS = 31
"""How deep graphs may stand within nodes of graphs: protobuf reads 100 messages within one another, three a graph, and types."""


class NoMeaningError(DocumentError):
    """A node that has no meaning in ONNX."""


class Wanted(NamedTuple):
    """Sizes that a model reads: as a vector, or one as a number of a dtype."""

    sizes: tuple[Any, ...]
    is_vector: bool = True
    dtype: str = "i64"


class Body:
    """Nodes in order, and the constants that they read by name. Names are made here, with a prefix."""

    def __init__(
        self,
        opset: int,
        prefix: str = "",
        numbers: Iterator[int] | None = None,
        level: int = 0,
        measured: Callable[[Wanted], str] | None = None,
    ) -> None:
        self.opset = opset
        self.wanted: dict[Wanted, str] = {}
        """The open sizes that nodes read, by the names that stand for them until it is known what computes them."""
        self.measured = measured or self._placeholder
        self.level = level
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        self.around: Body | None = None
        """Where nodes go that read nothing of this body: what is the same in all steps of a loop is computed once."""
        self._own: set[str] = set()
        """The names that come in, and those of nodes' results."""
        self.sources: dict[str, set[str]] = {}
        """By results of nodes that onnxruntime may remove: the names that they are computed from."""
        self.fixed: dict[str, Any] = {}
        """Constants, also in another shape or dtype, by name; None for inputs of the model."""
        self._prefix = prefix
        self.numbers = numbers or count()
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def name(self) -> str:
        """A new name."""
        return f"{self._prefix}{next(self.numbers)}"

    def emit(self, op_type: str, *inputs: str, **attrs: Any) -> str:
        """A node of one output. Attributes that are None are left out."""
        return self.emit_all(op_type, inputs, 1, **attrs)[0]

    def emit_all(self, op_type: str, inputs: Sequence[str], n: int, **attrs: Any) -> list[str]:
        """A node of n outputs."""
        given = {k: v for k, v in attrs.items() if v is not None}
        for k, size in ((k, n) for k, v in given.items() for n in (v if isinstance(v, list) else [v]) if isinstance(n, OpenSize)):
            from tidu_cli.graph.sizes.algebra import undecided

            raise undecided(f"{op_type} of ONNX takes numbers as {k}, and here one is the size {size}", size)
        if self.around is not None and self._own.isdisjoint(inputs) and _GRAPHS.isdisjoint(given):
            return self.around.emit_all(op_type, inputs, n, **given)
        outputs = [self.name() for _ in range(n)]
        self._own.update(outputs)
        node = package().helper.make_node(op_type, list(inputs), outputs, **given)
        if self.sources and not _GRAPHS.isdisjoint(given):
            within = [*nodes_within([node])][1:]
            apart = self.apart(x for inner in within for x in inner.input)
            for inner in within if apart else ():
                inner.input[:] = [apart.get(x, x) for x in inner.input]
        self.nodes.append(node)
        self.note(op_type, inputs, outputs)
        return outputs

    def note(self, op_type: str, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Remember what a node reads if onnxruntime may remove it."""
        fixed = [self.fixed.get(x) for x in inputs]
        if op_type in ("Cast", "Expand", "Reshape") and all(n is not None for n in fixed):
            self.fixed[outputs[0]] = fixed[0]
        neutral, others = _REMOVED.get(op_type), fixed[op_type in ("Sub", "Div") :]
        if op_type in _REMOVED and (neutral is None or any(n is not None and n.size == 1 and n == neutral for n in others)):
            of = {x for x in inputs if x and (len(inputs) == 1 or x not in self.fixed)}
            before = [self.sources.get(x, ()) for x in of]
            self.sources[outputs[0]] = of.union(*before) if sum(map(len, before)) < 16 else of  # those of chains would be long

    def apart(self, read: Iterable[str]) -> dict[str, str]:
        """Copies of what graphs within nodes would read together with its operand, by nodes that onnxruntime does not remove."""
        names = sorted({*read})
        beside = [x for x in names if not self.sources.get(x, set()).isdisjoint(names)]
        return {x: self.emit("Reshape", x, self.emit("Shape", x)) for x in beside}

    def constant(self, value: Any, dtype: str | None = None) -> str:
        """A constant array, one for equal ones; or an open size as a number, which nodes compute."""
        if isinstance(value, OpenSize):
            return self.measured(Wanted((value,), False, dtype or "i64"))
        if self.around is not None:
            return self.around.constant(value, dtype)
        array = np.asarray(value) if dtype is None else np.asarray(value).astype(dtype_of(dtype))
        key = name_of(array.dtype), array.shape, array.tobytes()
        if key not in self._known:
            name = self._known[key] = self.name()
            self.constants[name] = self.fixed[name] = array
        return self._known[key]

    def ints(self, numbers: Sequence[int]) -> str:
        """Numbers as an array of i64, as shapes and axes are given; open sizes are computed when the model runs."""
        if any(isinstance(n, OpenSize) for n in numbers):
            return self.measured(Wanted(tuple(numbers)))
        return self.constant(np.array(numbers, np.int64))

    def _placeholder(self, wanted: Wanted) -> str:
        if wanted not in self.wanted:
            self.wanted[wanted] = self.name()
        return self.wanted[wanted]

    def copied(self, name: str, copy: str = "") -> str:
        """A copy in this body, with this name or a new one, of a value of this body or one around it."""
        copy = copy or self.name()
        self.nodes.append(package().helper.make_node("Identity", [name], [copy]))
        return copy

    def subgraph(self, inputs: Sequence[Type], write: Callable[..., Sequence[tuple[str, Type]]], *, in_steps: bool = False) -> Any:
        """A graph within a node, of inputs of these types. `write` takes its body and the names of inputs, and returns outputs.

        It may read names of this body. Where it runs `in_steps`, at least once, nodes that do not depend on the step go here.
        """
        if self.level == MOST_LEVELS:
            problem = f"graphs within graphs nest deeper than {MOST_LEVELS} levels, the most that programs read of a file of ONNX"
            raise NoMeaningError(f"{problem}; write it with ", Remedy("format", "msgpack"))
        inner = Body(self.opset, self._prefix, self.numbers, self.level + 1, self.measured)
        names = [inner.name() for _ in inputs]
        inner._own.update(names)
        inner.around, inner.fixed = self if in_steps else None, self.fixed
        outputs: list[tuple[str, Type]] = []
        written = write(inner, *names)
        own = inner._own - {*names}
        for name, type_ in written:  # one value may be several outputs, or come in
            outputs.append((name if name in own else inner.copied(name), type_))
            own.discard(name)
        helper = package().helper
        return helper.make_graph(
            [*constant_nodes(inner.constants), *inner.nodes],
            inner.name(),
            [value_info(n, t) for n, t in zip(names, inputs, strict=True)],
            [value_info(n, t) for n, t in outputs],
        )


def tensor_type(type_: Type | None) -> TensorType:
    """An array's type. Raises NoMeaningError for records, complex numbers and times, and for None, of a detached operand."""
    if type_ is None:
        raise NoMeaningError("an operand is detached, so its value is not in the document; resolve the document first")
    if isinstance(type_, TensorType) and type_.dtype in CODES and not type_.complex:
        return type_
    way = f"it with {Remedy('format', 'msgpack')}"
    if isinstance(type_, RecordType):
        raise NoMeaningError(f"a record, {type_}, has no place in ONNX; take its fields apart, or write {way}")
    if type_.complex:
        raise NoMeaningError(
            f"{type_} is complex, which operators of ONNX are not; compute with real and imaginary parts, or write {way}"
        )
    raise NoMeaningError(f"{type_} has no place in ONNX, which knows no times; write {way}")


def value_info(name: str, type_: Type) -> Any:
    """The declaration of an input or output."""
    array = tensor_type(type_)
    return package().helper.make_tensor_value_info(name, CODES[array.dtype], declared_shape(array.shape))


def tensor(name: str, array: Any) -> Any:
    """A TensorProto of an array."""
    proto = package().TensorProto(name=name, data_type=CODES[name_of(array.dtype)], dims=array.shape)
    little = array if array.dtype.name == "bfloat16" else array.astype(array.dtype.newbyteorder("<"), copy=False)
    proto.raw_data = np.ascontiguousarray(little).tobytes()
    return proto


def constant_nodes(constants: dict[str, Any]) -> list[Any]:
    """Constants as nodes, for functions, which have no initializers."""
    helper = package().helper
    return [helper.make_node("Constant", [], [name], value=tensor(name, array)) for name, array in constants.items()]


def least(dtype: str) -> Any:
    """The least number of a dtype."""
    return np.iinfo(dtype_of(dtype)).min if dtype in INTEGERS else False if dtype == "bool" else -math.inf


def greatest(dtype: str) -> Any:
    """The greatest number of a dtype."""
    return np.iinfo(dtype_of(dtype)).max if dtype in INTEGERS else True if dtype == "bool" else math.inf


WIDE_INTEGERS = {"i8": "i32", "i16": "i32", "u8": "i32", "u16": "i32", "u32": "i64", "u64": "i64"}
"""Integers in which sums and products are the same but for the high bits, and which runtimes have kernels for."""

Rule = Callable[..., "str | Sequence[str]"]
"""From a Lowering and the names of the operands to that of the result, or those of several."""


class Lowering(Frozen, slots=False):
    """A case of nodes that is written into a body."""

    body: Body
    case: Case
    rules: Mapping[str, Rule]
    primitives: PrimitiveSet

    @property
    def attrs(self) -> Any:
        """The attrs of the case."""
        return self.case.attrs

    @cached_property
    def operands(self) -> list[TensorType]:
        """The operands' types. Raises NoMeaningError for those that are not arrays of ONNX."""
        return [tensor_type(t) for t in self.case.operands]

    @cached_property
    def results(self) -> list[TensorType]:
        """The results' types. Raises likewise."""
        return [tensor_type(t) for t in self.case.results]

    @property
    def operand(self) -> TensorType:
        """The type of the first operand."""
        return self.operands[0]

    @property
    def result(self) -> TensorType:
        """The type of the first result."""
        return self.results[0]

    def emit(self, op_type: str, *inputs: str, **attrs: Any) -> str:
        """A node of one output."""
        return self.body.emit(op_type, *inputs, **attrs)

    def emit_all(self, op_type: str, inputs: Sequence[str], n: int, **attrs: Any) -> list[str]:
        """A node of n outputs."""
        return self.body.emit_all(op_type, inputs, n, **attrs)

    def ints(self, numbers: Sequence[int]) -> str:
        """Numbers as an array of i64."""
        return self.body.ints(numbers)

    def number(self, value: Any, dtype: str | None = None) -> str:
        """A scalar constant, by default in the dtype of operand 0."""
        return self.body.constant(value, dtype or self.operand.dtype)

    def counted(self, n: int, shape: Sequence[int], step: int = 1) -> str:
        """0, 1, 2, ... times a step, as i64 in a shape of which one size, n, is -1."""
        if not isinstance(n, OpenSize) and not isinstance(step, OpenSize):
            return self.body.constant((np.arange(n) * step).reshape(shape), "i64")
        numbers = self.emit("Range", *[self.number(k, "i64") for k in (0, n, 1)])
        if step != 1:
            numbers = self.emit("Mul", numbers, self.ints([step]))
        return self.reshape(numbers, shape)

    def filled(self, value: Any, type_: TensorType) -> str:
        """An array of one value."""
        return self.emit("Expand", self.number(value, type_.dtype), self.ints(type_.shape))

    def reshape(self, x: str, shape: Sequence[int]) -> str:
        """x in another shape. One open size follows from the others."""
        places = [k for k, n in enumerate(shape) if isinstance(n, OpenSize)]
        if len(places) == 1 and 0 not in shape and -1 not in shape:
            shape = [-1 if k == places[0] else n for k, n in enumerate(shape)]
        return self.emit("Reshape", x, self.ints(shape), allowzero=1 if 0 in shape else None)

    def transpose(self, x: str, permutation: Sequence[int]) -> str:
        """x with its axes in another order."""
        axes = list(permutation)
        return x if axes == sorted(axes) else self.emit("Transpose", x, perm=axes)

    def cast(self, x: str, dtype: str) -> str:
        """x as another dtype."""
        return self.emit("Cast", x, to=CODES[dtype])

    def where(self, condition: str, x: str, y: str, dtype: str) -> str:
        """x where the condition holds, else y. Both are of this dtype, for which runtimes may have no Where."""
        if dtype == "bool":
            return self.emit("Or", self.emit("And", condition, x), self.emit("And", self.emit("Not", condition), y))
        if dtype == "u8" or dtype not in WIDE_INTEGERS:
            return self.emit("Where", condition, x, y)
        wider = WIDE_INTEGERS[dtype]
        return self.cast(self.emit("Where", condition, self.cast(x, wider), self.cast(y, wider)), dtype)

    def graph(self, body: Body, graph: ClosedGraph, inputs: Sequence[str]) -> list[str]:
        """Write a closed graph into a body. Gives the names of its outputs."""
        names, inner = list(inputs), graph.graph
        for code, args, _, _ in forwards(inner, inner.args):
            names += self.of(body, inner.cases[code]).written([names[a] for a in args])
        return [names[o.value] for o in inner.outputs if o.value is not None]  # graphs within nodes have no null outputs

    def written(self, inputs: Sequence[str]) -> list[str]:
        """Write a node of the case. Gives the names of its results. Raises NoMeaningError."""
        _ = self.operands, self.results  # which are arrays that ONNX has
        rule = self.rules.get(self.case.op)
        if rule is None:
            return self.by_definition(*inputs)
        if self.case.op == "constant":
            return [str(rule(self))]
        if all(t.size == 0 for t in self.results):
            return [self.filled(0, t) for t in self.results]  # runtimes have not thought of them everywhere
        names = rule(self, *inputs)
        return [names] if isinstance(names, str) else list(names)

    def of(self, body: Body, case: Case) -> Lowering:
        """What a node of another case sees, which is written into this body."""
        return Lowering(body, case, self.rules, self.primitives)

    def by_definition(self, *inputs: str) -> list[str]:
        """What an operation stands for in terms of others. Raises NoMeaningError where it has no definition."""
        primitive = self.primitives[self.case.op]
        if primitive.in_terms_of_others is None:
            reason = f"{primitive.evaluation.opaque}, and " if primitive.evaluation.opaque else ""
            raise self.refuse(f"{reason}has no operator in ONNX that computes it")
        try:
            return self.defined(partial(primitive.in_terms_of_others, self.attrs), inputs)
        except MissingRuleError as error:
            raise self.refuse(f"has no operator in ONNX, and {error}") from None

    def defined(self, function: Callable[[Sequence[Term]], Sequence[Term]], inputs: Sequence[str]) -> list[str]:
        """What a function of terms makes of the operands."""
        trace = Trace(self.primitives, CaseTable(self.primitives))
        terms = function([trace.source(t, linear=False) for t in self.case.operands])
        names = list(inputs)
        for node in trace.nodes:
            names += self.of(self.body, trace.cases[node.code]).written([names[slot] for slot in node.reads])
        return [names[t.slot] for t in terms]

    def refuse(self, reason: str) -> NoMeaningError:
        """The error of what has no meaning in ONNX."""
        return NoMeaningError(f"{self.case.op} {reason}; write it with ", Remedy("format", "msgpack"))


def widened(rule: Rule, **wider: str) -> Rule:
    """The rule on wider dtypes for operands of those that its operators do not take, or runtimes have no kernels for.

    Results are converted back: integers modulo a power of two, floats rounded.
    """

    def through(low: Lowering, *operands: str) -> str | Sequence[str]:
        types = [*low.operands, *low.results]
        if not any(t.dtype in wider for t in types):
            return rule(low, *operands)
        wide = [t.with_dtype(wider.get(t.dtype, t.dtype)) for t in types]
        n = len(low.operands)
        inner = replace(low, case=replace(low.case, operands=tuple(wide[:n]), results=tuple(wide[n:])))
        given = [low.cast(x, wider[t.dtype]) if t.dtype in wider else x for x, t in zip(operands, low.operands, strict=True)]
        names = rule(inner, *given)
        results = [names] if isinstance(names, str) else names
        return [low.cast(y, t.dtype) if t.dtype in wider else y for y, t in zip(results, low.results, strict=True)]

    return through
