"""A model's inputs: their types, with sizes that it leaves open, and values within that become inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import dtype_of, name_of
from tidu_cli.adapters.onnx.choices import Choices
from tidu_cli.adapters.onnx.contents import nodes_within
from tidu_cli.adapters.onnx.loading import held
from tidu_cli.adapters.onnx.reading.node import NeedsBoundError
from tidu_cli.errors import DocumentError, Remedy, UnknownNameError, did_you_mean
from tidu_cli.graph.open_sizes import has_open_size
from tidu_cli.graph.types import ITEMSIZE, TensorType

if TYPE_CHECKING:
    from tidu_cli.adapters.onnx.reading.dimensions import Dimensions
    from tidu_cli.graph.sizes.algebra import Name


Bounded = Mapping[str, "Name"]
"""Names of sizes with the bounds that nodes need."""

T = TypeVar("T")


def input_types(declared: Sequence[Any], choices: Choices) -> dict[str, TensorType]:
    """The types of inputs by name, of which `dimensions_of` says what is open. Raises as `typed_inputs` does."""
    return typed_inputs(declared, choices, dimensions_of(declared, choices))


def dimensions_of(declared: Sequence[Any], choices: Choices, bounded: Mapping[str, Name] | None = None) -> Dimensions | None:
    """The open dimensions of inputs, with the bounds of names; None where all sizes are known.

    Raises DocumentError, and UnknownNameError for the size of a dimension that there is not.
    """
    parameters = {parameter(d): None for i in declared for d in i.type.tensor_type.shape.dim}
    parameters.pop("", None)
    _require_dimensions(choices.sizes, parameters)
    kept = {parameter(d) for i in declared if i.name not in choices.types for d in i.type.tensor_type.shape.dim}
    unnamed = (d for i in declared if i.name not in choices.types for d in i.type.tensor_type.shape.dim)
    if not kept - {""} and all(_number(d) is not None for d in unnamed) and not any(map(has_open_size, choices.types.values())):
        return None
    from tidu_cli.adapters.onnx.reading.dimensions import Dimensions

    return Dimensions([name for name in parameters if name in kept], choices.sizes, bounded or {})


MOST_BOUNDS = 256
"""How often a model is read at most: each time with narrower bounds, which its nodes need of sizes."""


def with_bounds(read: Callable[[Bounded], T]) -> T:
    """What is read with the bounds that nodes need of open sizes. Raises what reading does."""
    bounded: dict[str, Name] = {}
    tries = 0
    while True:
        tries += 1
        try:
            return read(bounded)
        except NeedsBoundError as error:
            low, high = error.bound.bounds
            if tries > MOST_BOUNDS or bounded.get(error.bound.text) == error.bound or low > high:
                raise
            if error.bound.most is not None:  # a range decides more than multiples of others, which are taken again if need be
                bounded = {name: bound for name, bound in bounded.items() if bound.most is not None}
            bounded[error.bound.text] = error.bound


def bounds_in_words(bounded: Bounded) -> list[str]:
    """What is said of sizes that have bounds because nodes need them."""
    if not bounded:
        return []
    from tidu_cli.graph.sizes.values import name_to_file

    said = {"min": "at least", "max": "at most", "multiple_of": "a multiple of"}
    each = [(name.text, [f"{said[field]} {n}" for field, n in name_to_file(name).items()]) for name in bounded.values()]
    return [f"the size {text} is {' and '.join(words)}, or nodes of the model do not take it" for text, words in each]


def parameter(dimension: Any) -> str:
    """The name of an open dimension, empty for one without: some exporters write "?" for several, or -1."""
    return "" if dimension.dim_param == "?" else str(dimension.dim_param)


def _number(dimension: Any) -> int | None:
    """The size of a dimension, None if it is open."""
    is_known = not parameter(dimension) and dimension.HasField("dim_value") and dimension.dim_value != -1
    return int(dimension.dim_value) if is_known else None


def typed_inputs(declared: Sequence[Any], choices: Choices, dimensions: Dimensions | None) -> dict[str, TensorType]:
    """The types of inputs by name.

    Raises DocumentError, one for all inputs, where inputs have no shape; UnknownNameError for a choice of what there is not.
    """
    names = [i.name for i in declared]
    for name in (*choices.types, *choices.values):
        if name not in names:
            raise UnknownNameError(f"has no input '{name}'{did_you_mean(name, names)} (inputs: {', '.join(names) or 'none'})")
    types: dict[str, TensorType] = {}
    shapeless: dict[str, str] = {}
    for i in declared:
        kind = i.type.WhichOneof("value")
        if kind != "tensor_type":
            told = kind.removesuffix("_type").replace("_", " ") if kind else "value of no type"
            raise DocumentError(f"input '{i.name}' is a {told}, but tidu computes with arrays only")
        tensor = i.type.tensor_type
        try:
            dtype, _ = held(tensor.elem_type, choices.cast)
        except DocumentError as error:
            raise DocumentError(f"input '{i.name}' has {error}") from None
        if i.name in choices.values:
            types[i.name] = TensorType(dtype, numbers(i.name, choices.values[i.name]).shape)
        elif i.name in choices.types:
            type_ = _chosen(i.name, choices.types[i.name], dtype)
            types[i.name] = dimensions.chosen(i.name, type_) if dimensions else type_
        elif not tensor.HasField("shape"):
            shapeless[i.name] = f"{dtype}[1,3]"
        else:
            sizes = [(_number(d), parameter(d)) for d in tensor.shape.dim]
            if any(n is not None and n < 0 for n, _ in sizes):
                shapeless[i.name] = str(TensorType(dtype, tuple(8 if n is None or n < 0 else n for n, _ in sizes)))
                continue
            if dimensions:
                types[i.name] = dimensions.typed(i.name, dtype, sizes)
            else:
                types[i.name] = TensorType(dtype, tuple(n for n, _ in sizes if n is not None))
    _require_shapes(shapeless)
    return {name: types[name] for name in names}


def _require_dimensions(sizes: Mapping[str, int], known: Collection[str]) -> None:
    for name, size in sizes.items():
        if size < 0:
            raise DocumentError(f"dimension '{name}' cannot have the size {size}")
        if name not in known:
            told = ", ".join(sorted(known)) or "none"
            hint = did_you_mean(name, sorted(known))
            raise UnknownNameError(f"has no open dimension '{name}'{hint} (open dimensions: {told})")


def _require_shapes(shapeless: Mapping[str, str]) -> None:
    """Raises DocumentError if there are inputs without a shape, which come with one for example."""
    if shapeless:
        flags = " ".join(f"--input-type {name}={type_}" for name, type_ in shapeless.items())
        way = Remedy(command="convert MODEL", flag=flags, python=f"load_onnx(MODEL, input_types={dict(shapeless)})")
        raise DocumentError(
            f"leaves open the shape{'s' if len(shapeless) > 1 else ''} of {', '.join(shapeless)}; choose the sizes: ", way
        )


def _chosen(name: str, chosen: TensorType, dtype: str) -> TensorType:
    if chosen.dtype != dtype:
        raise DocumentError(f"input '{name}' is of {dtype}, and cannot be {chosen}; its shape alone can be chosen")
    return chosen


def fixed(name: str, value: Any, type_: TensorType) -> Any:
    """The array of a value that was chosen for an input. Raises DocumentError if it is not of its dtype."""
    array = numbers(name, value)
    converted = array.astype(dtype_of(type_.dtype))
    if name_of(array.dtype) != type_.dtype and not np.array_equal(converted, array, equal_nan=array.dtype.kind == "f"):
        raise DocumentError(f"input '{name}' is of {type_.dtype}, and its value {array.dtype} is none")
    return converted


def numbers(name: str, value: Any) -> Any:
    """The array of a value that was chosen for an input, of any dtype. Raises DocumentError if it is not an array of numbers."""
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError):
        array = np.asarray(None)
    if name_of(array.dtype) not in ITEMSIZE:
        raise DocumentError(f"the value of input '{name}' is not an array of numbers")
    return array


def leave_out_before(model: Any, names: Set[str]) -> None:
    """Take out of a model the nodes and inputs that nothing needs once the values of these names are given.

    Raises UnknownNameError for a name that no node computes.
    """
    graph = model.graph
    computed = [name for node in graph.node for name in node.output]
    missing = next((name for name in sorted(names) if name not in set(computed)), None)
    if missing is not None:
        raise UnknownNameError(f"no node computes a value '{missing}' to cut at{did_you_mean(missing, computed)}")
    needed = {o.name for o in graph.output}
    kept = []
    for node in reversed(graph.node):
        if not needed.isdisjoint(set(node.output) - names):
            kept.append(node)
            needed.update(read_by(node))
    inputs = [i for i in graph.input if i.name in needed]
    del graph.node[:], graph.input[:]
    graph.node.extend(reversed(kept))
    graph.input.extend(inputs)


def read_by(node: Any) -> Iterator[str]:
    """The names that a node and graphs within it may read of the graph around it: some of them may be their own."""
    for inner in nodes_within([node]):
        yield from inner.input
        for attribute in inner.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from (o.name for o in graph.output)
