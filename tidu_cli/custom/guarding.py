"""Primitives of other packages, guarded: what goes wrong within their rules is told as theirs, and passes for no bug in tidu."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from tidu_cli.errors import EvaluationError, MissingRuleError, TiduError, TypeRuleError
from tidu_cli.graph.types import storage_dtype
from tidu_cli.lax.arrays.structural import dtype_name
from tidu_cli.rules.contract import Kernel, Primitive, Types
from tidu_cli.rules.families import changed

P = ParamSpec("P")
R = TypeVar("R")


def guarded(primitive: Primitive, package: str) -> Primitive:
    """The primitive with rules that raise TiduErrors only, which name it and the package where the rule itself has failed.

    Its evaluation is held to what its type rule says.
    """

    broken = f"in package {package} is broken"

    def guard(rule: Callable[P, R], what: str, kind: type[TiduError] = MissingRuleError) -> Callable[P, R]:
        def run(*args: P.args, **options: P.kwargs) -> R:
            try:
                return rule(*args, **options)
            except (TiduError, MemoryError):
                raise
            except Exception as error:
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                raise kind(f"op '{primitive.name}': its {what} {broken} ({reason})") from None

        return run

    def kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
        compute = guard(
            guard(primitive.evaluation.kernel, "evaluation", EvaluationError)(np, attrs, operands, results),
            "evaluation",
            EvaluationError,
        )

        def run(*arrays: Any) -> Any:
            found = compute(*arrays)
            for array, due in zip(found if len(results) > 1 else (found,), results, strict=True):
                given = _shown(array)
                held = str(due.with_dtype(storage_dtype(due.dtype)))
                if given != held:
                    raise EvaluationError(f"op '{primitive.name}': its evaluation {broken} (it gives {given} where {held} is due)")
            return found

        return run

    work = primitive.evaluation.work
    given: dict[str, Any] = {name: rule for name in _RULES if (rule := getattr(primitive.rules, name)) is not None}
    return changed(
        primitive,
        types=guard(primitive.domain.types, "type rule", TypeRuleError),
        kernel=kernel,
        flops=guard(primitive.evaluation.flops, "rule of flops", TypeRuleError),
        work=work and guard(work, "rule of work", TypeRuleError),
        n_results=guard(primitive.domain.n_results, "number of results", TypeRuleError),
        **{name: guard(rule, f"{_RULES[name]} rule") for name, rule in given.items()},
    )


_RULES = {"jvp": "JVP", "transpose": "transpose", "batch": "batch", "inlined": "inlining"}
"""Rules that a primitive may lack, and what messages call them."""


def _shown(array: Any) -> str:
    """The type of an array or NumPy scalar, in tidu's words; of anything else, its class."""
    if not hasattr(array, "dtype") or not hasattr(array, "shape"):
        return type(array).__name__
    return f"{dtype_name(array.dtype)}[{','.join(map(str, array.shape))}]"
