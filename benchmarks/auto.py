"""What `auto` takes for functions that are compiled to be called often, beside each engine, by turns in one process.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.auto [WORK ...] [--markdown]

Objectives and gradients of ADBench, of samples and, where `rapidocr-onnxruntime` is installed, of a model of others. `auto` is
called `BEFORE` times, and then all engines by turns in an order that is drawn. Times are the least of as many turns as some seconds
allow, from 5 to 301; *auto / best* is the ratio of auto's to that of the best engine. *All of one call* is what `tidu.compile`
and a first call take with auto, to that with NumPy, likewise. Libraries are loaded before.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import jax
import numpy as np

import tidu_cli as tidu
from benchmarks import adbench
from benchmarks.xla import attention_by, sample
from tidu_cli.adapters.onnx.contents import Choices
from tidu_cli.adapters.onnx.read import read_onnx
from tidu_cli.errors import EvaluationError
from tidu_cli.graph.types import TensorType
from tidu_cli.transforms.materialize import materialize

ENGINES = ("numpy", "native", "xla")
BEFORE = 19
SECONDS = 1.0
MOST = 10_000
"""XLA takes minutes to compile graphs of more nodes."""
SAMPLES = Path(__file__).parents[1] / "samples"

Work = tuple[str, Any, Mapping[str, Any]]
"""A name, a document, and values of its inputs."""


def works() -> Iterator[tuple[str, Callable[[], Iterator[Work]]]]:
    """What is measured, by the name that the command line has for it."""
    for name, make in adbench.PROBLEMS.items():
        yield name, lambda make=make: of_adbench(make())
    yield "rosenbrock", lambda: of_file("Rosenbrock", "rosenbrock.json", {"x": 2.0, "y": 1.0})
    yield "mlp", lambda: of_drawn("mlp.json", "mlp.json")
    yield "attention", attention
    yield "kalman", kalman
    yield "ode", pendulum
    yield "model", model


def with_gradient(name: str, document: Any, wrt: Any, at: Mapping[str, Any]) -> Iterator[Work]:
    """A function and its gradient."""
    yield name, document, at
    yield f"{name}, gradient", tidu.grad(document, wrt), at


def of_adbench(problem: adbench.Problem) -> Iterator[Work]:
    """A problem of ADBench."""
    at = {key: np.asarray(value) for key, value in problem.at.items()}
    return with_gradient(problem.name, tidu.trace(problem.load()[1], **at), problem.wrt, at)


def of_file(name: str, file: str, at: Mapping[str, Any]) -> Iterator[Work]:
    """A document of samples, at numbers."""
    return with_gradient(name, tidu.load(SAMPLES / file), list(at), {key: np.asarray(x) for key, x in at.items()})


def of_drawn(name: str, file: str) -> Iterator[Work]:
    """A document of samples, at values that are drawn."""
    document, rng = tidu.load(SAMPLES / file), np.random.default_rng(0)
    at = {str(i.key): rng.normal(size=i.type.shape) for i in document.head.inputs}
    output = str(document.head.outputs[0].key)
    yield name, document, at
    ct = rng.normal(size=document.head.outputs[0].type.shape)
    yield f"{name}, vjp", tidu.vjp(document, list(at), output), {**at, f"{output}@-1": ct}


def attention() -> Iterator[Work]:
    """Attention of 64 numbers in 64 places."""
    rng = np.random.default_rng(0)
    args = [rng.normal(size=(64, 64)) for _ in range(4)] + [rng.normal(size=(1, 64, 64))]
    document = tidu.trace(attention_by(np), *args)
    at = {str(i.key): x for i, x in zip(document.head.inputs, args, strict=True)}
    return with_gradient("attention, 64 × 64", document, list(at)[:4], at)


def kalman() -> Iterator[Work]:
    """The likelihood of 200 observations."""
    at = {"theta": np.array([0.1, -0.7]), "y": np.random.default_rng(0).normal(size=(200, 2))}
    log_likelihood = sample("kalman", "kalman").log_likelihood
    return with_gradient("Kalman filter, 200 observations", tidu.trace(log_likelihood, **at), ["theta"], at)


def pendulum() -> Iterator[Work]:
    """1,000 steps of a loop of numbers."""

    def swing(angle: Any) -> Any:
        def step(_: Any, state: Any) -> Any:
            q, p = state
            p = p - 1e-3 * np.sin(q)
            return q + 1e-3 * p, p

        return tidu.fori_loop(0, 1000, step, (angle, 0.0))[0]

    at = {"angle": np.array(0.5)}
    return with_gradient("pendulum, 1,000 steps", tidu.trace(swing, **at), ["angle"], at)


def model() -> Iterator[Work]:
    """A convolutional network of others: which way round a text is."""
    spec = find_spec("rapidocr_onnxruntime")
    if spec is None or spec.origin is None:
        return
    data = (Path(spec.origin).parent / "models" / "ch_ppocr_mobile_v2.0_cls_infer.onnx").read_bytes()
    shape = (1, 3, 48, 192)
    document = read_onnx(data, "cls.onnx", choices=Choices(types={"x": TensorType("f32", shape)})).document
    yield "text direction (ONNX)", document, {"x": np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)}


# Measuring.


def least_by_turns(calls: Mapping[str, Callable[[], Any]], seconds: float = SECONDS) -> dict[str, list[float]]:
    """Seconds of each call, turn by turn."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    first = sum(_timed(call) for call in calls.values())
    order, drawn = list(calls), random.Random(0)
    for _ in range(max(5, min(301, int(seconds / first)))):
        drawn.shuffle(order)
        for name in order:
            taken[name].append(_timed(calls[name]))
    return taken


