"""Functions of JAX's own that define their derivative, as nodes of which calculus gives this derivative, of any order.

They are known by the object of their rule, which JAX keeps with an equation: not by a name, which users may choose as well, nor by
what they compute, to which users may give another rule. What is not known here is an operation of the document with its rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from types import FunctionType
from typing import Any

from tidu_cli.adapters.jax.functions.equation import Equation, spread
from tidu_cli.adapters.jax.functions.jaxpr import Value, equations_within
from tidu_cli.adapters.jax.functions.matrices import custom_root
from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.numpy.elementwise.elementary import sinc as numpy_sinc
from tidu_cli.adapters.numpy.numpy.elementwise.elementwise import as_op
from tidu_cli.adapters.numpy.numpy.elementwise.special import SPECIAL, safe
from tidu_cli.adapters.numpy.numpy.elementwise.special_parameters import GENERAL
from tidu_cli.adapters.numpy.numpy.indexing import filled, select
from tidu_cli.frozen import Frozen

Nodes = Callable[..., Any]
"""From operands of one shape to the result, or a tuple of results."""


class Origin(Frozen):
    """How functions of an equation's rule are read, which of their arguments are fixed, and whether vmap added axes."""

    how: Any
    fixed: tuple[Any, ...]
    mapped: bool


def origin_of(equation: Any) -> Origin | None:
    """The origin of an equation of `jax.custom_jvp` or `custom_vjp`, by what JAX wrapped the rule in; None if that is not found."""
    fixed: tuple[Any, ...] = ()
    mapped = False
    seen: set[int] = set()
    pending: list[Any] = [equation.params.get("jvp_jaxpr_fun"), equation.params.get("bwd")]
    while pending:
        here = pending.pop()
        if id(here) in seen:
            continue
        seen.add(id(here))
        if hasattr(here, "transforms") and hasattr(here, "f"):
            for transform, params in here.transforms:
                name = getattr(transform, "__name__", "")
                mapped = mapped or "batch" in name
                if "static_args" in name:
                    fixed = tuple(getattr(x, "val", x) for x in params[0])
            pending.append(here.f)
        elif id(here) in _rules():
            return Origin(_rules()[id(here)], fixed, mapped)
        elif isinstance(here, FunctionType) and here.__module__.startswith(_WRAPPERS):
            pending += [c.cell_contents for c in here.__closure__ or () if _is_wrapped(c)]
    return None


_WRAPPERS = ("jax._src.custom_derivatives", "jax._src.interpreters.", "jax._src.linear_util")
"""Modules whose functions wrap rules; others' closures are of users."""


def _is_wrapped(cell: Any) -> bool:
    try:
        value = cell.cell_contents
    except ValueError:  # empty
        return False
    return isinstance(value, FunctionType) or (hasattr(value, "transforms") and hasattr(value, "f"))


def own(eq: Equation) -> Callable[..., Sequence[Any]] | None:
    """What reads an equation of one of JAX's own functions; None for those of others, and for what has no such nodes."""
    origin = origin_of(eq.equation)
    if origin is None:
        return None
    how = origin.how
    if how is BY_CHOICE:
        return None if any(t.complex for t in eq.results) else partial(_by_choice, eq)
    if how is AS_COMPUTED:
        return partial(_as_computed, eq)
    if how is AS_A_ROOT:
        lengths, jaxprs = origin.fixed
        plain = not origin.mapped and len(jaxprs.solve.out_avals) == len(jaxprs.f.out_avals)  # without what has_aux=True adds
        return partial(custom_root, eq, lengths, jaxprs) if plain else None
    if any(t.complex for t in eq.results) or not _aligned(eq, origin.mapped):
        return None
    nodes = how(*origin.fixed) if origin.fixed else how
    return partial(_elementwise, eq, nodes) if nodes is not None else None


def _elementwise(eq: Equation, nodes: Nodes, *operands: Value) -> Sequence[Any]:
    shape = eq.results[0].shape
    results = nodes(*[spread(eq.lifted(x), shape) for x in operands[eq.params.get("num_consts", 0) :]])
    return results if isinstance(results, tuple) else [results]


def _by_choice(eq: Equation, *operands: Value) -> Sequence[Any]:
    return eq.reader.choosing().run(eq.params["call_jaxpr"].jaxpr, eq.params["call_jaxpr"].consts, operands, eq.needs)  # type: ignore[no-any-return]


def _as_computed(eq: Equation, *operands: Value) -> Sequence[Any]:
    return eq.run(eq.params["call_jaxpr"], operands, eq.needs)


def _aligned(eq: Equation, mapped: bool) -> bool:
    """Whether operands meet element by element as they lie: vmap may have put axes at any place, which equal sizes would hide."""
    shape = eq.results[0].shape
    if any(v.aval.shape not in ((), shape) for v in eq.equation.invars[eq.params["num_consts"] :]):
        return False
    return not mapped or len(set(shape)) == len(shape)


def chosen(op: str, eq: Equation, *operands: Array) -> Array:
    """max, min or abs as a choice, whose derivative is that of the chosen: in ties of the second operand, or of the constant."""
    x, *rest = (spread(operand, eq.results[0].shape) for operand in operands)
    if op == "abs":
        return select(x <= 0, -x, x)
    return select(x.emit("le" if op == "max" else "ge", rest[0]), rest[0], x)


