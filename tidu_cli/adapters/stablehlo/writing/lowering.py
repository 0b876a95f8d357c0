"""What JAX lowers a case of nodes to: operations of MLIR, whose texts are copied for all nodes of the case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from tidu_cli.adapters.stablehlo.writing.values import UnwrittenError, arrays, pytree
from tidu_cli.custom.packages import KNOWN
from tidu_cli.errors import DocumentError, MissingRuleError, Remedy
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.graph import Case
from tidu_cli.graph.open_sizes import is_open_case
from tidu_cli.graph.types import Path, TensorType, Type
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.vocabulary import PrimitiveSet


def package() -> ModuleType:
    """The package `jax`. Raises DocumentError, which says what to install, where it is missing."""
    try:
        import jax
        import jax.interpreters.mlir
    except ImportError as error:
        missing = "" if getattr(error, "name", "") in ("jax", None) else f" ({error})"
        raise DocumentError(f"modules of StableHLO are written with JAX{missing}: pip install 'tidu[jax]'") from None
    return jax


PLATFORMS = ("portable", "cpu")
"""For which JAX lowers, the first that it can: that is none that it knows, so that nothing is of one kind of machine."""

LIBRARIES = ("lapack_", "blas_", "stablehlo.dynamic_")
"""Beginnings of the names of functions that custom calls may be of: libraries that jaxlib brings on CPUs, and operations of
StableHLO that are of fixed sizes once numbers are put for open ones.
"""

CALLED = "__callee_{}__"
"""The name of a function, by number, in the texts of others."""

_CONSTANT = "stablehlo.constant"


class Lowered(Frozen, slots=False):
    """What a case is: functions, the last of which takes the operands' arrays and gives the results'; others are before callers.

    `functions` are the names that JAX gave them, and their texts, in which they have none. There are none if there is a `body`:
    that is of no more than one operation beside constants, and calls no function. Before operands they take the open `sizes`.
    """

    functions: Sequence[tuple[str, str]]
    body: Body | None
    sizes: Sequence[str] = ()


class Body(Frozen, slots=False):
    """A function of one operation: its text after the =, or an empty one for none; constants by their names; and names.

    `sizes` are by their names those of arguments before the others.
    """

    text: str
    sizes: Mapping[str, str]
    arguments: Sequence[str]
    constants: Mapping[str, str]
    made: Sequence[str]
    returned: Sequence[str]


def lowered(case: Case, primitives: PrimitiveSet) -> Lowered:
    """What a case is. Raises UnwrittenError."""
    case = replace(case, mask=None)
    return _builtin(case) if primitives is KNOWN or primitives is BUILTIN else _lowered(case, primitives)


@lru_cache(maxsize=4096)
def _builtin(case: Case) -> Lowered:
    return _lowered(case, BUILTIN)


def _lowered(case: Case, primitives: PrimitiveSet) -> Lowered:
    reason, is_open = "", is_open_case(case)
    if is_open:
        from tidu_cli.adapters.stablehlo.writing.sizes import open_module, sizes_first, way_out  # which fixed sizes do without
    for platform in PLATFORMS:
        try:
            module = open_module(case, primitives, platform) if is_open else _module(case, primitives, platform)
        except MissingRuleError as error:
            raise UnwrittenError(f"{error}; or write it with ", Remedy("format", "msgpack")) from None
        except (TypeError, ValueError, NotImplementedError) as error:
            reason = reason or f"is nothing that JAX takes: {str(error).partition(chr(10))[0]}"
            continue
        foreign = sorted({target for target in _custom_calls(module) if not target.startswith(LIBRARIES)})
        if not foreign:
            with module.context:
                return _lowering(module, *(sizes_first(module) if is_open else ("main", ())))
        reason = f"is a call of {', '.join(foreign)}, which files cannot rely on"
    if is_open:
        raise UnwrittenError(f"{case.op} of open sizes {reason}; give one a number: ", way_out(case))
    raise UnwrittenError(f"{case.op} {reason}; write it with ", Remedy("format", "msgpack"))


def _lowering(module: Any, main: str, sizes: Sequence[str]) -> Lowered:
    """What a function of a module is, which takes these sizes before all else."""
    body = _body(module, main, sizes)
    return Lowered([] if body else list(functions_of(module, main)), body, sizes)


def _module(case: Case, primitives: PrimitiveSet, platform: str) -> Any:
    from tidu_cli.adapters.jax.lowering.functions import jax_function

    jax = package()
    with jax.enable_x64(True):
        given = [shapes_of(t) for t in case.operands]
        traced = jax.jit(jax_function(case, primitives), keep_unused=True).trace(*given)
        require_types(case, jax.tree.leaves(traced.out_info))
        return traced.lower(lowering_platforms=(platform,)).compiler_ir("stablehlo")


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


def _body(module: Any, main: str, sizes: Sequence[str]) -> Body | None:
    block = function_of(module, main).regions[0].blocks[0]
    *operations, last = [op.operation for op in block.operations]
    others = [op for op in operations if op.name != _CONSTANT]
    if len(others) > 1 or any(any(symbols_in(inner)) for op in others for inner in _operations(op)):
        return None
    if others and others[0] != operations[-1]:
        return None  # a constant after it may have the name of a value of its regions
    return Body(
        made_by(others[0]) if others else "",
        dict(zip([v.get_name() for v in block.arguments], sizes, strict=False)),
        [v.get_name() for v in block.arguments][len(sizes) :],
        {op.result.get_name(): made_by(op) for op in operations if op.name == _CONSTANT},
        [v.get_name() for op in others for v in op.results],
        [v.get_name() for v in last.operands],
    )


def functions_of(module: Any, name: str, numbers: dict[str, int] | None = None) -> Iterator[tuple[str, str]]:
    """A function after those that it calls, but for those that have `numbers`, which say how many there were before."""
    from jaxlib.mlir import ir

    numbers = {} if numbers is None else numbers
    function = function_of(module, name)
    for op in _operations(function):
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
        from tidu_cli.adapters.jax.lowering.dims import size_name

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


def _custom_calls(module: Any) -> Iterator[str]:
    """The names of the functions that custom calls are of, wherever they stand."""
    for op in _operations(module.operation):
        if op.name == "stablehlo.custom_call":
            yield str(op.attributes["call_target_name"]).strip('"')


def _operations(op: Any) -> Iterator[Any]:
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

    if op.name != _CONSTANT:  # of which the bindings do not know every kind of value
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
