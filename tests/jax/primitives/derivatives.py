"""The four things that are compared: values, JVP, VJP, and forward over reverse, of tidu and of JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.jax.lowering.compiled import compiled
from tests.jax.primitives.own import function_of_jax
from tidu_cli.checking.numeric.trials import one_node_document
from tidu_cli.graph.graph import Case
from tidu_cli.graph.keys import Key
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.runtime.plans.program import compile_graph
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

KINDS = ("value", "jvp", "vjp", "second")
"""What is compared: of results y, operands x, tangents v and cotangents u: y; dy along v; the cotangents of x for u; and the
derivative of those along v, with u held fixed."""

Arrays = list[Any]


@dataclass(frozen=True)
class Problem:
    """A primitive at a point: operands, and for those that are differentiated tangents; for smooth results cotangents."""

    case: Case
    operands: Arrays
    tangents: dict[int, Any]
    cotangents: dict[int, Any]


def problem(case: Case, operands: Sequence[Any], rng: Any, *, derivatives: bool = True) -> Problem:
    """The problem at these operands, in drawn directions away from 0; without any if the case is not to be differentiated."""
    inert = BUILTIN[case.op].rules.inert
    tangents = {k: _direction(rng, x) for k, x in enumerate(operands) if derivatives and _inexact(x) and k not in inert}
    results = [k for k, t in enumerate(case.results) if t.inexact and tangents]
    cotangents = {k: _direction(rng, np.zeros(case.results[k].shape, _numpy(case.results[k]))) for k in results}
    return Problem(case, list(operands), tangents if cotangents else {}, cotangents)


def _numpy(type_: Any) -> Any:
    from tidu_cli.lax.arrays.structural import numpy_dtype

    return numpy_dtype(np, type_.dtype)


def _inexact(x: Any) -> bool:
    return np.asarray(x).dtype.kind in "fcV"


def _direction(rng: Any, like: Any) -> Any:
    drawn = rng.uniform(0.5, 1.5, np.shape(like)) * rng.choice([-1, 1], np.shape(like))
    if like.dtype.kind == "c":
        drawn = drawn + 1j * rng.uniform(0.5, 1.5, np.shape(like))
    return np.asarray(drawn, like.dtype)


def of_tidu(p: Problem) -> dict[str, Arrays]:
    """What tidu's transforms and kernels give, by kind; structural zeros are written out."""
    document = one_node_document(p.case)
    x = {Key(f"x{k}"): value for k, value in enumerate(p.operands)}
    by_kind = {"value": _run(document, x)}
    if not p.tangents:
        return by_kind
    wrt = [Key(f"x{k}") for k in p.tangents]
    outputs = [Key(f"y{k}") for k in p.cotangents]
    forward = linearize(document, wrt, outputs=outputs)
    by_kind["jvp"] = _run(forward, x | {Key(f"x{k}").tangent(1): v for k, v in p.tangents.items()})
    u = {Key(f"y{k}").cotangent(1): c for k, c in p.cotangents.items()}
    reverse = transpose(forward)
    by_kind["vjp"] = _ordered(reverse, x | u, [key.cotangent(1) for key in wrt], p)
    second = linearize(reverse, wrt)
    along = {Key(f"x{k}").tangent(2): v for k, v in p.tangents.items()}
    by_kind["second"] = _ordered(second, x | u | along, [key.cotangent(1).tangent(2) for key in wrt], p)
    return by_kind


def _run(document: Any, values: dict[Key, Any]) -> Arrays:
    program = compile_graph(materialize(document).head, BUILTIN)
    with np.errstate(all="ignore"):
        return [np.asarray(y) for y in program.run({i.key: values[i.key] for i in program.inputs})]


def _ordered(document: Any, values: dict[Key, Any], keys: Sequence[Key], p: Problem) -> Arrays:
    """The head's outputs in the order of these keys, and zeros where there is none."""
    results = dict(zip((o.key for o in document.head.outputs), _run(document, values), strict=True))
    return [results.get(key, np.zeros_like(p.operands[k])) for key, k in zip(keys, p.tangents, strict=True)]


def of_jax(p: Problem, kinds: Sequence[str] = KINDS) -> dict[str, Arrays]:
    """What JAX gives, in our convention: our cotangent is conj(vjp(conj(ct))), by the pairing Re(conj(a) b)."""
    return all_of_jax([(p, kinds)])[0]


def all_of_jax(asked: Sequence[tuple[Problem, Sequence[str]]]) -> list[dict[str, Arrays]]:
    """What JAX gives of some kinds at each of these problems, in one program."""
    functions = [_everything(p, kinds) for p, kinds in asked]
    # As arguments, all of them: XLA evaluates constants otherwise than what it compiles.
    given = [(p.operands, tuple(p.tangents.values()), tuple(p.cotangents.values())) for p, _ in asked]
    results = compiled(lambda given: [function(*of) for function, of in zip(functions, given, strict=True)])(given)
    return [{kind: [np.asarray(y) for y in ys] for kind, ys in of.items()} for of in results]


def _everything(p: Problem, kinds: Sequence[str]) -> Callable[..., dict[str, Any]]:
    """The function of operands, tangents and cotangents whose results by kind are to be compared."""
    import jax

    function = function_of_jax(p.case)
    moving, smooth = list(p.tangents), list(p.cotangents)

    def everything(operands: Arrays, vs: tuple[Any, ...], us: tuple[Any, ...]) -> dict[str, Any]:
        def outputs(*xs: Any) -> tuple[Any, ...]:
            at = dict(zip(moving, xs, strict=True))
            results = function(*(at.get(k, x) for k, x in enumerate(operands)))
            return tuple(results[k] for k in smooth)

        def pull(*xs: Any) -> tuple[Any, ...]:
            _, pullback = jax.vjp(outputs, *xs)
            return tuple(g.conj() for g in pullback(tuple(u.conj() for u in us)))

        xs = tuple(operands[k] for k in moving)
        steps = {
            "value": lambda: function(*operands),
            "jvp": lambda: jax.jvp(outputs, xs, vs)[1],
            "vjp": lambda: pull(*xs),
            "second": lambda: jax.jvp(pull, xs, vs)[1],
        }
        return {kind: steps[kind]() for kind in kinds if moving or kind == "value"}

    return everything
