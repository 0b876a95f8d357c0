"""What JAX lowers a case of nodes to: operations of MLIR, whose texts are copied for all nodes of the case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from tidu_cli.adapters.stablehlo.writing.values import UnwrittenError, arrays, pytree
from tidu_cli.custom.packages import KNOWN
from tidu_cli.errors import DocumentError, MissingRuleError, Remedy
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.graph import Case
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

LIBRARIES = ("lapack_", "blas_")
"""Beginnings of the names of functions that custom calls may be of: libraries that jaxlib brings on CPUs."""

CALLED = "__callee_{}__"
"""The name of a function, by number, in the texts of others."""

_CONSTANT = "stablehlo.constant"


class Lowered(Frozen, slots=False):
    """What a case is: functions, the last of which takes the operands' arrays and gives the results'; others are before callers.

    `functions` are the names that JAX gave them, and their texts, in which they have none. There are none if there is a `body`:
    that is of no more than one operation beside constants, and calls no function.
    """

    functions: Sequence[tuple[str, str]]
    body: Body | None


class Body(Frozen, slots=False):
    """A function of one operation: its text after the =, or an empty one for none; constants by their names; and names."""

    text: str
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
    reason = ""
    for platform in PLATFORMS:
        try:
            module = _module(case, primitives, platform)
        except MissingRuleError as error:
            raise UnwrittenError(f"{error}; or write it with ", Remedy("format", "msgpack")) from None
        except (TypeError, ValueError, NotImplementedError) as error:
            reason = reason or f"is nothing that JAX takes: {str(error).partition(chr(10))[0]}"
            continue
        foreign = sorted({target for target in _custom_calls(module) if not target.startswith(LIBRARIES)})
        if not foreign:
            with module.context:
                body = _body(module)
                return Lowered([] if body else list(_functions(module, "main", {})), body)
        reason = f"is a call of {', '.join(foreign)}, which files cannot rely on"
    raise UnwrittenError(f"{case.op} {reason}; write it with ", Remedy("format", "msgpack"))


def _module(case: Case, primitives: PrimitiveSet, platform: str) -> Any:
    from tidu_cli.adapters.jax.lowering.functions import jax_function

    jax = package()
    with jax.enable_x64(True):
        given = [_shapes(t) for t in case.operands]
        traced = jax.jit(jax_function(case, primitives), keep_unused=True).trace(*given)
        _require_types(case, jax.tree.leaves(traced.out_info))
        return traced.lower(lowering_platforms=(platform,)).compiler_ir("stablehlo")


def _shapes(type_: Type | None) -> Any:
    if type_ is None:
        raise UnwrittenError("an operand is detached, so its value is not in the document; resolve the document first")

    def shape(path: Path, leaf: TensorType) -> Any:
        return package().ShapeDtypeStruct(leaf.shape, numpy_dtype(np, leaf.dtype))

    return pytree(type_, shape)


def _require_types(case: Case, results: Sequence[Any]) -> None:
    """Raises TypeError unless what JAX gives has the types of the results."""
    due = [leaf for t in case.results for _, leaf in arrays(t)]
    if [(a.shape, a.dtype) for a in results] != [(leaf.shape, numpy_dtype(np, leaf.dtype)) for leaf in due]:
        told = ", ".join(f"{a.dtype}{list(a.shape)}" for a in results)
        raise TypeError(f"it gives {told}, where {', '.join(map(str, due))} is due")


def _body(module: Any) -> Body | None:
    block = _function(module, "main").regions[0].blocks[0]
    *operations, last = [op.operation for op in block.operations]
    others = [op for op in operations if op.name != _CONSTANT]
    if len(others) > 1 or any(any(_symbols(inner)) for op in others for inner in _operations(op)):
        return None
    if others and others[0] != operations[-1]:
        return None  # a constant after it may have the name of a value of its regions
    return Body(
        _made_by(others[0]) if others else "",
        [v.get_name() for v in block.arguments],
        {op.result.get_name(): _made_by(op) for op in operations if op.name == _CONSTANT},
        [v.get_name() for op in others for v in op.results],
        [v.get_name() for v in last.operands],
    )


def _functions(module: Any, name: str, numbers: dict[str, int]) -> Iterator[tuple[str, str]]:
    """A function after those that it calls, but for those that have `numbers`, which say how many there were before."""
    from jaxlib.mlir import ir

    function = _function(module, name)
    for op in _operations(function):
        for attribute, symbol in list(_symbols(op)):
            if symbol not in numbers:
                yield from _functions(module, symbol, numbers)
            op.attributes[attribute] = ir.FlatSymbolRefAttr.get(CALLED.format(numbers[symbol]))
    for attribute in ("arg_attrs", "res_attrs"):
        if attribute in function.attributes:
            del function.attributes[attribute]
    function.attributes["sym_visibility"] = ir.StringAttr.get("private")
    numbers[name] = len(numbers)
    yield name, function.get_asm(use_local_scope=True, assume_verified=True).replace(f"@{name}", "@", 1)


def _function(module: Any, name: str) -> Any:
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


def _symbols(op: Any) -> Iterator[tuple[str, str]]:
    """The attributes of an operation that name functions, and the names."""
    from jaxlib.mlir import ir

    if op.name != _CONSTANT:  # of which the bindings do not know every kind of value
        for attribute in op.attributes:
            if isinstance(value := op.attributes[attribute], ir.FlatSymbolRefAttr):
                yield attribute, value.value


def _made_by(op: Any) -> str:
    """The text of an operation after the names of its results."""
    text: str = op.get_asm(use_local_scope=True)
    return text.partition(" = ")[2]