CHOICES: Mapping[str, Callable[..., Array]] = {name: partial(chosen, name) for name in ("max", "min", "abs")}
"""Kinks of a body that is read by choice."""

BY_CHOICE = "by choice"
"""Functions read as they are computed, but with `max`, `min` and `abs` as choices, `CHOICES`.

relu has no slope at 0 then, nor relu6 at 6; and in logaddexp two kinks cancel, so that it is as smooth as its formula.
"""

AS_COMPUTED = "as computed"
"""Functions whose rule is only faster, or takes less memory, than what comes of how they are computed."""

AS_A_ROOT = "as a root"
"""`jax.lax.custom_root`, whose rule is that of a root."""


def _log1mexp(x: Array) -> Array:
    """ln(1 - e⁻ˣ), of the logarithm that keeps digits, each taken of a number where it is not chosen."""
    near = x < math.log(2)
    log = (-(-safe(near, x, 1.0)).emit("expm1")).emit("log")
    return select(near, log, (-(-select(near, filled(x, 1), x)).emit("exp")).emit("log1p"))


def _expn(n: Any) -> Nodes | None:
    """The exponential integral of a fixed order."""
    if not isinstance(n, int) and (getattr(n, "shape", None) != () or hasattr(n, "_trace")):
        return None
    order = int(n)
    return (lambda x: x.emit("expn", n=order)) if order == n and order > 0 else None


def _sinc_derivative(k: int) -> Nodes:
    """The derivative of order k of sin x / x near 0, by its series: JAX asks for it at 0 alone."""

    def series(x: Array) -> Array:
        total = filled(x, 0)
        for j in range((k + 1) // 2 + _TERMS, (k + 1) // 2 - 1, -1):
            coefficient = (-1) ** j / (2 * j + 1) / math.factorial(2 * j - k)
            total = total * x.emit("square") + coefficient
        return total * x if k % 2 else total

    return series


_TERMS = 6
"""Further derivatives are right up to twice as many."""


def sinc_call(eq: Equation) -> Nodes | None:
    """What reads a call of `jnp.sinc`, whose derivatives of the quotient lose all digits near 0; None for other calls."""
    if eq.params.get("name") != "sinc" or len(eq.equation.invars) != 1 or len(eq.equation.outvars) != 1:
        return None
    within = list(equations_within(eq.params["jaxpr"].jaxpr))
    origins = [origin_of(e) for e in within if e.primitive.name == "custom_jvp_call"]
    origin = origins[0] if len(origins) == 1 else None
    whole = origin is not None and origin.how is _sinc_derivative and tuple(origin.fixed) == (0,)
    plain = sum(e.primitive.name in ("sin", "cos") for e in within) == 1 and not eq.results[0].complex
    return partial(_elementwise, eq, numpy_sinc) if whole and plain else None


@cache
def _rules() -> dict[int, Any]:
    """How JAX's functions are read, by the ids of their rules, which live as long as JAX; without those that this version lacks."""
    import importlib

    ways: dict[str, dict[str, Any]] = {
        "jax._src.nn.functions": {
            "relu": BY_CHOICE, "relu6": BY_CHOICE, "_softmax": AS_COMPUTED, "log1mexp": _log1mexp,
        },
        "jax._src.lax.control_flow.solves": {"_custom_root": AS_A_ROOT},
        "jax._src.lax.other": {"logaddexp": BY_CHOICE, "logaddexp2": BY_CHOICE},
        "jax._src.numpy.lax_numpy": {"_i0": SPECIAL["i0"]},
        "jax._src.numpy.linalg": dict.fromkeys(("_slogdet_small", "_slogdet_lu", "_slogdet_qr", "_det", "_pinv"), AS_COMPUTED),
        "jax._src.numpy.ufuncs": {"_sinc_maclaurin": _sinc_derivative},
        "jax._src.scipy.special": {
            "_erfcx": SPECIAL["erfcx"], "_dawsn": SPECIAL["dawsn"], "logit": SPECIAL["logit"], "xlogy": SPECIAL["xlogy"],
            "xlog1py": SPECIAL["xlog1py"], "zeta": as_op("zeta"),
            "log_ndtr": lambda order: SPECIAL["log_ndtr"], "expi": SPECIAL["expi"], "sici": SPECIAL["sici"], "expn": _expn,
            "poch": GENERAL["poch"], "_owens_t_impl": SPECIAL["owens_t"],
        },
        "jax.experimental.ode": {"_odeint": AS_COMPUTED},
        "jax._src.third_party.scipy.special": {"fresnel": SPECIAL["fresnel"]},
    }  # fmt: skip
    rules: dict[int, Any] = {}
    for module, functions in ways.items():
        try:
            library = importlib.import_module(module)
        except ImportError:
            continue
        for name, how in functions.items():
            function = getattr(library, name, None)
            rule = getattr(function, "jvp", None) or getattr(function, "bwd", None)
            if rule is not None:
                rules[id(rule)] = how
    return rules
