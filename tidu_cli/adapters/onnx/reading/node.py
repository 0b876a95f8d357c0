"""A node of a model as operators see it: its attributes, what they may ask for, and how they compute what has no name in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from shlex import quote
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, dtype_of, name_of
from tidu_cli.adapters.onnx.contents import label
from tidu_cli.adapters.onnx.loading import DTYPES, array_of, dtype_name, package
from tidu_cli.adapters.onnx.reading.open_sizes import UnboundedError
from tidu_cli.errors import DocumentError, Remedy, UndecidedSizeError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.sizes.open import OpenSize, number_of
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.contract import Types

if TYPE_CHECKING:
    from tidu_cli.graph.sizes.algebra import Name

Value = Any
"""An array of NumPy, whose numbers are known, or a traced one, or `Sizes`."""


class Sizes(Frozen, slots=False):
    """Integers, of which some are open sizes: `array` has them as objects, and `dtype` is what they are in the model."""

    array: Any
    dtype: Any

    shape = property(lambda self: self.array.shape)
    ndim = property(lambda self: self.array.ndim)
    size = property(lambda self: self.array.size)


def as_sizes(array: Any, dtype: Any) -> Any:
    """Elements that are integers or open sizes, as an array of NumPy if none is open."""
    elements = [n if isinstance(n, OpenSize) else int(n) for n in np.ravel(array).tolist()]
    if not any(isinstance(n, OpenSize) for n in elements):
        return np.array(elements, dtype).reshape(np.shape(array))
    held = np.empty(len(elements), object)
    held[:] = elements
    return Sizes(held.reshape(np.shape(array)), np.dtype(dtype))


class RefusedError(DocumentError):
    """An operator, or what is asked of one, has no place in a graph."""


class UnreadError(RefusedError):
    """An operator is not read here, whatever it is given."""


class NeedsValueError(RefusedError):
    """A size, say, is needed that depends on inputs of the model, those of these names."""

    def __init__(self, text: str, inputs: Sequence[str]) -> None:
        super().__init__(text)
        self.inputs = tuple(inputs)


class NeedsBoundError(RefusedError):
    """A name of a size needs the bounds that it has here."""

    def __init__(self, text: str, bound: Name) -> None:
        super().__init__(text)
        self.bound = bound


class Importing(Protocol):
    """What a node asks of those who read the model."""

    cast: str | None
    straight_through: bool
    is_sized: bool
    """Whether sizes were chosen for this reading."""

    dimensions: Any
    """What knows of sizes that the model leaves open."""

    def known(self, x: Value) -> Any:
        """The numbers of a value, None if they are not known."""

    def sizes(self, x: Value) -> Sizes | None:
        """The sizes that a value is, None if it is not known to be sizes."""

    def sources(self, x: Value) -> list[str]:
        """The inputs of the model that a value depends on."""

    def lifted(self, x: Value) -> Array:
        """A value as a traced array: a constant of the graph if its numbers are known."""

    def run(self, graph: Any, scope: Any, inputs: Sequence[Value], path: str = "", is_written: bool = True) -> list[Value]:
        """The outputs of a graph within a node, which reads names of `scope`, for these inputs; whether its nodes are to count.

        `path` says where it is.
        """

    def note(self, text: str) -> None:
        """Something that the user should know."""

    def ends_by(self, loop: str, inputs: Sequence[str], number: str | None) -> None:
        """Know of a loop whose count depends on inputs, and which of these is a number that may become a constant."""

    statistics: Any
    """What knows of weights that nodes update."""

    def stands_for(self, x: Value) -> str:
        """The type of ONNX that a value has, where its array is of another dtype, else ""."""

    def standing(self, x: Value, kind: str) -> Value:
        """The value, which stands for one of this type, "" for that of its own dtype."""


@dataclass
class Node:
    """A node: `node["axis"]` is an attribute, with its default, None where there is none.

    `version` is that of the operator set of its domain.
    """

    importing: Importing
    op_type: str
    domain: str
    version: int
    name: str
    attributes: Mapping[str, Any]
    n_outputs: int
    scope: Any
    outputs: Sequence[str] = ()
    """Names of the outputs, empty for those that nobody wants."""

    def __getitem__(self, name: str) -> Any:
        if name in self.attributes:
            return self.attributes[name]
        return defaults(self.op_type, self.version, self.domain).get(name)

    def has(self, name: str) -> bool:
        """Whether an attribute is given."""
        return name in self.attributes

    def wants(self, k: int) -> bool:
        """Whether output k has a name."""
        return k < len(self.outputs) and bool(self.outputs[k])

    def known(self, x: Value, what: str) -> Any:
        """The numbers of a value as NumPy's array. Raises NeedsValueError if they depend on inputs."""
        array = self.importing.known(x)
        if array is None and (sizes := self.importing.sizes(x)) is not None:
            raise UndecidedSizeError(
                f"needs its {what} as numbers, and {'it is' if sizes.size == 1 else 'some are'} {open_text(sizes)}"
            )
        if array is None:
            inputs = self.importing.sources(x)
            way = f"; give them: {setting(inputs)}" if inputs else ""
            raise NeedsValueError(f"needs the value of its {what}, which depends on {quoted(inputs) or 'constants'}{way}", inputs)
        return array

    def known_for_shape(self, x: Value) -> Any:
        """Likewise, of a value that the shape of the result depends on."""
        array = self.importing.known(x)
        if array is not None:
            return array
        inputs, result = self.importing.sources(x), next(filter(None, self.outputs), "NAME")
        told = f"the shape of its result depends on the values of {quoted(inputs) or 'constants'}, and a graph has known shapes"
        shell = f"--cut {quote(result)} --input-type {quote(f'{result}=TYPE')}"
        cut = Remedy(command="convert", flag=shell, python=f"load_onnx(MODEL, cut={result!r}, input_types={{{result!r}: ...}})")
        raise NeedsValueError(f"{told}; make it an input: {cut}{f', or fix them: {setting(inputs)}' if inputs else ''}", inputs)

    def ints(self, x: Value, what: str) -> list[int]:
        """The numbers of a value as Python's integers, in a row; some may be open sizes."""
        sizes = self.importing.sizes(x)
        return [int(n) for n in np.ravel(self.known(x, what))] if sizes is None else np.ravel(sizes.array).tolist()

    def dtype(self, code: int) -> Any:
        """The NumPy dtype of a code of ONNX, as floats are cast here."""
        return dtype_of(dtype_name(code, self.importing.cast))

    def kind(self, x: Value) -> str:
        """The name of the type that a value has in the model."""
        return self.importing.stands_for(x) or name_of(x.dtype)

    def sized(self, x: Value, shape: Sequence[int]) -> Value:
        """x, as a traced array if a result of this shape is large: then nothing of that size is made here."""
        return self.importing.lifted(x) if not isinstance(x, Array) and is_large(shape) else x

    def traced(self, x: Value) -> Array:
        """x as a traced array, a constant of the graph if its numbers are known."""
        return self.importing.lifted(x)

    def settled(self, x: Value) -> Value:
        """x, as a traced array if it is sizes."""
        return self.importing.lifted(x) if isinstance(x, Sizes) else x

    def emit(self, op: str, *operands: Value, **attrs: object) -> Any:
        """The first result of a primitive of tidu's."""
        return self.emit_all(op, *operands, **attrs)[0]

    def emit_all(self, op: str, *operands: Value, **attrs: object) -> tuple[Any, ...]:
        """All results of a primitive of tidu's."""
        arrays = [self.importing.lifted(x) for x in operands]
        return tuple(arrays[0].recorder.emit_all(op, arrays, **attrs))

    def body(self, attribute: str) -> Callable[..., list[Value]]:
        """The function of a graph that is an attribute, which may read what the node may. Raises RefusedError if there is none."""
        graph = self[attribute]
        if graph is None:
            raise RefusedError(f"has no graph '{attribute}'")
        path = f"{label(self.name, self.outputs)}/{attribute}/"
        return lambda *inputs: self.importing.run(graph, self.scope, inputs, path)

    def note(self, text: str) -> None:
        """Tell the user something."""
        self.importing.note(f"{self.op_type}: {text}")


