"""What JAX lowers a case of nodes to: operations of MLIR, whose texts are copied for all nodes of the case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from tidu_cli.adapters.stablehlo import text as mlir
from tidu_cli.custom.packages import KNOWN
from tidu_cli.errors import MissingRuleError, Remedy
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.graph import Case
from tidu_cli.graph.open_sizes import is_open_case
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.vocabulary import PrimitiveSet

PLATFORMS = ("portable", "cpu")
"""For which JAX lowers, the first that it can: that is none that it knows, so that nothing is of one kind of machine."""

LIBRARIES = ("lapack_", "blas_", "stablehlo.dynamic_")
"""Beginnings of the names of functions that custom calls may be of: libraries that jaxlib brings on CPUs, and operations of
StableHLO that are of fixed sizes once numbers are put for open ones.
"""


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
        from tidu_cli.adapters.stablehlo.open_sizes import open_module, sizes_first, way_out  # which fixed sizes do without
    for platform in PLATFORMS:
        try:
            module = open_module(case, primitives, platform) if is_open else _module(case, primitives, platform)
        except MissingRuleError as error:
            raise mlir.UnwrittenError(f"{error}; or write it with ", Remedy("format", "msgpack")) from None
        except (TypeError, ValueError, NotImplementedError) as error:
            reason = reason or f"is nothing that JAX takes: {str(error).partition(chr(10))[0]}"
            continue
        foreign = sorted({target for target in mlir.custom_calls(module) if not target.startswith(LIBRARIES)})
        if not foreign:
            with module.context:
                main, sizes = sizes_first(module) if is_open else ("main", [])
                body = _body(module, main, sizes)
                return Lowered([] if body else list(mlir.functions_of(module, main)), body, sizes)
        reason = f"is a call of {', '.join(foreign)}, which files cannot rely on"
    if is_open:
        raise mlir.UnwrittenError(f"{case.op} of open sizes {reason}; give one a number: ", way_out(case))
    raise mlir.UnwrittenError(f"{case.op} {reason}; write it with ", Remedy("format", "msgpack"))


def _module(case: Case, primitives: PrimitiveSet, platform: str) -> Any:
    from tidu_cli.adapters.jax.lowering.functions import jax_function

    jax = mlir.package()
    with jax.enable_x64(True):
        given = [mlir.shapes_of(t) for t in case.operands]
        traced = jax.jit(jax_function(case, primitives), keep_unused=True).trace(*given)
        mlir.require_types(case, jax.tree.leaves(traced.out_info))
        return traced.lower(lowering_platforms=(platform,)).compiler_ir("stablehlo")


def _body(module: Any, main: str, sizes: Sequence[str]) -> Body | None:
    block = mlir.function_of(module, main).regions[0].blocks[0]
    *operations, last = [op.operation for op in block.operations]
    others = [op for op in operations if op.name != mlir.CONSTANT]
    if len(others) > 1 or any(any(mlir.symbols_in(inner)) for op in others for inner in mlir.operations_of(op)):
        return None
    if others and others[0] != operations[-1]:
        return None  # a constant after it may have the name of a value of its regions
    arguments = [v.get_name() for v in block.arguments]
    return Body(
        mlir.made_by(others[0]) if others else "",
        dict(zip(arguments, sizes, strict=False)),
        arguments[len(sizes) :],
        {op.result.get_name(): mlir.made_by(op) for op in operations if op.name == mlir.CONSTANT},
        [v.get_name() for op in others for v in op.results],
        [v.get_name() for v in last.operands],
    )
