"""A model's inputs: their types, with sizes that it leaves open, and weights and values within that become inputs.

Weights that an exporter made of parameters by folding constants have other names: patterns of the parameters' names miss them,
which a note says. Weights that a model updates itself, as batch norms in training mode do with their statistics, are outputs by the
same names.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from itertools import permutations
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, dtype_of, name_of
from tidu_cli.adapters.numpy.recorder import Recorder
from tidu_cli.adapters.onnx.contents import Choices, nodes_within
from tidu_cli.adapters.onnx.loading import held
from tidu_cli.adapters.onnx.reading.node import NeedsBoundError
from tidu_cli.errors import DocumentError, Remedy, UnknownNameError, counted, did_you_mean
from tidu_cli.graph.open_sizes import has_open_size
from tidu_cli.graph.select import listed
from tidu_cli.graph.types import ITEMSIZE, TensorType

if TYPE_CHECKING:
    from tidu_cli.adapters.onnx.reading.open_sizes import Dimensions
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
    parameters = dict.fromkeys(parameter(d) for i in declared for d in i.type.tensor_type.shape.dim)
    _require_dimensions(choices.sizes, parameters.keys() - {""})
    unchosen = [d for i in declared if i.name not in choices.types for d in i.type.tensor_type.shape.dim]
    if all(_number(d) is not None for d in unchosen) and not any(map(has_open_size, choices.types.values())):
        return None
    kept = set(map(parameter, unchosen)) - {""}
    from tidu_cli.adapters.onnx.reading.open_sizes import Dimensions

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
    from tidu_cli.graph.sizes.names import name_to_file

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
            type_ = choices.types[i.name]
            if type_.dtype != dtype:
                raise DocumentError(f"input '{i.name}' is of {dtype}, and cannot be {type_}; its shape alone can be chosen")
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


_GENERATED = re.compile(r"val_\d+|onnx::\w+_\d+")
"""The names that torch's exporters make up."""

_COMPARED = 16
"""With as many a weight is compared, of those that may have the same numbers."""

_RANK = 4
"""Up to this many axes transposes are recognised."""


def folded(weights: Mapping[str, Any]) -> list[str]:
    """A note that names the weights that folding made, as far as names and values show it; none if none is seen."""
    made = dict.fromkeys((name for name in weights if _GENERATED.fullmatch(name)), "")
    for name, origin, how in _made_of(weights):
        made.setdefault(name, "")
        made[name] = made[name] or f" ({how} of {origin})"
    if not made:
        return []
    names = listed([f"{name}{how}" for name, how in made.items()])
    return [
        f"the exporter made {counted(len(made), 'weight')} of parameters: {names}; to differentiate by these, name them with "
        f"{Remedy('wrt', python='wrt')}, or export the model without folding constants"
    ]


def _made_of(weights: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The names of a weight and of another one of which it is a transpose, and what else it may be; each pair once."""
    for group in _alike(weights):
        # Of two, the one whose name was made up was made of the other, or else the later one.
        for k, name in enumerate(group := sorted(group, key=lambda name: _GENERATED.fullmatch(name) is not None)):
            for origin in group[: min(k, _COMPARED)]:
                if how := _relation(weights[name], weights[origin]):
                    yield name, origin, how
                    break


def _alike(weights: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    """Names of weights that may have the same numbers: the sums of their bits are equal, in whatever order these are."""
    by_size = defaultdict[int, list[str]](list)
    for name, x in weights.items():
        by_size[x.size].append(name)
    for size, names in by_size.items():
        if size < 2 or len(names) == 1:
            continue
        narrowest = min((weights[name].dtype for name in names), key=lambda dtype: dtype.itemsize)
        by_sum = defaultdict[int, list[str]](list)
        for name in names:
            x = _narrowed(weights[name], narrowest)
            if not np.all(x == x.flat[0]):  # as biases are before training
                by_sum[int(np.sum(x.view(f"u{x.itemsize}"), dtype=np.uint64))].append(name)
        yield from (names for names in by_sum.values() if len(names) > 1)


def _narrowed(x: Any, dtype: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(x, dtype=dtype)


def _relation(x: Any, origin: Any) -> str:
    """What x is of the other array: a copy, cast, transpose or reshape; empty if it is none of these."""
    narrower = min(x.dtype, origin.dtype, key=lambda dtype: dtype.itemsize)
    y, z = _narrowed(x, narrower), _narrowed(origin, narrower)
    if x.shape == origin.shape and np.array_equal(y, z):
        return "a copy" if x.dtype == origin.dtype else "a cast"
    for axes in permutations(range(z.ndim)) if 2 <= z.ndim <= _RANK else ():
        if y.shape == tuple(z.shape[a] for a in axes) and np.array_equal(y, z.transpose(axes)):
            return "a transpose"
    return "a reshape" if np.array_equal(y.ravel(), z.ravel()) else ""


def left_in_nodes(sizes: Mapping[str, int], has_weights: bool) -> str:
    """What is said of constants of nodes, which are no weights: how many floats each has."""
    cut = Remedy("cut", "NAME", python="cut=NAME")
    none = "" if has_weights else "it has no initializers of floats, and so no weights; "
    if not sizes:
        return f"{none}{cut} makes an input of a constant, say"
    are = "is a constant" if len(sizes) == 1 else "are constants"
    told = f"{counted(len(sizes), 'tensor')} of floats, {counted(sum(sizes.values()), 'number')} in all, {are} of nodes"
    return f"{none}{told}: {listed([*sizes])}; {cut} makes an input of one"


class Statistics:
    """The new values of weights, as nodes tell of them."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._new: dict[int, list[Array]] = {}

    def update(self, old: Any, new: Any) -> None:
        """Know that a node makes a new value of an old one, which may be a weight, or a new value of one."""
        if not (isinstance(old, Array) and isinstance(new, Array)) or any(x.recorder is not self._recorder for x in (old, new)):
            return
        for values in self._new.values():
            if any(x.value == old.value for x in values):
                values[:] = [new if x.value == old.value else x for x in values]
                return
        if old.value < len(self._recorder.inputs):
            self._new.setdefault(old.value, []).append(new)

    def outputs(self, weights: Any, results: dict[str, Any], wanted: bool) -> tuple[dict[str, Any], str]:
        """The outputs, with new values of weights among them by their names if they are wanted, and a note."""
        new = {key: values for k, values in self._new.items() if (key := str(self._recorder.inputs[k].key)) in weights}
        once = {key: values[0] for key, values in new.items() if len(values) == 1}
        flag = Remedy("statistics", True)
        if not wanted:
            return results, f"it updates {listed([*new])}; {flag} makes outputs of their new values" if new else ""
        if not once:
            return results, f"{flag} changes nothing: {'one weight is that of several nodes' if new else 'it updates no weights'}"
        names = {x.value: key for key, x in once.items()}
        renamed = {names.pop(x.value, name): x for name, x in results.items()}
        shared = [key for key in new if key not in once]
        told = f"several nodes update {listed(shared)}, which is therefore not an output; export each with a value of its own"
        return renamed | {key: once[key] for key in names.values()}, told if shared else ""
