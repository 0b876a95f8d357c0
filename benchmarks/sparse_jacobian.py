"""Sparse Jacobians beside CasADi's and asdex': how long one takes to build, and to evaluate, and in how many directions.

    pip install casadi asdex jax
    python benchmarks/sparse_jacobian.py --markdown [--casadi PYTHON] [--asdex PYTHON]

Both may be in environments of their own, whose Pythons these options name; without them tidu's figures stand alone. CasADi
differentiates expressions of SX, one number an entry, by its `jacobian`; asdex functions of JAX. Building is all from the function
to what can be called: tracing, the pattern, the colours, the derivative, compiling. Each problem is measured in a fresh process, an
evaluation as the quickest of ten, and entries are compared with tidu's.
"""

from __future__ import annotations

import argparse
import json
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

Function = Callable[[Any, Any], Any]
ROUNDS = 10
SIZES = {"neighbours, 10⁴": 10_000, "neighbours, 10⁵": 100_000, "neighbours, 10⁶": 1_000_000}


def neighbours(np: Any, x: Any) -> Any:
    """A tridiagonal Jacobian."""
    return x[2:] * x[:-2] - np.sin(x[1:-1])


def laplacian(np: Any, x: Any, n: int = 300) -> Any:
    """The residual of Δu = eᵘ by five points, on a grid of rows of n, each of which goes on in the next."""
    u = x[n:-n]
    return x[: -2 * n] + x[2 * n :] + x[n - 1 : -n - 1] + x[n + 1 : 1 - n] - 4 * u - np.exp(u)


def control(np: Any, x: Any, steps: int = 20_000) -> Any:
    """The defects of a pendulum's trapezoidal collocation: angle, speed and torque at each step, one after the other."""
    h, angle, speed, torque = 0.01, x[:steps], x[steps : 2 * steps], x[2 * steps :]
    pull = torque - np.sin(angle) - 0.1 * speed
    return [
        angle[1:] - angle[:-1] - h / 2 * (speed[1:] + speed[:-1]),
        speed[1:] - speed[:-1] - h / 2 * (pull[1:] + pull[:-1]),
    ]


def problems() -> dict[str, tuple[Callable[[Any, Any], Any], int]]:
    """Functions of a module and a vector, and how long it is."""
    return {
        **{name: (neighbours, n) for name, n in SIZES.items()},
        "Laplacian, 300 × 300": (laplacian, 90_000),
        "optimal control, 20,000 steps": (control, 60_000),
        "bundle adjustment, ba1": (bundle, 49 * 11 + 7_776 * 3),
    }


CAMERAS, POINTS, OBSERVATIONS = 49, 7_776, 31_843


def observed() -> tuple[Any, Any, Any]:
    """Which camera sees which point where, drawn at random."""
    rng = np.random.default_rng(0)
    return rng.integers(0, CAMERAS, OBSERVATIONS), rng.integers(0, POINTS, OBSERVATIONS), rng.normal(size=(OBSERVATIONS, 2))


def bundle(np: Any, x: Any) -> Any:
    """The residuals of a bundle adjustment of ADBench's size ba1."""
    residuals = runpy.run_path(str(Path(__file__).parents[1] / "samples" / "adbench" / "ba.py"))["residuals"]
    residuals.__globals__["np"] = np
    cams, points = x[: CAMERAS * 11].reshape(CAMERAS, 11), x[CAMERAS * 11 :].reshape(POINTS, 3)
    return residuals(cams, points, np.ones(OBSERVATIONS), *observed())


