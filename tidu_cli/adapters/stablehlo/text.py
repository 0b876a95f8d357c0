"""Texts of MLIR: types and constants as it writes them, and the functions of modules that JAX makes, with the names in them.

`package` is JAX, which lowers functions to these.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from tidu_cli.adapters.stablehlo.parsing import DTYPES
from tidu_cli.errors import DocumentError
from tidu_cli.graph.graph import Case
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import Path, RecordType, TensorType, Type, storage_dtype
from tidu_cli.lax.arrays.structural import numpy_dtype

ELEMENTS = {dtype: name for name, dtype in DTYPES.items() if not name.startswith("si")}
"""MLIR's names of the elements of arrays by dtype: integers with a sign are plain ones."""

SIZE = "tensor<i64>"
"""MLIR's type of an open size."""

WRAPPED = "_wrapped_jax_export_main"
"""What jax.export calls the function that takes sizes before arguments."""


def size_value(name: str) -> str:
    """The name of the value that an open size is."""
    return f"%size_{name}"


class UnwrittenError(DocumentError):
    """What cannot be written as a module of StableHLO."""


@lru_cache(maxsize=4096)
def tensor_text(type_: TensorType) -> str:
    """MLIR's text of the type of an array, in which open sizes are ?; of times that of their counts."""
    sizes = "".join("?x" if isinstance(n, OpenSize) else f"{n}x" for n in type_.shape)
    return f"tensor<{sizes}{ELEMENTS[storage_dtype(type_.dtype)]}>"


def pytree(type_: Type, of_leaf: Callable[[Path, TensorType], Any], path: Path = ()) -> Any:
    """A value of a type as functions of JAX take it, with these leaves: records are dicts of their fields, and tuples tuples."""
    if not isinstance(type_, RecordType):
        return of_leaf(path, type_)
    parts = {name: pytree(t, of_leaf, (*path, name)) for name, t in type_.fields}
    return tuple(parts.values()) if type_.is_tuple else parts


@lru_cache(maxsize=4096)
def arrays(type_: Type) -> Sequence[tuple[Path, TensorType]]:
    """The arrays that a value is, each with where it is in a record: in the order in which JAX has leaves, fields by name."""
    if not isinstance(type_, RecordType):
        return [((), type_)]
    fields = type_.fields if type_.is_tuple else sorted(type_.fields)
    return [((name, *path), leaf) for name, t in fields for path, leaf in arrays(t)]


def constant_text(array: Any, type_: TensorType) -> str:
    """An operation that makes an array, bit for bit: of few numbers readable once MLIR has printed it."""
    data = np.ascontiguousarray(array)
    if sys.byteorder == "big":
        data = data.byteswap()
    if data.size > 1 and data.nbytes > 64 and _is_uniform(data):
        data = data.reshape(-1)[:1]
    content = f'"0x{data.tobytes().hex().upper()}"' if data.size else ""
    return f"stablehlo.constant dense<{content}> : {tensor_text(type_)}"


def zeros_text(type_: TensorType) -> str:
    """An operation that makes an array of zeros."""
    content = f'"0x{"00" * type_.with_shape(()).nbytes}"' if type_.size else ""
    return f"stablehlo.constant dense<{content}> : {tensor_text(type_)}"


def quoted(text: str) -> str:
    """A text as MLIR quotes it."""
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in text.encode()) + '"'


def _is_uniform(data: Any) -> bool:
    flat = data.reshape(-1).view(f"V{data.itemsize}")
    return bool((flat == flat[0]).all())


def package() -> ModuleType:
    """The package `jax`. Raises DocumentError, which says what to install, where it is missing."""
    try:
        import jax
        import jax.interpreters.mlir
    except ImportError as error:
        missing = "" if getattr(error, "name", "") in ("jax", None) else f" ({error})"
        raise DocumentError(f"modules of StableHLO are written with JAX{missing}: pip install 'tidu[jax]'") from None
    return jax


Shape = Sequence[Any]


def shapes_of(type_: Type | None, dims_of: Callable[[Shape], Shape] = tuple) -> Any:
    """What JAX traces a function for in the place of a value of a type, with `dims_of` a shape for its shape."""
    if type_ is None:
        raise UnwrittenError("an operand is detached, so its value is not in the document; resolve the document first")

    def shape(path: Path, leaf: TensorType) -> Any:
        return package().ShapeDtypeStruct(dims_of(leaf.shape), numpy_dtype(np, leaf.dtype))

    return pytree(type_, shape)


