"""What JAX lowers a case of nodes to: operations of MLIR, which are copied for all nodes of the case."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidu_cli.errors import MissingRuleError
from tidu_cli.formats.stablehlo.package import package
from tidu_cli.formats.stablehlo.writing.values import UnwrittenError, pytree
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import Path, TensorType, Type
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.rules.vocabulary import PrimitiveSet

PLATFORMS = ("portable", "cpu")
"""For which JAX lowers, the first that can: the first is none that JAX knows, so that nothing is of one kind of machine."""

LIBRARIES = ("lapack_", "blas_")
"""Beginnings of the names of functions that custom calls may be of: libraries that jaxlib brings on CPUs."""


def lowered(case: Case, primitives: PrimitiveSet) -> Any:
    """The module of a case, whose function @main takes the operands' arrays and gives the results'. Raises UnwrittenError."""
    reason = ""
    for platform in PLATFORMS:
        try:
            module = _lowered(case, primitives, platform)
        except (MissingRuleError, TypeError, ValueError, NotImplementedError) as error:
            reason = reason or str(error).partition("\n")[0]
            continue
        foreign = sorted({target for target in _custom_calls(module) if not target.startswith(LIBRARIES)})
        if not foreign:
            return module
        reason = f"is a call of {', '.join(foreign)}, which modules in files cannot rely on"
    raise UnwrittenError(f"{case.op} {reason}; write --format msgpack")


def _lowered(case: Case, primitives: PrimitiveSet, platform: str) -> Any:
    from tidu_cli.runtime.jax.functions import jax_function

    jax = package()
    with jax.enable_x64(True):
        function = jax_function(case, primitives)
        given = [_shapes(t) for t in case.operands]
        traced = jax.jit(function, keep_unused=True).trace(*given)
        return traced.lower(lowering_platforms=(platform,)).compiler_ir("stablehlo")


def _shapes(type_: Type | None) -> Any:
    if type_ is None:
        raise UnwrittenError("an operand is detached, so its value is not in the document; resolve the document first")

    def shape(path: Path, leaf: TensorType) -> Any:
        import numpy as np

        return package().ShapeDtypeStruct(leaf.shape, numpy_dtype(np, leaf.dtype))

    return pytree(type_, shape)


def _custom_calls(module: Any) -> Iterator[str]:
    """The names of the functions that custom calls are of, wherever they stand."""
    for op in operations(module.operation):
        if op.name == "stablehlo.custom_call":
            yield str(op.attributes["call_target_name"]).strip('"')


def operations(op: Any) -> Iterator[Any]:
    """An operation and all that stand within it."""
    todo = [op]
    while todo:
        yield (found := todo.pop())
        todo += [inner.operation for region in found.regions for block in region.blocks for inner in block.operations]
