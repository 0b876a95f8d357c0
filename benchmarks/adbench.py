"""ADBench's problems: objectives and gradients by tidu, by plain NumPy, and by `autograd`, all of the same functions.

    pip install autograd
    python benchmarks/adbench.py --markdown

Needs the package `autograd` (HIPS, on PyPI; measured with 1.9), which tidu itself has no use for. Programs are compiled before;
what is timed is a call with arrays, in one process, the contestants by turns. Bundle adjustment is of 2,000 observations of 500
points by 20 cameras, drawn at random, in arrays over all observations; the others are the data of samples/adbench.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import tidu_cli as tidu

SAMPLES = Path(__file__).parents[1] / "samples" / "adbench"
ROUNDS = 41
CAMERAS, POINTS, OBSERVATIONS = 20, 500, 2000


@dataclass(frozen=True)
class Problem:
    """A function of a module that uses `np`, where it is evaluated, and by which arguments it is differentiated."""

    name: str
    load: Callable[[], tuple[ModuleType, Callable[..., Any]]]
    at: Mapping[str, Any]
    wrt: tuple[str, ...]


def sample(name: str) -> ModuleType:
    """A module of samples/adbench, a new one at each call."""
    spec = importlib.util.spec_from_file_location(name, SAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def gmm() -> Problem:
    """The Gaussian mixture of 25 components in 10 dimensions, at 1,000 points."""

    def load() -> tuple[ModuleType, Callable[..., Any]]:
        module = sample("gmm")
        return module, module.objective

    data = np.load(SAMPLES / "data" / "gmm_d10_K25.npz")
    return Problem(
        "GMM, d=10, K=25, n=1000", load, {k: data[k] for k in ("alphas", "means", "icf", "x")}, ("alphas", "means", "icf")
    )


def lstm(steps: int) -> Problem:
    """The LSTM over so many characters."""

    def load() -> tuple[ModuleType, Callable[..., Any]]:
        module = sample("lstm")

        def objective(main: Any, extra: Any, state: Any, sequence: Any) -> Any:
            return module.objective(main, extra, state, sequence, steps)

        return module, objective

    data = np.load(SAMPLES / "data" / "lstm_l2_c1024.npz")
    at = {k: data[k] for k in ("main", "extra", "state", "sequence")}
    return Problem(f"LSTM, {steps} characters", load, at, ("main", "extra"))


def bundle() -> Problem:
    """Bundle adjustment: half the sum of the squared errors of many observations."""

    def load() -> tuple[ModuleType, Callable[..., Any]]:
        module = ModuleType("bundle")
        module.np = np  # type: ignore[attr-defined]
        exec(BUNDLE, module.__dict__)
        return module, module.cost

    rng = np.random.default_rng(0)
    cams = rng.normal(size=(CAMERAS, 11)) * 0.3
    cams[:, 5] -= 5  # behind what they see
    at = {
        "cams": cams,
        "points": rng.normal(size=(POINTS, 3)),
        "weights": rng.uniform(0.5, 1.5, OBSERVATIONS),
        "features": rng.normal(size=(OBSERVATIONS, 2)),
        "camera": rng.integers(0, CAMERAS, OBSERVATIONS),
        "point": rng.integers(0, POINTS, OBSERVATIONS),
    }
    return Problem(f"BA, {OBSERVATIONS:,} observations", load, at, ("cams", "points", "weights"))


BUNDLE = '''
def cost(cams, points, weights, features, camera, point):
    """As samples/adbench/ba.py has it for one observation, here for all at once."""
    cam = cams[camera]
    rotation, centre, focal, principal, radial = cam[:, :3], cam[:, 3:6], cam[:, 6:7], cam[:, 7:9], cam[:, 9:]
    v = points[point] - centre
    squared = np.sum(rotation * rotation, axis=1, keepdims=True)
    angle = np.sqrt(squared)
    sine = np.sin(angle) / angle
    versine = 2 * (np.sin(angle / 2) / angle) ** 2
    across = cross(rotation, v)
    seen = v + sine * across + versine * cross(rotation, across)
    p = seen[:, :2] / seen[:, 2:]
    r = np.sum(p * p, axis=1, keepdims=True)
    projected = p * (1 + radial[:, :1] * r + radial[:, 1:] * r**2)
    error = weights[:, None] * (focal * projected + principal - features)
    return np.sum(error * error) / 2


def cross(a, b):
    x, y, z = a[:, 0:1], a[:, 1:2], a[:, 2:3]
    u, v, w = b[:, 0:1], b[:, 1:2], b[:, 2:3]
    return np.concatenate([y * w - z * v, z * u - x * w, x * v - y * u], axis=1)
'''


def measure(problem: Problem) -> dict[str, float]:
    """Seconds of CPU time per call of each contestant: the least of many rounds."""
    _, plain = problem.load()
    document = tidu.trace(plain, **{k: np.asarray(v) for k, v in problem.at.items()})
    value = tidu.compile(document)
    gradient = tidu.compile(tidu.grad(document, problem.wrt))
    contestants: dict[str, Callable[[], Any]] = {
        "NumPy": lambda: plain(**problem.at),
        "objective": lambda: value(problem.at),
        "gradient": lambda: gradient(problem.at),
    }
    if importlib.util.find_spec("autograd"):
        contestants["autograd"] = by_autograd(problem)
    least = dict.fromkeys(contestants, float("inf"))
    results = {}
    for _ in range(ROUNDS):
        for name, call in contestants.items():
            start = time.process_time()
            results[name] = call()
            least[name] = min(least[name], time.process_time() - start)
    np.testing.assert_allclose(results["objective"]["y"], results["NumPy"], rtol=1e-12)
    for key, theirs in zip(problem.wrt, results.get("autograd", ()), strict=False):
        ours = results["gradient"][f"{key}@-1"]
        assert np.linalg.norm(ours - theirs) <= 1e-9 * np.linalg.norm(theirs), key
    return least


def by_autograd(problem: Problem) -> Callable[[], Any]:
    """The gradient by the package `autograd`, of the same code with its own `np`."""
    import autograd
    import autograd.numpy

    module, function = problem.load()
    module.np = autograd.numpy  # type: ignore[attr-defined]
    others = {k: v for k, v in problem.at.items() if k not in problem.wrt}
    gradient = autograd.grad(lambda given: function(**dict(zip(problem.wrt, given, strict=True)), **others))
    return lambda: gradient(tuple(problem.at[k] for k in problem.wrt))


PROBLEMS = {"gmm": gmm, "ba": bundle, "lstm": lambda: lstm(8), "lstm-long": lambda: lstm(1024)}
HEADER = (
    "problem",
    "NumPy: ms",
    "objective: ms",
    "gradient: ms",
    "autograd: ms",
    "objective/NumPy",
    "gradient/objective",
    "autograd/gradient",
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="*", metavar="|".join(PROBLEMS), help="which [default: all]")
    parser.add_argument("--markdown", action="store_true", help="as a table of docs/performance.md")
    options = parser.parse_args()
    rows = []
    for name in options.problems or PROBLEMS:
        problem = PROBLEMS[name]()
        times = measure(problem)
        ratios = [times["objective"] / times["NumPy"], times["gradient"] / times["objective"]]
        theirs = times.get("autograd")
        numbers = [f"{1e3 * times[k]:.2f}" for k in ("NumPy", "objective", "gradient")] + [f"{1e3 * theirs:.2f}" if theirs else ""]
        rows.append([problem.name, *numbers, *(f"{r:.2f}" for r in ratios), f"{theirs / times['gradient']:.1f}" if theirs else ""])
    if options.markdown:
        rows.insert(0, ["---", *["---:"] * (len(HEADER) - 1)])
    for row in [list(HEADER), *rows]:
        print("| " + " | ".join(row) + " |" if options.markdown else "  ".join(f"{cell:>18}" for cell in row))


if __name__ == "__main__":
    main()