def bundle_of_casadi(ca: Any, x: Any) -> Any:
    """The same of CasADi's matrices, a row for each observation."""
    cam_of, point_of, features = observed()
    cams, points = ca.reshape(x[: CAMERAS * 11], 11, CAMERAS).T, ca.reshape(x[CAMERAS * 11 :], 3, POINTS).T
    cam, point = cams[cam_of.tolist(), :], points[point_of.tolist(), :]
    r, v = [cam[:, k] for k in range(3)], [point[:, k] - cam[:, 3 + k] for k in range(3)]
    squared = r[0] ** 2 + r[1] ** 2 + r[2] ** 2
    angle = ca.sqrt(ca.if_else(squared == 0, 1, squared))
    sine = ca.if_else(squared == 0, 1, ca.sin(angle) / angle)
    versine = ca.if_else(squared == 0, 0.5, 2 * (ca.sin(angle / 2) / angle) ** 2)

    def cross(a: Any, b: Any) -> list[Any]:
        return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]

    across = cross(r, v)
    twice = cross(r, across)
    seen = [v[k] + sine * across[k] + versine * twice[k] for k in range(3)]
    p = [seen[0] / seen[2], seen[1] / seen[2]]
    radius = p[0] ** 2 + p[1] ** 2
    factor = cam[:, 6] * (1 + cam[:, 9] * radius + cam[:, 10] * radius**2)
    errors = [factor * p[k] + cam[:, 7 + k] - features[:, k] for k in range(2)]
    return ca.vec(ca.horzcat(*errors).T)


def quickest(function: Callable[[], Any]) -> float:
    """Seconds of a call, the least of some."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def of_tidu(name: str, at: Path, engine: str) -> dict[str, Any]:
    """tidu's figures for a problem, whose entries are saved beside `at`."""
    import tidu_cli as tidu
    from tidu_cli.notes import heard_by

    function, n = problems()[name]
    x, said = np.load(at), list[str]()

    def whole(x: Any) -> Any:
        parts = function(np, x)
        return np.concatenate(parts) if isinstance(parts, list) else parts

    tidu.compile(tidu.jacobian(tidu.trace(lambda x: x[1:] * x[:-1], x="f64[3]"), "x", sparse=True), engine=engine)(x=np.ones(3))
    start = time.perf_counter()  # all that is imported is there
    with heard_by(str, said.append):
        jacobian = tidu.compile(tidu.jacobian(tidu.trace(whole, x=f"f64[{n}]"), "x", sparse=True), engine=engine)
    values = jacobian(x=x)
    built = time.perf_counter() - start
    value = tidu.compile(tidu.trace(whole, x=f"f64[{n}]"), engine=engine)
    value(x=x)
    matrix = tidu.sparse_array(values).tocsr()
    save(at.with_name(f"{engine}.npz"), matrix)
    (told,) = [line for line in said if "entries of" in line]
    figures = {"built": built, "evaluated": quickest(lambda: jacobian(x=x)), "value": quickest(lambda: value(x=x))}
    return figures | {"entries": matrix.nnz, "directions": told.split(" in ")[1].split()[0]}


def of_casadi(name: str, at: Path) -> dict[str, Any]:
    """CasADi's."""
    import casadi as ca

    x_at = np.load(at)
    function, n = problems()[name]
    start = time.perf_counter()
    x = ca.SX.sym("x", n)
    y = bundle_of_casadi(ca, x) if function is bundle else function(ca, x)
    y = ca.vertcat(*y) if isinstance(y, list) else y
    jacobian = ca.Function("j", [x], [ca.jacobian(y, x)])
    result = jacobian(x_at)
    built = time.perf_counter() - start
    matrix = result.sparse().tocsr()
    matrix.sort_indices()
    save(at.with_name("casadi.npz"), matrix)
    value = ca.Function("f", [x], [y])
    return {
        "built": built,
        "evaluated": quickest(lambda: jacobian(x_at)),
        "value": quickest(lambda: value(x_at)),
        "entries": matrix.nnz,
    }