def _timed(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def row(name: str, document: Any, at: Mapping[str, Any], *, why: bool) -> list[str]:
    """The cells of a table. Raises AssertionError where engines differ."""
    given = {str(i.key): at[str(i.key)] for i in document.head.inputs}
    made = {}
    for engine in ENGINES:
        if engine == "xla" and materialize(document).head.n_nodes > MOST:
            continue
        try:
            made[engine] = tidu.compile(document, engine=engine)
        except EvaluationError:
            continue
    once = least_by_turns({e: lambda e=e: tidu.compile(document, engine=e)(given) for e in ("numpy", "auto")})
    auto = tidu.compile(document, engine="auto")
    for _ in range(BEFORE):
        auto(given)
    seconds = least_by_turns({**{e: lambda f=f: f(given) for e, f in made.items()}, "auto": lambda: auto(given)})
    expected = made["numpy"](given)
    for key, value in auto(given).items():
        assert np.linalg.norm(value - expected[key]) <= (1e-9 if value.dtype == np.float64 else 1e-4) * np.linalg.norm(
            expected[key]
        )
    if why:
        print(f"{name}: {auto.why}", file=sys.stderr)
    least = {e: min(times) for e, times in seconds.items()}
    ratio, in_all = least["auto"] / min(least[e] for e in made), min(once["auto"]) / min(once["numpy"])
    times = [f"{least[e] * 1e3:.3g}" if e in least else "" for e in (*ENGINES, "auto")]
    return [name, *times, auto.engine, f"{ratio:.2f}", f"{in_all:.2f}"]


HEADER = ("function", *(f"{e}: ms" for e in ENGINES), "auto: ms", "is", "auto / best", "all of one call: auto / numpy")


def main() -> None:
    """Print the table."""
    known = dict(works())
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("work", nargs="*", metavar="|".join(known), help="which [default: all]")
    parser.add_argument("--why", action="store_true", help="what was tried, on stderr")
    parser.add_argument("--markdown", action="store_true", help="as a table of docs/performance.md")
    options = parser.parse_args()
    jax.devices()
    tidu.compile(tidu.load(SAMPLES / "rosenbrock.json"), engine="native")(x=1.0, y=1.0)
    rule = [["---", *["---:"] * 4, "---", "---:", "---:"]] if options.markdown else []
    rows = (row(*work, why=options.why) for name in options.work or known for work in known[name]())
    for cells in chain([list(HEADER)], rule, rows):
        print("| " + " | ".join(cells) + " |" if options.markdown else "  ".join(f"{cell:>12}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
