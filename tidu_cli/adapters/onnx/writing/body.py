"""Nodes of ONNX that are being written: of a graph, a function, or a graph within a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import dtype_of, name_of
from tidu_cli.adapters.onnx.loading import package
from tidu_cli.adapters.onnx.tensors import DTYPES
from tidu_cli.errors import DocumentError, Remedy
from tidu_cli.graph.types import RecordType, TensorType, Type

CODES = {name: code for code, name in DTYPES.items()}
"""The codes of element types by the names of dtypes."""


MOST_LEVELS = 31
"""How deep graphs may stand within nodes of graphs: protobuf reads 100 messages within one another, three a graph, and types."""


class NoMeaningError(DocumentError):
    """A node that has no meaning in ONNX."""


class Body:
    """Nodes in order, and the constants that they read by name. Names are made here, with a prefix."""

    def __init__(self, opset: int, prefix: str = "", numbers: Iterator[int] | None = None, level: int = 0) -> None:
        self.opset = opset
        self.level = level
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        self._prefix = prefix
        self._numbers = numbers or count()
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def name(self) -> str:
        """A new name."""
        return f"{self._prefix}{next(self._numbers)}"

    def emit(self, op_type: str, *inputs: str, **attrs: Any) -> str:
        """A node of one output. Attributes that are None are left out."""
        return self.emit_all(op_type, inputs, 1, **attrs)[0]

    def emit_all(self, op_type: str, inputs: Sequence[str], n: int, **attrs: Any) -> list[str]:
        """A node of n outputs."""
        outputs = [self.name() for _ in range(n)]
        given = {k: v for k, v in attrs.items() if v is not None}
        self.nodes.append(package().helper.make_node(op_type, list(inputs), outputs, **given))
        return outputs

    def constant(self, value: Any, dtype: str | None = None) -> str:
        """A constant array, one for equal ones."""
        array = np.asarray(value) if dtype is None else np.asarray(value).astype(dtype_of(dtype))
        key = name_of(array.dtype), array.shape, array.tobytes()
        if key not in self._known:
            name = self._known[key] = self.name()
            self.constants[name] = array
        return self._known[key]

    def ints(self, numbers: Sequence[int]) -> str:
        """Numbers as an array of i64, as shapes and axes are given."""
        return self.constant(np.array(numbers, np.int64))

    def within(self) -> Body:
        """The body of a graph within a node, which may read names of this one."""
        if self.level == MOST_LEVELS:
            raise NoMeaningError(
                f"graphs within graphs nest deeper than {MOST_LEVELS} levels, the most that programs read of a file of ONNX; "
                "write it with ",
                Remedy("format", "msgpack"),
            )
        return Body(self.opset, self._prefix, self._numbers, self.level + 1)

    def subgraph(self, inputs: Sequence[Type], write: Callable[..., Sequence[tuple[str, Type]]]) -> Any:
        """A graph within a node, of inputs of these types. `write` is given its body and the names of inputs, and gives outputs."""
        inner = self.within()
        names = [inner.name() for _ in inputs]
        found = write(inner, *names)
        outputs = []
        for name, type_ in found:  # of their own, as one value may be several outputs
            outputs.append((inner.emit("Identity", name), type_))
        helper = package().helper
        return helper.make_graph(
            [*constant_nodes(inner.constants), *inner.nodes],
            inner.name(),
            [value_info(n, t) for n, t in zip(names, inputs, strict=True)],
            [value_info(n, t) for n, t in outputs],
        )


def tensor_type(type_: Type) -> TensorType:
    """An array's type. Raises NoMeaningError for records, complex numbers and times."""
    way = f"it with {Remedy('format', 'msgpack')}"
    if isinstance(type_, RecordType):
        raise NoMeaningError(f"a record, {type_}, has no place in ONNX; take its fields apart, or write {way}")
    if type_.dtype in ("c64", "c128"):
        raise NoMeaningError(
            f"{type_} is complex, which operators of ONNX are not; compute with real and imaginary parts, or write {way}"
        )
    if type_.dtype not in CODES:
        raise NoMeaningError(f"{type_} has no place in ONNX, which knows no times; write {way}")
    return type_


def value_info(name: str, type_: Type) -> Any:
    """The declaration of an input or output."""
    array = tensor_type(type_)
    return package().helper.make_tensor_value_info(name, CODES[array.dtype], array.shape)


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
