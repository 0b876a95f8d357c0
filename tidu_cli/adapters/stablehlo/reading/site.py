"""What an operation's reader sees of it, as operands, attributes, regions, and where it stands; and which reader it has.

Readers are known by the names of operations, in the files of families. Of operations that are not read it is said why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tidu_cli.adapters.stablehlo.module import Block, Operation
from tidu_cli.errors import DocumentError, TiduError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.rules.recording.known import Recording
from tidu_cli.rules.terms import Number, Term

if TYPE_CHECKING:
    from numpy.typing import NDArray

Reader = Callable[..., "Term | Sequence[Term]"]
"""From a Site and the operands to the result, or the results."""

RegionReader = Callable[["Site", Block, Sequence[TensorType]], tuple[ClosedGraph, list[Term]]]
"""From a block and the types of its arguments to its graph, and the values around it that the graph takes before these."""

MOST_CALLS = 64
"""How deep calls of functions may stand within functions that are called."""


class RefusedError(TiduError):
    """Why an operation has no meaning here; the place comes before it later."""


class Site(Frozen, slots=False):
    """An operation where it stands. `called` gives the results of a function of the module by its name."""

    operation: Operation
    recording: Recording
    operands: Sequence[Term]
    values: dict[int, Term]
    region_reader: RegionReader
    called: Callable[[str, Sequence[Term]], list[Term]]

    @property
    def results(self) -> list[TensorType]:
        """The types of the results. Raises RefusedError for those that are no arrays of known shape."""
        return [array_type(t) for t in self.operation.results]

    @property
    def result(self) -> TensorType:
        """The type of the first result."""
        return self.results[0]

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute as plain data."""
        return self.operation.attributes.get(name, default)

    def ints(self, name: str, default: Sequence[int] = ()) -> list[int]:
        """An attribute that is a list of integers."""
        return ints_of(self.operation, name, default)

    def pairs(self, name: str, n: int) -> list[tuple[int, int]]:
        """An attribute of n pairs, such as padding; zeros where it is left out."""
        flat = self.ints(name, [0] * 2 * n)
        return list(zip(flat[::2], flat[1::2], strict=True))

    def emit(self, op: str, /, *operands: Term | Number, **attrs: object) -> Term:
        """Record a node, and give its first result."""
        return self.recording.emit(op, *operands, **attrs)

    def emit_all(self, op: str, /, *operands: Term | Number, **attrs: object) -> tuple[Term, ...]:
        """Likewise, all results."""
        return self.recording.emit_all(op, *operands, **attrs)

    def spread(self, x: Term, shape: tuple[int, ...]) -> Term:
        """A scalar as an array of this shape, which an array has already."""
        if x.type.shape == shape:
            return x
        return self.emit("broadcast_in_dim", x, shape=shape, broadcast_dimensions=())

    def known(self, term: Term) -> NDArray[Any] | None:
        """The value of an operand, if it is small and depends on constants alone."""
        return self.recording.known(term)

    def region(self, number: int, types: Sequence[TensorType] | None = None) -> tuple[ClosedGraph, list[Term]]:
        """The graph of a region, and the values around it that it takes before its arguments."""
        block = self.operation.regions[number]
        return self.region_reader(self, block, [array_type(t) for t in block.arguments] if types is None else types)


def array_type(text: str) -> TensorType:
    """The type of an array from what the parser gives. Raises RefusedError for other types, and for unknown shapes."""
    if text.startswith("tensor<") and "?" in text:
        raise RefusedError(f"has the type {text}, whose shape is not known; export the module with fixed shapes")
    if text.startswith(("tensor<", "!", "tuple<", "complex<")):
        raise RefusedError(f"has the type {text}, for which tidu has no type")
    try:
        return cast(TensorType, parse_value_type(text))
    except TiduError:
        raise RefusedError(f"has the type {text}, for which tidu has no type") from None


