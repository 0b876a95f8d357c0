"""Gradients that tidu derives, on each of its engines, beside hand-written JAX, CasADi and autograd, by turns in one process.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.engines [WORK ...] [--markdown]

`jax.jit` is `jax.jit(jax.grad(f))` of the function as one writes it in JAX, CasADi the virtual machine of its SX, and autograd the
function of NumPy with autograd's `numpy`. All are made ready before, take and give arrays of NumPy in f64, and agree. Times are the
least of as many turns as some seconds allow, from 5 to 301, in which each comes once, in an order that is drawn; ratios are medians
of those of the turns. (The threads of BLAS keep a core busy for a while after a product, which would count for whoever comes next.)
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import autograd
import jax
import numpy as np
from autograd import numpy as autograd_numpy
from jax import lax
from jax import numpy as jnp

import tidu_cli as tidu
from benchmarks import xla
from benchmarks.generate import SHAPES
from benchmarks.native import casadi_gradient
from benchmarks.xla import Problem, attention_by, normal, sample
from tidu_cli.errors import EvaluationError
from tidu_cli.runtime.choosing import FEW, MANY, chosen

ENGINES = ("numpy", "native", "xla")
OTHERS = ("jax.jit", "autograd", "CasADi")
SECONDS = 3.0

Calls = dict[str, Callable[[], Any]]
"""The contestants by name; each gives its gradient."""


# The work.


def kalman(theta: Any, y: Any) -> Any:
    """The likelihood of samples/kalman in JAX."""
    motion, push, seen = map(jnp.asarray, sample("kalman", "kalman").model())
    strength, noise = jnp.exp(2 * theta)

    def observe(state: Any, place: Any) -> Any:
        mean, covariance = state
        innovation = place - seen @ mean
        factor = jnp.linalg.cholesky(seen @ covariance @ seen.T + noise * jnp.eye(2))
        whitened = jnp.linalg.solve(factor, innovation)
        gain = jnp.linalg.solve(factor, seen @ covariance).T
        likelihood = -whitened @ whitened / 2 - jnp.sum(jnp.log(jnp.diagonal(factor))) - jnp.log(2 * jnp.pi)
        mean, covariance = mean + gain @ whitened, covariance - gain @ gain.T
        return (motion @ mean, motion @ covariance @ motion.T + strength * push), likelihood

    return jnp.sum(lax.scan(observe, (jnp.zeros(4), jnp.eye(4)), y)[1])


def swing(steps: int, repeat: Callable[..., Any], xp: Any) -> Callable[[Any], Any]:
    """The angle of a pendulum after steps of the symplectic Euler method; `repeat` is a scan without slices."""

    def step(state: Any, _: Any) -> Any:
        q, p = state
        p = p - 1e-3 * xp.sin(q)
        return (q + 1e-3 * p, p), None

    return lambda angle: repeat(step, (angle, 0.0), None, length=steps)[0][0]


def problems() -> dict[str, Callable[[], tuple[Problem, Callable[..., Any] | None]]]:
    """Functions of arrays and loops, each with a function for autograd where it can have one."""
    makers: dict[str, Callable[[], Problem]] = {name: xla.PROBLEMS[name] for name in ("gmm-small", "gmm", "lstm-loop", "convnet")}
    makers["attention"] = lambda: Problem(
        "attention, 64 × 64", attention_by(jnp), [*[normal(64, 64) for _ in range(4)], normal(1, 64, 64)], 4, attention_by(np)
    )
    makers["kalman"] = lambda: Problem(
        "Kalman filter, 200 observations", kalman, [np.array([0.1, -0.7]), normal(200, 2)], 1,
        lambda theta, y: sample("kalman", "kalman").log_likelihood(theta, y),
    )  # fmt: skip
    makers["pendulum"] = lambda: Problem(
        "pendulum, 10⁵ steps", swing(10**5, lax.scan, jnp), [np.array(0.5)], 1, lambda angle: swing(10**5, tidu.scan, np)(angle)
    )
    by_autograd = {"gmm-small": _mixture, "gmm": _mixture, "attention": lambda: attention_by(autograd_numpy)}
    return {name: partial(lambda name, make: (make(), by_autograd.get(name, _none)()), name, make) for name, make in makers.items()}


def _mixture() -> Callable[..., Any]:
    module = sample("adbench", "gmm")
    module.np = autograd_numpy  # type: ignore[attr-defined]
    return lambda *args: module.objective(*args)


def _none() -> None:
    return None


def of_problem(make: Callable[[], tuple[Problem, Callable[..., Any] | None]]) -> tuple[str, Any, Calls]:
    """The name of a problem, the gradient as a graph, and the contestants. Raises AssertionError where they differ."""
    problem, by_autograd = make()
    assert problem.numpy is not None
    wrt = tuple(range(problem.n_wrt))
    document = tidu.trace(problem.numpy, *problem.args)
    gradient = tidu.grad(document, [i.key for i in document.head.inputs][: problem.n_wrt])
    calls = of_engines(gradient, dict(zip([i.key for i in document.head.inputs], problem.args, strict=True)))
    theirs = jax.jit(jax.grad(problem.function, wrt))
    calls["jax.jit"] = lambda: [np.asarray(y) for y in theirs(*problem.args)]
    if by_autograd is not None:
        derived = autograd.grad(by_autograd, wrt)
        calls["autograd"] = lambda: derived(*problem.args)
    return problem.name, gradient, calls


def of_scalars(shape: str, n: int) -> tuple[str, Any, Calls]:
    """Likewise of a graph of scalars of `benchmarks.generate`, against CasADi."""
    document = SHAPES[shape](n)
    keys = [i.key for i in document.head.inputs]
    gradient = tidu.grad(document, keys)
    point = np.random.default_rng(0).uniform(-1, 1, len(keys))
    calls = of_engines(gradient, dict(zip(keys, point, strict=True)), "numpy", "native")
    other = casadi_gradient(document)
    buffers, evaluate = other.buffer()
    result = np.zeros(len(keys))

    def run() -> list[Any]:
        buffers.set_arg(0, memoryview(point))  # here, as it keeps none of them alive
        buffers.set_res(0, memoryview(result))
        evaluate()
        return list(result)

    return f"{shape}, {n:,} nodes", gradient, calls | {"CasADi": run}


def of_engines(gradient: Any, inputs: Mapping[Any, Any], *names: str) -> Calls:
    """The calls of a gradient by engine, of those that take it."""
    needed = {str(i.key) for i in gradient.head.inputs}
    given = {str(key): value for key, value in inputs.items() if str(key) in needed}
    calls: Calls = {}
    for name in names or ENGINES:
        try:
            made = tidu.compile(gradient, engine=name)
        except EvaluationError:
            continue
        calls[name] = lambda made=made: list(made(given).values())
    return calls


WORK: dict[str, Callable[[], tuple[str, Any, Calls]]] = {
    **{name: partial(of_problem, make) for name, make in problems().items()},
    **{f"{shape}-{n}": partial(of_scalars, shape, n) for n in (10**4, 10**6) for shape in SHAPES},
}


# Measuring.


def by_turns(calls: Calls) -> dict[str, list[float]]:
    """Seconds of each call."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    first = sum(_timed(call) for call in calls.values())
    turn, order = list(calls.items()), random.Random(0)
    for _ in range(max(5, min(301, int(SECONDS / first)))):
        order.shuffle(turn)
        for name, call in turn:
            seconds[name].append(_timed(call))
    return seconds


