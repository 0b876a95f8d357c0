"""What `materialize --simplify` makes of derivatives: nodes, bytes of the file, and how long evaluation takes, before and after.

    OPENBLAS_NUM_THREADS=1 python benchmarks/simplify.py --markdown

All are evaluated by turns in one process, and of each the least CPU time of many rounds is taken. It is checked that values have
the same bits, and where all is assumed (`--assume`) the same numbers.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from adbench import Problem, bundle, gmm, lstm, sample  # noqa: E402

import tidu_cli as tidu  # noqa: E402
from tidu_cli.formats.write import format_document  # noqa: E402
from tidu_cli.graph.graph import Document  # noqa: E402
from tidu_cli.rules.terms import ASSUMPTIONS  # noqa: E402

ROUNDS = 31
Subject = tuple[str, Callable[[], tuple[Document, dict[str, Any]]]]


def module(path: str) -> dict[str, Any]:
    """The names of a file of samples."""
    names: dict[str, Any] = {"__name__": path}
    exec((ROOT / "samples" / path).read_text(), names)
    return names


def of_problem(problem: Problem) -> tuple[Document, dict[str, Any]]:
    """The gradient of one of ADBench's, and where."""
    _, function = problem.load()
    document = tidu.trace(function, **{k: np.asarray(v) for k, v in problem.at.items()})
    return tidu.grad(document, problem.wrt), dict(problem.at)


def looped() -> tuple[Document, dict[str, Any]]:
    """The gradient of the LSTM as a loop."""
    data = np.load(ROOT / "samples" / "adbench" / "data" / "lstm_l2_c1024.npz")
    at = {k: data[k] for k in ("main", "extra", "state", "sequence")}
    sys.path.insert(0, str(ROOT / "samples" / "adbench"))  # as it imports what is beside it
    objective = sample("lstm_scan").objective
    document = tidu.trace(lambda main, extra, state, sequence: objective(main, extra, state, sequence, 1000), **at)
    return tidu.grad(document, ["main", "extra"]), at


def network(path: str) -> tuple[Document, dict[str, Any]]:
    """The gradient of a network of samples by its parameters."""
    params = dict(np.load(ROOT / "samples" / path / "params.npz"))
    params = {k.removeprefix("params."): v for k, v in params.items()}
    data = dict(np.load(ROOT / "samples" / "network" / "data.npz"))
    data = {k: data[k][:256] for k in ("images", "labels")}
    document = tidu.trace(module(f"{path}/{path}.py")["loss"], params=params, **data)
    at = {**{f"params.{k}": v for k, v in params.items()}, **data}
    return tidu.grad(document, [f"params.{k}" for k in params]), at


