"""The engines by name, what is installed of them, and which one runs a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast

from tidu_cli.errors import EvaluationError, UnknownNameError, did_you_mean
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.select import listed
from tidu_cli.lax.builtin import vocabulary
from tidu_cli.runtime.engines.contract import EngineModule, Runnable

AUTO, NUMPY = "auto", "numpy"

VARIABLE = "TIDU_ENGINE"
"""The environment variable that names the engine where nothing else does."""


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine other than NumPy: its name, the package that it needs, and the extra of tidu's that brings that."""

    name: str
    package: str
    extra: str

    def installed(self) -> bool:
        """Whether its package is there, which is not imported for that."""
        return find_spec(self.package) is not None

    def module(self) -> EngineModule:
        """Its functions. Raises EvaluationError that says what to install."""
        if not self.installed():
            raise EvaluationError(f"the engine {self.name} needs the package {self.package}: pip install 'tidu[{self.extra}]'")
        return cast(EngineModule, cast(Any, import_module(f"tidu_cli.runtime.engines.{self.name}.engine")))


ENGINES: Mapping[str, Engine] = {e.name: e for e in (Engine("native", "llvmlite", "native"), Engine("xla", "jax", "jax"))}

NAMES = [AUTO, NUMPY, *ENGINES]
"""What users may say."""


def require_engine(name: str) -> str:
    """The name of an engine. Raises UnknownNameError."""
    if name not in NAMES:
        raise UnknownNameError(f"no engine '{name}'{did_you_mean(name, NAMES)} (engines: {listed(NAMES)})")
    return name


def engine_program(graph: Graph, name: str, outputs: Sequence[int] | None = None, device: str | None = None) -> Runnable:
    """A self-contained graph as an engine other than NumPy runs it. Raises EvaluationError, and TransformError if it is not one."""
    primitives = vocabulary(graph.cases)
    primitives.require_written_out([graph])
    return ENGINES[name].module().program(graph, primitives, outputs, device)