def require_types(case: Case, results: Sequence[Any], form: Callable[[Shape], Shape] = tuple) -> None:
    """Raises TypeError unless what JAX gives has the types of the results: shapes are compared in this form."""
    due = [leaf for t in case.results for _, leaf in arrays(t)]
    if [(form(a.shape), a.dtype) for a in results] != [(form(leaf.shape), numpy_dtype(np, leaf.dtype)) for leaf in due]:
        told = ", ".join(f"{a.dtype}{list(a.shape)}" for a in results)
        raise TypeError(f"it gives {told}, where {', '.join(map(str, due))} is due")


CALLED = "__callee_{}__"
"""The name of a function, by number, in the texts of others."""

CONSTANT = "stablehlo.constant"


def functions_of(module: Any, name: str, numbers: dict[str, int] | None = None) -> Iterator[tuple[str, str]]:
    """A function after those that it calls, but for those that have `numbers`, which say how many there were before."""
    from jaxlib.mlir import ir

    numbers = {} if numbers is None else numbers
    function = function_of(module, name)
    for op in operations_of(function):
        for attribute, symbols in list(symbols_in(op)):
            for symbol in symbols:
                if symbol not in numbers:
                    yield from functions_of(module, symbol, numbers)
            called = [ir.FlatSymbolRefAttr.get(CALLED.format(numbers[symbol])) for symbol in symbols]
            op.attributes[attribute] = ir.ArrayAttr.get(called) if attribute == _COMPUTATIONS else called[0]
    sizes = global_constants(function)
    for attribute in ("arg_attrs", "res_attrs"):
        if attribute in function.attributes:
            del function.attributes[attribute]
    if any(text is not None for text in sizes):
        from tidu_cli.adapters.jax.dims import size_name

        function.attributes["arg_attrs"] = ir.ArrayAttr.get([
            ir.DictAttr.get({} if text is None else {GLOBAL_CONSTANT: ir.StringAttr.get(size_name(text))}) for text in sizes
        ])  # fmt: skip
    function.attributes["sym_visibility"] = ir.StringAttr.get("private")
    numbers[name] = len(numbers)
    yield name, function.get_asm(use_local_scope=True, assume_verified=True).replace(f"@{name}", "@", 1)


GLOBAL_CONSTANT = "jax.global_constant"
"""The attribute of arguments that are known once shapes are: the name of a size, or an empty one."""


def global_constants(function: Any) -> list[str | None]:
    """The names in this attribute of a function's arguments."""
    from jaxlib.mlir import ir

    if "arg_attrs" not in function.attributes:
        return []
    attributes = [ir.DictAttr(a) for a in ir.ArrayAttr(function.attributes["arg_attrs"])]
    return [ir.StringAttr(a[GLOBAL_CONSTANT]).value if GLOBAL_CONSTANT in a else None for a in attributes]


def function_of(module: Any, name: str) -> Any:
    """The function of a module that has this name."""
    return next(op.operation for op in module.body.operations if op.name.value == name)


def custom_calls(module: Any) -> Iterator[str]:
    """The names of the functions that custom calls are of, wherever they stand."""
    for op in operations_of(module.operation):
        if op.name == "stablehlo.custom_call":
            yield str(op.attributes["call_target_name"]).strip('"')


def operations_of(op: Any) -> Iterator[Any]:
    """An operation and all that stand within it."""
    todo = [op]
    while todo:
        yield (operation := todo.pop())
        todo += [
            inner.operation for region in operation.regions for block in region.blocks for inner in reversed(list(block.operations))
        ]


_COMPUTATIONS = "called_computations"
"""The attribute of custom calls that names several functions."""


def symbols_in(op: Any) -> Iterator[tuple[str, list[str]]]:
    """The attributes of an operation that name functions, and the names."""
    from jaxlib.mlir import ir

    if op.name != CONSTANT:  # of which the bindings do not know every kind of value
        for attribute in op.attributes:
            value = op.attributes[attribute]
            if isinstance(value, ir.FlatSymbolRefAttr):
                yield attribute, [value.value]
            elif attribute == _COMPUTATIONS and len(value):
                yield attribute, [ir.FlatSymbolRefAttr(symbol).value for symbol in value]


def made_by(op: Any) -> str:
    """The text of an operation after the names of its results."""
    text: str = op.get_asm(use_local_scope=True)
    return text.partition(" = ")[2]