def attention() -> tuple[Document, dict[str, Any]]:
    """The gradient of a layer of attention with four heads and a feed-forward network, by its weights."""

    def layer(x: Any, qkv: Any, out: Any, up: Any, down: Any) -> Any:
        def normalized(x: Any) -> Any:
            centred = x - x.mean(axis=-1, keepdims=True)
            return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)

        n, d = x.shape
        q, k, v = (y.reshape(n, 4, d // 4).transpose(1, 0, 2) for y in np.split(normalized(x) @ qkv, 3, axis=1))
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(d // 4)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        heads = weights / weights.sum(axis=-1, keepdims=True) @ v
        x = x + heads.transpose(1, 0, 2).reshape(n, d) @ out
        return np.sum((x + np.maximum(normalized(x) @ up, 0) @ down) ** 2)

    rng, d = np.random.default_rng(0), 64
    shapes = {"x": (128, d), "qkv": (d, 3 * d), "out": (d, d), "up": (d, 4 * d), "down": (4 * d, d)}
    at = {k: rng.normal(size=shape) / 8 for k, shape in shapes.items()}
    return tidu.grad(tidu.trace(layer, **at), [k for k in shapes if k != "x"]), at


def by_name(path: str, function: str, wrt: str, shorthand: str) -> tuple[Document, dict[str, Any]]:
    """The derivative of a function of samples, at the values of its data file."""
    folder = ROOT / "samples" / path.partition("/")[0]
    (file,) = [f for f in folder.glob("*.json") if f.name in ("data.json", "state.json")]
    at = {k: np.asarray(v) for k, v in json.loads(file.read_text()).items()}
    document = tidu.trace(module(path)[function], **at)
    return getattr(tidu, shorthand)(document, wrt), at


def of_file(name: str, shorthand: str) -> tuple[Document, dict[str, Any]]:
    """The derivative of a small sample by all inputs that it has one by, at random."""
    document = tidu.load(ROOT / "samples" / f"{name}.json")
    wrt = [str(i.key) for i in document.head.inputs if getattr(i.type, "inexact", False)]
    derived = getattr(tidu, shorthand)(document, wrt)
    rng = np.random.default_rng(0)
    return derived, {str(i.key): rng.uniform(0.5, 1.5, i.type.shape) for i in document.head.inputs}


SUBJECTS: tuple[Subject, ...] = (
    *(
        (f"grad {n}.json", lambda n=n: of_file(n, "grad"))
        for n in ("cube", "quartic", "rosenbrock", "mlp", "logsumexp", "softplus")
    ),
    *((f"hessian {n}.json", lambda n=n: of_file(n, "hessian")) for n in ("rosenbrock", "mlp", "logsumexp")),
    *((f"jacobian {n}.json", lambda n=n: of_file(n, "jacobian")) for n in ("vector", "affine", "softmax")),
    ("grad of the Gaussian mixture (GMM)", lambda: of_problem(gmm())),
    ("grad of bundle adjustment (BA)", lambda: of_problem(bundle())),
    ("grad of the LSTM, 100 characters", lambda: of_problem(lstm(100))),
    ("grad of the LSTM as a loop, 1,000 characters", looped),
    ("grad of the network", lambda: network("network")),
    ("grad of the convolutional network", lambda: network("convnet")),
    ("grad of a layer of attention", attention),
    ("grad of the Gaussian process", lambda: by_name("gaussian_process/gp.py", "log_likelihood", "theta", "grad")),
    ("hessian of the Gaussian process", lambda: by_name("gaussian_process/gp.py", "log_likelihood", "theta", "hessian")),
    ("grad of the Kalman filter", lambda: by_name("kalman/kalman.py", "log_likelihood", "theta", "grad")),
    ("hessian of the Wiener filter", lambda: by_name("wiener/wiener.py", "error", "theta", "hessian")),
    ("jacobian of the orbit", lambda: by_name("ode/kepler.py", "orbit", "state", "jacobian")),
)


def nodes(document: Document) -> int:
    """The nodes of a graph, with those in loops."""
    from tidu_cli.graph.closed import graphs_within

    head = document.head
    return head.n_nodes + sum(g.graph.n_nodes for g in graphs_within([head.cases[c] for c in set(head.code)]))


def measured(make: Callable[[], tuple[Document, dict[str, Any]]]) -> Iterator[str]:
    """The cells of a row: nodes before, after, and if all is assumed; the same of bytes; times."""
    before, at = make()
    start = time.process_time()
    after = tidu.materialize(before, simplify=True)
    took = time.process_time() - start
    assumed = tidu.materialize(before, simplify=True, assume=ASSUMPTIONS)
    documents = (before, after, assumed)
    programs = [tidu.compile(d) for d in documents]
    least, results = [float("inf")] * 3, [p(at) for p in programs]
    for key, value in results[0].items():
        assert np.asarray(value).tobytes() == np.asarray(results[1][key]).tobytes(), key
        np.testing.assert_allclose(results[2][key], value, rtol=1e-9, atol=1e-12)
    for _ in range(ROUNDS):
        for k, program in enumerate(programs):
            start = time.process_time()
            program(at)
            least[k] = min(least[k], time.process_time() - start)
    for d in documents:
        yield f"{nodes(d):,}"
    for d in documents:
        yield f"{len(format_document(d, 'json')):,}"
    yield from (f"{1e3 * least[0]:.3g}", *(f"{x / least[0]:.2f}" for x in least[1:]), f"{1e3 * took:.0f}")


HEADER = (
    "derivative",
    "nodes",
    "simplified",
    "assumed",
    "bytes",
    "simplified",
    "assumed",
    "ms",
    "simplified",
    "assumed",
    "taken: ms",
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of the names of what to measure [default: all]")
    parser.add_argument("--markdown", action="store_true", help="as a table of docs/performance.md")
    options = parser.parse_args()
    rows = [list(HEADER)]
    if options.markdown:
        rows.append(["---", *["---:"] * (len(HEADER) - 1)])
    for name, make in SUBJECTS:
        if not options.names or any(part in name for part in options.names):
            rows.append([name, *measured(make)])
    for row in rows:
        print("| " + " | ".join(row) + " |" if options.markdown else "  ".join(f"{cell:>14}" for cell in row))


if __name__ == "__main__":
    main()