def open_text(sizes: Sizes) -> str:
    """The open ones of some sizes, as text."""
    return ", ".join(dict.fromkeys(str(n) for n in np.ravel(sizes.array).tolist() if isinstance(n, OpenSize)))


def require_size(due: Any, told: str) -> None:
    """Raises RefusedError, which says what was told, for a size below 0, and UnboundedError where it may be."""
    is_below = number_of(lambda: due < 0)
    if is_below is None:
        raise UnboundedError(f"{told}, unless {due} is 0 or more", due)
    if is_below:
        raise RefusedError(told)


def is_large(shape: Sequence[int]) -> bool:
    """Whether arrays of a shape are not computed when a model is read: they have many elements, or nobody knows how many."""
    return any(isinstance(n, OpenSize) for n in shape) or math.prod(shape) > LARGEST_KNOWN


def inputs_of(x: Value, recorder: Any) -> list[str]:
    """The inputs of a recording that a value of it, or of one within it, depends on."""
    pending: list[tuple[Any, int]] = [(x.recorder, x.value)] if isinstance(x, Array) else []
    names: dict[str, None] = {}
    while pending:
        here, value = pending.pop()
        needed = here.needed([("", value, None)])
        if here is recorder:
            names.update((str(i.key), None) for k, i in enumerate(here.inputs) if needed[k])
        else:
            pending += [(here.around[-1], outer) for outer, (inner, _) in here.taken.items() if needed[inner]]
    return list(names)


LARGEST_FOLDED = 2**24
"""A node with known operands is not computed on reading if broadcasting may give more elements than this."""


