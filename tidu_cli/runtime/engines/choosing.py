"""The engines by name, what is installed of them, and which one runs a graph."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tidu_cli.errors import EvaluationError, UnknownNameError, did_you_mean
from tidu_cli.graph.closed import closed_graphs
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.select import listed
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.builtin import vocabulary

if TYPE_CHECKING:
    from tidu_cli.runtime.engines.contract import EngineModule

AUTO, NUMPY = "auto", "numpy"

VARIABLE = "TIDU_ENGINE"
"""The environment variable that names the engine where nothing else does."""


class Engine(NamedTuple):
    """An engine other than NumPy: its name, the package that it needs, and the extra of tidu's that brings that."""

    name: str
    package: str
    extra: str

    def installed(self) -> bool:
        """Whether its package is there, which is not imported for that."""
        from importlib.util import find_spec  # slow to import

        return find_spec(self.package) is not None

    def takes(self, graph: Graph) -> bool:
        """Whether it is installed, and does not refuse a graph."""
        return self.installed() and self.module().refusal(graph, vocabulary(graph.cases)) is None

    def module(self) -> EngineModule:
        """Its functions. Raises EvaluationError that says what to install."""
        if not self.installed():
            raise EvaluationError(f"the engine {self.name} needs the package {self.package}: pip install 'tidu[{self.extra}]'")
        return cast("EngineModule", cast(Any, import_module(f"tidu_cli.runtime.engines.{self.name}.engine")))


ENGINES: Mapping[str, Engine] = {e.name: e for e in (Engine("native", "llvmlite", "native"), Engine("xla", "jax", "jax"))}

NAMES = [AUTO, NUMPY, *ENGINES]
"""What users may say."""


def default_engine() -> str:
    """What the environment says, else auto. Raises UnknownNameError."""
    return require_engine(os.environ.get(VARIABLE) or AUTO)


def require_engine(name: str) -> str:
    """The name of an engine. Raises UnknownNameError."""
    if name not in NAMES:
        raise UnknownNameError(f"no engine '{name}'{did_you_mean(name, NAMES)} (engines: {listed(NAMES)})")
    return name


class Choice(NamedTuple):
    """Which engine runs a graph, on which of its devices (None for its own choice), and why, in a few words.

    It may be replaced by NumPy where `automatic`.
    """

    name: str
    reason: str
    device: str | None = None
    automatic: bool = False


PLAIN = Choice(NUMPY, "as it is the default")


FEW = 1
MANY = 1000
"""How often a graph will be run, as far as one knows: evaluated once, or compiled to be called."""

WORTHWHILE = 3e-2
"""The seconds that an engine has to save for `auto` to take it."""

_NUMPY_PLAN, _NATIVE_PLAN, _XLA_PLAN = 0.4e-6, 0.35e-6, 1e-3
"""Seconds for each node before a first run: to lay it out, or for XLA to compile it."""

_XLA_NODES = 5000
"""With more nodes XLA takes longer for each."""

_NATIVE_START, _XLA_START = 0.1, 1.0
"""Seconds to load an engine."""

_NUMPY_CALL, _NUMPY_NUMBER, _NUMPY_TURN = 0.7e-6, 0.1e-6, 0.04e-6
"""Seconds of a small operation: of one on arrays, one on numbers, and one on numbers in a loop, which is a function of Python."""

_NATIVE_NUMBER, _XLA_CALL, _XLA_RUN = 0.01e-6, 0.02e-6, 20e-6
"""Likewise in other engines, and what a run of XLA's takes by itself. All these are of docs/performance.md, Engines."""


def chosen(graph: Graph, name: str, *, device: str | None = None, runs: int = FEW) -> Choice:
    """The engine that will run a self-contained graph: the one named, or for `auto` the one that takes the least time in all.

    `auto` takes NumPy unless an engine that is installed saves `WORTHWHILE`, and one that refuses it never. It looks at cases
    and imports no library. Raises UnknownNameError, and EvaluationError for a device that the engine named does not have.
    """
    require_engine(name)
    if name not in (AUTO, "xla") and device not in (None, "cpu"):
        raise EvaluationError(f"the engine {name} has no device '{device}', only cpu: choose the engine xla")
    if name != AUTO:
        return Choice(name, "as asked for", device)
    if device not in (None, "cpu"):
        return Choice("xla", f"as it has the device {device}", device)
    work = _work(graph)
    best = Choice(NUMPY, f"{work.calls:,} operations, {work.numbers:,} of them of single numbers")
    seconds = graph.n_nodes * _NUMPY_PLAN + runs * work.seconds - WORTHWHILE
    of_arrays = (work.calls - work.numbers) * _NUMPY_CALL
    estimates = {
        "native": _NATIVE_START + graph.n_nodes * _NATIVE_PLAN + runs * (work.numbers * _NATIVE_NUMBER + of_arrays),
        "xla": _XLA_START
        + graph.n_nodes * _XLA_PLAN * (1 + graph.n_nodes / _XLA_NODES)
        + runs * (_XLA_RUN + work.calls * _XLA_CALL),
    }
    for engine, estimate in estimates.items():
        if estimate < seconds and ENGINES[engine].takes(graph):
            best, seconds = Choice(engine, best.reason, device, automatic=True), estimate
    return best


class _Work(NamedTuple):
    """How many operations a run makes, how many of these take and give single numbers, and the seconds that NumPy takes."""

    calls: int
    numbers: int
    seconds: float


_TURNS = 100
"""How often a loop runs of which only its run can tell."""


def _work(graph: Graph, number: float = _NUMPY_NUMBER) -> _Work:
    """The work of a run, where an operation on numbers takes NumPy so many seconds."""
    calls, numbers, seconds = 0, 0, 0.0
    for code, n in Counter(graph.code).items():
        case = graph.cases[code]
        inner = [_work(closed.graph, _NUMPY_TURN) for closed in closed_graphs(case.attrs)]
        if inner:
            turns = n * (getattr(case.attrs, "length", _TURNS) if "cond" not in case.op else 1)
            calls += turns * sum(w.calls for w in inner)
            numbers += turns * sum(w.numbers for w in inner)
            seconds += turns * sum(w.seconds for w in inner)
        calls += n
        of_numbers = all(isinstance(t, TensorType) and not t.shape for t in (*case.operands, *case.results))
        numbers += n * of_numbers
        seconds += n * (number if of_numbers else _NUMPY_CALL)
    return _Work(calls, numbers, seconds)
