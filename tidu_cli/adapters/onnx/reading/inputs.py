"""A model's inputs: their types, of which sizes that it leaves open are chosen, and values within that become inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import dtype_of, name_of
from tidu_cli.adapters.onnx.choices import Choices
from tidu_cli.adapters.onnx.contents import nodes_within
from tidu_cli.adapters.onnx.loading import held
from tidu_cli.errors import DocumentError, Remedy, UnknownNameError, did_you_mean
from tidu_cli.graph.types import ITEMSIZE, TensorType


def input_types(declared: Sequence[Any], choices: Choices) -> dict[str, TensorType]:
    """The types of inputs by name.

    Raises DocumentError, one for all inputs, where sizes are left open; UnknownNameError for a choice of what there is not.
    """
    names = [i.name for i in declared]
    for name in (*choices.types, *choices.values):
        if name not in names:
            raise UnknownNameError(f"has no input '{name}'{did_you_mean(name, names)} (inputs: {', '.join(names) or 'none'})")
    _require_dimensions(choices.sizes, {_name(d) for i in declared for d in i.type.tensor_type.shape.dim} - {""})
    types: dict[str, TensorType] = {}
    open_: dict[str, None] = {}
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
            types[i.name] = _chosen(i.name, choices.types[i.name], dtype)
        elif not tensor.HasField("shape"):
            shapeless[i.name] = f"{dtype}[1,3]"
        else:
            sizes = [_size(d, choices.sizes) for d in tensor.shape.dim]
            unknown = [_name(d) for d, n in zip(tensor.shape.dim, sizes, strict=True) if n is None]
            if "" in unknown:  # of which some have no name
                shapeless[i.name] = str(TensorType(dtype, tuple(8 if n is None else n for n in sizes)))
            elif unknown:
                open_.update(dict.fromkeys(unknown))
            else:
                types[i.name] = TensorType(dtype, tuple(n for n in sizes if n is not None))
    _require_sizes(open_, shapeless)
    return {name: types[name] for name in names}


def _require_dimensions(sizes: Mapping[str, int], known: Collection[str]) -> None:
    for name, size in sizes.items():
        if size < 0:
            raise DocumentError(f"dimension '{name}' cannot have the size {size}")
        if name not in known:
            told = ", ".join(sorted(known)) or "none"
            hint = did_you_mean(name, sorted(known))
            raise UnknownNameError(f"has no open dimension '{name}'{hint} (open dimensions: {told})")


def _name(dimension: Any) -> str:
    """The name of an open dimension, empty for one without: some exporters write "?" for several, or -1."""
    return "" if dimension.dim_param == "?" else str(dimension.dim_param)


def _size(dimension: Any, sizes: Mapping[str, int]) -> int | None:
    name = _name(dimension)
    if name:
        return sizes.get(name)
    return dimension.dim_value if dimension.HasField("dim_value") and dimension.dim_value >= 0 else None


def _require_sizes(open_: Mapping[str, None], shapeless: Mapping[str, str]) -> None:
    """Raises DocumentError if there are open dimensions, or inputs without a shape, which come with one for example."""
    if open_ or shapeless:
        what = [f"dimension{'s' if len(open_) > 1 else ''} {', '.join(open_)}"] if open_ else []
        what += [f"the shape{'s' if len(shapeless) > 1 else ''} of {', '.join(shapeless)}"] if shapeless else []
        ways = [*[f"--dim {name}=8" for name in open_], *[f"--input-type {name}={type_}" for name, type_ in shapeless.items()]]
        sizes = [f"dims={dict.fromkeys(open_, 8)}"] * bool(open_) + [f"input_types={dict(shapeless)}"] * bool(shapeless)
        way = Remedy(command="convert MODEL", flag=" ".join(ways), python=f"load_onnx(MODEL, {', '.join(sizes)})")
        raise DocumentError(f"leaves open {' and '.join(what)}; choose the sizes: ", way)


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