def _timed(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def row(name: str) -> list[str]:
    """The times of one work, two ratios, and what `auto` takes."""
    title, gradient, calls = WORK[name]()
    require_same(calls)
    seconds = by_turns(calls)
    cells = [f"{min(seconds[c]) * 1e3:.3g}" if c in seconds else "" for c in (*ENGINES, *OTHERS)]
    best, rival = ("xla", "jax.jit") if "jax.jit" in calls else ("native", "CasADi")
    ratios = [
        statistics.median(a / b for a, b in zip(seconds[x], seconds[y], strict=True)) for x, y in ((best, rival), ("numpy", best))
    ]
    auto = "/".join(chosen(gradient.head, "auto", runs=runs).name for runs in (FEW, MANY))
    return [title, *cells, f"{ratios[0]:.2f}", f"{ratios[1]:.1f}", auto]


def require_same(calls: Calls) -> None:
    """Raises AssertionError unless the gradients agree, each as a whole."""
    gradients = {name: _flat(call()) for name, call in calls.items()}
    for name, x in gradients.items():
        assert np.linalg.norm(x - gradients["numpy"]) <= 1e-9 * np.linalg.norm(gradients["numpy"]), name


def _flat(arrays: Any) -> Any:
    return np.concatenate([np.ravel(x) for x in (arrays if isinstance(arrays, list | tuple) else [arrays])])


HEADER = ("gradient of", *(f"{c}: ms" for c in (*ENGINES, *OTHERS)), "ours / theirs", "numpy / ours", "auto: once/often")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("work", nargs="*", metavar="|".join(WORK), help="which [default: all]")
    parser.add_argument("--markdown", action="store_true", help="as a table of docs/performance.md")
    options = parser.parse_args()
    with jax.enable_x64(True):
        table = [row(name) for name in options.work or WORK]
    if options.markdown:
        table.insert(0, ["---", *["---:"] * (len(HEADER) - 2), "---"])
    for cells in [list(HEADER), *table]:
        print("| " + " | ".join(cells) + " |" if options.markdown else "  ".join(f"{cell:>12}" for cell in cells))


if __name__ == "__main__":
    main()
