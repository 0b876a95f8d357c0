"""Equations that call jaxprs: these are read in their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidu_cli.build.jax.equations.equation import Equation
from tidu_cli.build.jax.known import Value, known


def called(eq: Equation, *operands: Value) -> Sequence[Any]:
    """The jaxpr that an equation stands for, whatever the param is called."""
    inner = next((eq.params[name] for name in ("jaxpr", "call_jaxpr", "fun_jaxpr", "call") if name in eq.params), None)
    if inner is None:
        raise eq.refused("it tells no jaxpr that it stands for")
    return eq.run(inner, operands, eq.needs)


def same(eq: Equation, *operands: Value) -> Sequence[Any]:
    """Equations that say where or how, and not what."""
    return operands


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
         "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_vmap_call"), called),
    **dict.fromkeys(
        ("device_put", "sharding_constraint", "layout_constraint", "reshard", "name", "pvary", "random_clone"), same),
    "platform_index": platform,
}  # fmt: skip
"""Equations that are read whether their operands are known or not, by the names of their primitives."""