def array_of(data: Any) -> tuple[NDArray[Any], TensorType]:
    """The array of an attribute, of one element if it is that one again and again, and its type. Raises RefusedError."""
    if not isinstance(data, dict):  # such as dense_resource<NAME>, whose numbers stand elsewhere in the file
        raise RefusedError(f"has an array in a form that is not read, {str(data)[:60]}; write its numbers as dense<...>")
    type_ = array_type(data["type"])
    if "text" in data:
        raise RefusedError(f"has numbers that are not read: {data['text']}")
    dtype = numpy_dtype(np, type_.dtype)
    if "splat" in data:
        return np.frombuffer(data["splat"], dtype)[:1].reshape(()), type_
    return np.frombuffer(data["data"], dtype).reshape(type_.shape), type_


def ints_of(operation: Operation, name: str, default: Sequence[int] = ()) -> list[Any]:
    """An attribute that is a list of integers, or of open sizes; older modules have it as an array."""
    value = operation.attributes.get(name)
    if value is None:
        return list(default)
    if not isinstance(value, dict):
        return [x if isinstance(x, OpenSize) else int(x) for x in value]
    array, type_ = array_of(value)
    return [int(x) for x in array.flat] if array.shape == type_.shape else [int(array)] * type_.size


def placed_error(operation: Operation, error: TiduError) -> DocumentError:
    """What is wrong with an operation, after where it stands."""
    place = operation.place
    if place[:1].isdigit():
        return DocumentError(f"{place}: {operation.name}: {error}")
    return DocumentError(f"{operation.name}{f' ({place})' if place else ''}: {error}")


def adjoint(site: Site, x: Term) -> Term:
    """The conjugate transposes of matrices."""
    turned = site.emit("transpose", x, permutation=(*range(x.type.rank - 2), x.type.rank - 1, x.type.rank - 2))
    return site.emit("conj", turned) if x.type.complex else turned


REASONS = {
    **dict.fromkeys(
        ["all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute", "cross-replica-sum",
         "partition_id", "reduce_scatter", "replica_id", "send", "recv"],
        "is a collective of several devices; export the module for one"),
    **dict.fromkeys(["set_dimension_size", "compute_reshape_shape", "cstr_reshapable"],
                    "makes a shape that is only known at run time; export the module with fixed shapes"),
    **dict.fromkeys(["after_all", "create_token", "infeed", "outfeed", "trace"], "has a side effect, and a graph has none"),
    **dict.fromkeys(["async_start", "async_done"], "runs beside others, which is for several devices; export the module for one"),
    **dict.fromkeys(["tuple", "get_tuple_element"], "is of tuples, for which tidu has no type; return arrays one by one"),
    "rng": "draws random numbers, which would be others each time; make them an input",
    "rng_bit_generator": "makes bits by an algorithm of the device's; keys of threefry, JAX's default, are arithmetic",
    **dict.fromkeys(["uniform_quantize", "uniform_dequantize"], "is of quantized numbers, for which tidu has no type"),
}  # fmt: skip
"""By the name after the dialect's."""


def reason_for(name: str) -> str:
    """Why an operation is not read."""
    dialect, _, short = name.partition(".")
    if dialect in ("stablehlo", "chlo", "mhlo", "vhlo"):
        return REASONS.get(short, "is not read yet")
    return f"is of the dialect {dialect}, which is not read; lower the module to StableHLO"


FAMILIES = ("elementwise", "arrays", "custom_calls", "reductions", "importer", "equivalents")
"""The files of families, each with OPERATIONS by name."""


@cache
def _readers() -> dict[str, Reader]:
    families = [import_module(f"{__package__}.{family}") for family in FAMILIES]
    return {name: reader for family in families for name, reader in family.OPERATIONS.items()}


def reader_of(name: str) -> Reader:
    """The reader of an operation. Raises RefusedError, which says why there is none."""
    reader = _readers().get(name)
    if reader is None:
        raise RefusedError(reason_for(name))
    return reader