def of_asdex(name: str, at: Path) -> dict[str, Any]:
    """asdex', compiled by JAX."""
    import asdex
    import jax

    jax.config.update("jax_enable_x64", True)
    function, _ = problems()[name]
    x = jax.numpy.asarray(np.load(at))

    def whole(x: Any) -> Any:
        parts = function(jax.numpy, x)
        return jax.numpy.concatenate(parts) if isinstance(parts, list) else parts.ravel()

    asdex.jacobian_coloring(lambda x: x[1:] * x[:-1], jax.numpy.ones(3))  # all that is imported is there
    start = time.perf_counter()
    jacobian = jax.jit(asdex.jacobian_from_coloring(whole, asdex.jacobian_coloring(whole, x)))
    result = jax.block_until_ready(jacobian(x))
    built = time.perf_counter() - start
    save(at.with_name("asdex.npz"), coo_array((np.asarray(result.data), np.asarray(result.indices).T), shape=result.shape).tocsr())
    return {"built": built, "evaluated": quickest(lambda: jax.block_until_ready(jacobian(x)))}


def save(file: Path, matrix: Any) -> None:
    """Write a csr matrix for `agree`."""
    np.savez(file, data=matrix.data, indices=matrix.indices, indptr=matrix.indptr)


def agree(a: Path, b: Path) -> None:
    """Raises ArithmeticError where two matrices differ."""
    one, two = (csr_array((f["data"], f["indices"], f["indptr"])) for f in map(np.load, (a, b)))
    difference = abs(one - two).max() if one.shape == two.shape else np.inf
    if difference > 1e-9 * abs(two).max():
        raise ArithmeticError(f"{a.name} and {b.name} differ by {difference}")


def measured(python: str, who: Sequence[str], limit: float) -> dict[str, Any] | None:
    """The figures that a fresh process prints; None if it takes too long."""
    try:
        run = subprocess.run([python, __file__, "--measure", *who], capture_output=True, text=True, check=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    return dict(json.loads(run.stdout.splitlines()[-1]))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--casadi", default=None, metavar="PYTHON")
    parser.add_argument("--asdex", default=None, metavar="PYTHON")
    parser.add_argument("--engine", default="numpy")
    parser.add_argument("--limit", type=float, default=300, help="seconds that a process may take")
    parser.add_argument("--only", default="")
    parser.add_argument("--measure", nargs=3, metavar=("WHO", "PROBLEM", "AT"))
    given = parser.parse_args()
    if given.measure:
        who, name, at = given.measure
        measure = {"casadi": of_casadi, "asdex": of_asdex}.get(who) or (lambda name, at: of_tidu(name, at, who))
        print(json.dumps(measure(name, Path(at))))
        return
    others = {"CasADi": given.casadi, "asdex": given.asdex}
    for name in [name for name, python in others.items() if python is None]:
        print(
            f"{name}'s figures need --{name.lower()} PYTHON, of an environment with it: pip install {name.lower()}", file=sys.stderr
        )
        del others[name]
    heads = ("problem", "entries", "directions", "build: s", "evaluate: ms", "× the function")
    rows = [[*heads, *(head for other in others for head in (f"{other}, build: s", "evaluate: ms"))]]
    for name, (function, n) in problems().items():
        if given.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            at = Path(folder) / "x.npy"
            x = np.random.default_rng(1).uniform(0.5, 1.5, n)
            if function is bundle:
                x[CAMERAS * 11 :] += 5
            np.save(at, x)
            ours = measured(sys.executable, [given.engine, name, str(at)], given.limit)
            assert ours is not None, name
            times = [f"{ours['built']:.2f}", f"{1e3 * ours['evaluated']:.2f}", f"{ours['evaluated'] / ours['value']:.1f}"]
            row = [name, f"{ours['entries']:,}", ours["directions"], *times]
            for other, python in others.items():
                theirs = measured(python, [other.lower(), name, str(at)], given.limit)
                row += [f"{theirs['built']:.2f}", f"{1e3 * theirs['evaluated']:.2f}"] if theirs else [f"> {given.limit:.0f}", ""]
                if theirs:
                    agree(at.with_name(f"{other.lower()}.npz"), at.with_name(f"{given.engine}.npz"))
        rows.append(row)
    if given.markdown:
        rows.insert(1, ["---", *["--:"] * (len(rows[0]) - 1)])
    print("\n".join(("| " + " | ".join(row) + " |") if given.markdown else "  ".join(row) for row in rows))


if __name__ == "__main__":
    main()
