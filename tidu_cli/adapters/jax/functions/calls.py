"""Equations that call jaxprs: these are read in their place."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tidu_cli.adapters.jax.functions.equation import Equation
from tidu_cli.adapters.jax.functions.known import Known, Value, known
from tidu_cli.adapters.jax.functions.library import own, sinc_call
from tidu_cli.adapters.jax.functions.operations import NoDerivativeError, takes_bits
from tidu_cli.errors import TiduError


def called(eq: Equation, *operands: Value) -> Sequence[Any]:
    """The jaxpr that an equation stands for, whatever the param is called."""
    if eq.reader.operations.always and not all(type(x) is Known for x in operands) and (sinc := sinc_call(eq)):
        return sinc(*operands)  # type: ignore[no-any-return]
    inner = next((eq.params[name] for name in ("jaxpr", "call_jaxpr", "fun_jaxpr", "call") if name in eq.params), None)
    if inner is None:
        raise eq.refused("it tells no jaxpr that it stands for")
    return eq.run(inner, operands, eq.needs)


def with_rule(eq: Equation, *operands: Value) -> Sequence[Any]:
    """A function that defines its derivative: as it is computed, or as an operation of the document.

    It is one unless that is not wanted, and also then where the derivative of what is computed is lost; there what has no rule that
    a graph can have is read as it is computed if only loops are in the way, of which forward mode knows the derivative. JAX's own
    functions become nodes that have the derivative. A rule that raises says none that could be kept: it guards what nothing moves.
    """
    reader = eq.reader
    if type(operands[0]) is not Known and _is_determinant(eq):
        return [eq.lifted(operands[0]).emit("det")]
    if all(type(x) is Known for x in operands) or not reader.operations.wants(eq.equation):
        return called(eq, *operands)
    if nodes := own(eq):
        return nodes(*operands)
    before = set(reader.closed)
    try:
        name = reader.operations.named(eq.equation, lambda types, compute: reader.made(types, compute).graph)
    except TiduError as error:
        for jaxpr in reader.closed.keys() - before:  # their graphs have operations that are defined no more
            del reader.closed[jaxpr]
        if isinstance(error, NoDerivativeError):
            return called(eq, *operands)
        if not reader.operations.always and not takes_bits(eq.params["call_jaxpr"].jaxpr):
            return called(eq, *operands)
        instead = "; rules=False (--no-rules) derives what it computes" if reader.operations.always else ""
        raise eq.refused(f"its rule cannot be written as a graph: {error}{instead}") from error
    reader.recorder.primitives = reader.operations.primitives
    return eq.emit_all(name, *[eq.lifted(x) for x in operands])


def _is_determinant(eq: Equation) -> bool:
    """Whether it is jax.numpy.linalg.det, which computes nothing else but has a rule: of it that of a primitive knows more."""
    source = eq.params["call_jaxpr"].jaxpr.debug_info.func_src_info or ""
    return source.startswith("_det at ") and "jax/_src/numpy/linalg.py" in source.replace("\\", "/")


def linear(eq: Equation, *operands: Value) -> Sequence[Any]:
    """A function that is said to be linear, as it is computed."""
    return eq.run(eq.params["callee"], operands, eq.needs)


def same(eq: Equation, *operands: Value) -> Sequence[Any]:
    """Equations that say where or how, and not what."""
    return operands


def of_package(eq: Equation, *operands: Value) -> Sequence[Any] | None:
    """An equation that another package defines, by the function of JAX that it says computes it; None if it names none."""
    compute = eq.equation.primitive.impl
    if (getattr(compute, "__module__", None) or "jax").partition(".")[0] in ("jax", "functools"):
        return None
    return eq.traced(partial(compute, **eq.params), *operands)


def platform(eq: Equation) -> Sequence[Any]:
    """The number of the branch for the CPU: the one that is written for all platforms, or for this one."""
    import numpy as np

    platforms = eq.params["platforms"]
    numbers = [k for k, some in enumerate(platforms) if some is None or "cpu" in some]
    if not numbers:
        raise eq.refused("it has no branch for the CPU")
    return [known(np.int32(numbers[0]))]


CALLS = {
    **dict.fromkeys(
        ("jit", "pjit", "closed_call", "call", "core_call", "eval_jaxpr", "remat2", "checkpoint", "remat_opt", "composite",
         "custom_vmap_call"), called),
    **dict.fromkeys(("custom_jvp_call", "custom_vjp_call"), with_rule),
    "linear_call": linear,
    **dict.fromkeys(
        ("device_put", "sharding_constraint", "layout_constraint", "reshard", "name", "pvary", "random_clone"), same),
    "platform_index": platform,
}  # fmt: skip
"""Equations that are read whether their operands are known or not, by the names of their primitives."""