def foldable(importing: Importing, op_type: str, operands: Sequence[Value]) -> list[Value]:
    """The operands of a node, the greatest of them traced where, all known, they could make too much here."""
    if op_type == "Concat" or any(isinstance(x, list) for x in operands):  # which makes no more than there is
        return list(operands)
    sizes = [x.size for x in operands if x is not None and not isinstance(x, Array)]
    if len(sizes) < sum(x is not None for x in operands) or math.prod(sizes) <= LARGEST_FOLDED:
        return list(operands)
    return [x if x is None or x.size < max(sizes) else importing.lifted(x) for x in operands]


def quoted(names: Sequence[str]) -> str:
    """Names in quotes, one after the other."""
    return " and ".join(f"'{name}'" for name in names)


def setting(inputs: Sequence[str]) -> Remedy:
    """How the first of some inputs becomes a constant."""
    return Remedy("set", f"{inputs[0]}=VALUE", command="convert", python=f"load_onnx(MODEL, set={{{inputs[0]!r}: ...}})")


LARGEST_KNOWN = 65536
"""Values of more elements are not computed when a model is read, but stand in the graph."""

Operator = Callable[..., Any]
"""From a node and its operands, None for those left out, to its output, or a list of several."""


@lru_cache(maxsize=1024)
def schema(op_type: str, version: int, domain: str) -> Any:
    """The operator's schema at a version of its domain, None if there is none."""
    onnx = package()
    try:
        return onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return None


@lru_cache(maxsize=1024)
def defaults(op_type: str, version: int, domain: str) -> Mapping[str, Any]:
    """The defaults of attributes."""
    declared = schema(op_type, version, domain)
    if declared is None:
        return {}
    values = {name: a.default_value for name, a in declared.attributes.items()}
    return {name: attribute(value, None) for name, value in values.items() if value.type}


_READ: Mapping[int, Callable[[Any, str | None], Any]] = {
    1: lambda proto, cast: proto.f,
    2: lambda proto, cast: proto.i,
    3: lambda proto, cast: proto.s.decode("utf-8", "replace"),
    4: lambda proto, cast: array_of(proto.t, cast) if proto.t.data_type in DTYPES else proto.t,
    5: lambda proto, cast: proto.g,
    6: lambda proto, cast: list(proto.floats),
    7: lambda proto, cast: list(proto.ints),
    8: lambda proto, cast: [s.decode("utf-8", "replace") for s in proto.strings],
    9: lambda proto, cast: [array_of(t, cast) for t in proto.tensors],
}
"""How attributes are read, by the codes of their types, `AttributeProto.AttributeType`."""


def attribute(proto: Any, cast: str | None) -> Any:
    """The value of an AttributeProto: numbers, texts, arrays (floats as `cast`), graph, or list of these. Raises DocumentError."""
    read = _READ.get(proto.type)
    return read(proto, cast) if read else proto  # of sparse tensors and types, which an operator reads or refuses


def computed(node: Node, op: str, *operands: Value, **attrs: object) -> Value:
    """The first result of a primitive, known if its operands are. Raises TypeRuleError for those that do not fit."""
    return computed_all(node, op, *operands, **attrs)[0]


def computed_all(node: Node, op: str, *operands: Value, **attrs: object) -> tuple[Value, ...]:
    """All results, as `computed` gives the first."""
    if any(isinstance(x, Array | Sizes) for x in operands):
        return node.emit_all(op, *operands, **attrs)
    arrays = [np.asarray(x) for x in operands]
    types = [TensorType(name_of(x.dtype), x.shape) for x in arrays]
    case = BUILTIN.case(op, BUILTIN.parse_attrs(op, attrs), None, types)
    results = cast(Types, case.results)
    if any(is_large(t.shape) for t in results):
        return node.emit_all(op, *operands, **attrs)
    outputs = BUILTIN[op].evaluation.kernel(np, case.attrs, tuple(types), results)(*arrays)
    return tuple(outputs) if isinstance(outputs, tuple | list) else (outputs,)


def counted(node: Node, n: int, dtype: Any = np.int64) -> Value:
    """0, 1, 2, ... of a dtype, traced where they are many."""
    if not is_large((n,)):
        return np.arange(n).astype(dtype)
    return node.traced(np.int64(0)).recorder.emit("iota", dtype="i64", shape=(n,), dimension=0).astype(dtype)


def at(node: Node, x: Value, *index: Value) -> Value:
    """x[index], of which any may be traced."""
    return (node.traced(x) if any(isinstance(i, Array) for i in index) else x)[index]


def number(like: Value, value: float) -> Any:
    """A number in the dtype of an array: where it is bf16, NumPy does not let Python's numbers give way. An open size is itself."""
    return value if isinstance(value, OpenSize) else np.dtype(like.dtype).type(value)


def integer(node: Node, x: Value, what: str) -> int:
    """The one number of a known value. Raises RefusedError if it has several, or none."""
    numbers = node.ints(x, what)
    if len(numbers) != 1:
        raise RefusedError(f"its {what} is one number, and not {len(numbers)}")
    return numbers[0]
