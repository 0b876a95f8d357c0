"""How many operations a module stands for, told before its functions are written out where they are called.

Of functions that each call the next one twice forty levels, in eight kilobytes, are a trillion calls.
"""

from __future__ import annotations

from tidu_cli.adapters.stablehlo.module import Function, Module
from tidu_cli.errors import LimitError
from tidu_cli.limits import ENDLESS, limits, more_than, written_out

CALLEES = {"func.call": "callee", "stablehlo.composite": "decomposition"}
"""By the operations that call a function, the attribute that names it."""


def require_written_out(module: Module, main: Function) -> None:
    """Raises LimitError if a function stands for more operations than the limit allows beyond those that are written.

    Linear in the module. Functions that call themselves, or that are not there, are for the importer to refuse.
    """
    bodies = {name: list(function.operations()) for name, function in module.functions.items()}
    callees = {name: [str(o.attributes.get(CALLEES[o.name])) for o in body if o.name in CALLEES] for name, body in bodies.items()}
    size = written_out(main.name, {name: len(body) for name, body in bodies.items()}, callees)
    allowed = limits().expansion
    if size > sum(map(len, bodies.values())) + allowed:
        told = f"{size:,} operations" if size < ENDLESS else "more operations than can be counted"
        raise LimitError(
            f"@{main.name}: its functions, written out where they are called, stand for {told}, {more_than('expansion', allowed)}"
        )
