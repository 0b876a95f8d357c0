"""What JAX adds: its functions as a source of graphs, XLA as an engine, and `from_jax` and `to_jax` to the API.

JAX is imported where one of these works.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, cast

from tidu_cli.adapters.numpy.api import FUNCTION
from tidu_cli.arguments import a_function, text
from tidu_cli.errors import ArgumentError, EvaluationError, MissingRuleError, TransformError
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import cases_within
from tidu_cli.graph.dataflow import column_of
from tidu_cli.graph.graph import Case, Document, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.lax.recipes.special_function import Recipe
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.limits import limits
from tidu_cli.options import checked
from tidu_cli.port_data import Data, Given
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.plans.interpreter import Run, Runnable
from tidu_cli.runtime.plans.steps import needed_steps
from tidu_cli.transforms.materialize import materialize


def refusal(graph: Graph, primitives: PrimitiveSet) -> str | None:
    """Why XLA cannot run a graph: its first node that only NumPy computes, of a package or of a parameter that is too large."""
    for code in dict.fromkeys(graph.code):
        for case in cases_within([graph.cases[code]]):
            definition = primitives[case.op].in_terms_of_others
            reason = ""
            if case.op not in BUILTIN.primitives and definition is None:
                reason = f"only NumPy computes {case.op}, of a package"
            elif isinstance(definition, Recipe):
                reason = definition.refusal(case.attrs)  # type: ignore[arg-type]
            if reason:
                return f"{graph.describe(list(graph.code).index(code))}: {reason}: choose the engine numpy"
    return None


def _program(graph: Graph, primitives: PrimitiveSet, outputs: Sequence[int] | None, device: str | None) -> Runnable:
    if len(graph.external):
        raise TransformError(f"graph '{graph.name}' reads values of other graphs; run tidu materialize first")
    uncounted = _uncounted(graph)
    told = refusal(graph, primitives) or (uncounted if limits().steps is not None else None)
    if told is not None:
        raise EvaluationError(f"the engine xla cannot run it: {told}")
    from tidu_cli.adapters.jax.devices import device_of

    place = device_of(device)  # which imports JAX, quietly
    from tidu_cli.adapters.jax.executables import XlaProgram, executable

    declared, needed = Graph(graph.name, graph.inputs, graph.outputs, graph.cases), _needed(graph, outputs)
    try:
        return XlaProgram(declared, primitives, needed.inputs, needed.outputs, executable(needed, place), uncounted)
    except (MissingRuleError, NotImplementedError, RuntimeError) as error:
        raise EvaluationError(f"the engine xla cannot run it: {str(error).splitlines()[0]}: choose the engine numpy") from None


_LOOPS = ("scan", "while", "root", "fixed_point", "linear_solve")
"""Operations that run as loops. Those of equations do so in their solvers."""


def _uncounted(graph: Graph) -> str | None:
    """Why a run of XLA cannot keep to a limit on steps: what XLA has begun runs to its end."""
    for code in dict.fromkeys(graph.code):
        within = [case.op for case in cases_within([graph.cases[code]])]
        if any(op in _LOOPS or op not in BUILTIN.primitives for op in within):
            place = graph.describe(list(graph.code).index(code))
            return f"{place} has loops, whose steps only numpy and native count: choose one of these, or set no limit on steps"
    return None


def _needed(graph: Graph, outputs: Sequence[int] | None) -> Graph:
    """The graph of what these outputs need, each value once."""
    chosen = tuple(graph.outputs if outputs is None else (graph.outputs[k] for k in outputs))
    steps = needed_steps(graph, chosen)
    return replace(
        graph,
        inputs=tuple([graph.inputs[k] for k in steps.inputs]),
        outputs=tuple([replace(o, value=value) for o, value in zip(chosen, steps.outputs, strict=True)]),
        code=column_of(steps.code),
        args=column_of(steps.args),
    )


class _Jax:
    """FILE.py:FUNCTION, a function of JAX, which JAX traces."""

    names, functions, written = FUNCTION.names, FUNCTION.functions, FUNCTION.written

    def build(
        self, text: str, given: Mapping[str, Given], *, data: Data | None, name: str | None, outputs: Sequence[str], **how: Any
    ) -> Document:
        """As `build_jax_function` does."""
        from tidu_cli.adapters.jax.functions.function import build_jax_function

        return build_jax_function(text, given, data=data, name=name, outputs=outputs, **how)

    def notes(self, document: Document) -> Sequence[str]:
        """None: JAX keeps loops as loops."""
        return ()


_PLAN, _START, _CALL, _RUN = 1e-3, 1.0, 0.02e-6, 20e-6
"""Seconds to compile a node, to load XLA, for an operation, and for a run by itself (docs/performance.md, Engines)."""

_NODES = 5000
"""With more nodes XLA takes longer for each."""


class _Xla:
    """XLA by way of JAX."""

    name, package, extra, devices = "xla", "jax", "jax", True

    def seconds(self, n_nodes: int, n_calls: int, n_numbers: int, runs: int, call: float) -> float:
        """Compilation takes most of it; where JAX runs already, its start costs nothing more."""
        running = getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None)
        return (0.0 if running else _START) + n_nodes * _PLAN * (1 + n_nodes / _NODES) + runs * (_RUN + n_calls * _CALL)

    refusal = staticmethod(refusal)

    def program(self, graph: Graph, primitives: PrimitiveSet, outputs: Sequence[int] | None, device: str | None) -> Any:
        """The graph compiled for a device, `cpu` or `gpu`, `gpu:1`; by default the one that JAX takes.

        A name that is not one of a device is refused before JAX is imported.
        """
        from tidu_cli.adapters.jax.devices import named

        named(device)
        return _program(graph, primitives, outputs, device)

    def batch(self, graph: Graph, keys: Collection[Key], size: int, max_memory: int | None = None) -> Run | None:
        """None: graphs are vectorized by tidu's rules."""
        return None

    def takes(self, case: Case, primitives: PrimitiveSet) -> str:
        """As `functions.takes` does."""
        from tidu_cli.adapters.jax.lowering.functions import takes

        return takes(case, primitives, precise=True)


JAX, XLA = _Jax(), _Xla()


@checked(function=a_function, name=text)
def from_jax(
    function: Callable[..., Any], *args: Any, names: Sequence[str] = (), name: str | None = None, rules: bool = True
) -> Document:
    """The graph of a function of JAX, which traces it, at arguments of these types: arrays, numbers, text, also nested.

    Or they are `jax.ShapeDtypeStruct`s. What is nested is a pytree, whose leaves that are no arrays (functions, say) stay what they
    are. Inputs are called as the parameters of the function, or as `names` says, one for each argument, and within pytrees by the
    path: "params.w", "layers.0.b". Symbolic dimensions of `jax.export` become open sizes.
    Dtypes are JAX's: those of 64 bits need `jax.enable_x64(True)`. Functions of `jax.custom_jvp`
    and `jax.custom_vjp` become operations of the document that have the derivatives they define; those of JAX's own, such as relu,
    become nodes with these derivatives. With rules=False what they compute is differentiated. Raises BuildError, with the
    equation and the line, for what has no place in a graph.
    """
    from tidu_cli.adapters.jax.functions.function import from_jax as traced

    return traced(function, *args, names=names, name=name, rules=rules)


@checked()
def to_jax(document: Document, output: str | Key | Sequence[str | Key] = ()) -> Callable[..., Any]:
    """The head's outputs (or `output`) as a function of JAX, to be called, or given to jax.jit, jax.grad, jax.vmap and the like.

    It takes the inputs in the order of the document, or by name, or in one dict by key, {"x@-1": ...}; those that no output depends
    on may be left out. It gives the output, or a dict of several by the text of their keys. Arrays have the declared shape, and its
    dtype or one of which it has all values; Python's numbers have any.
    Open sizes are those of the arrays that are given. Records are dicts of their fields, tuples are tuples;
    datetimes are given as in `evaluate`, and are counts of their unit in i64, durations in f64.

    Derivatives are JAX's, by its conventions: cotangents of complex numbers are the conjugates of those that `vjp` gives. Of
    primitives that JAX cannot differentiate they are computed by the rules of tidu. What has 64 bits needs
    jax.config.update("jax_enable_x64", True), or jax.enable_x64(True) around the call. Raises UnknownNameError, TransformError,
    MissingRuleError for what only NumPy computes, ArgumentError where JAX is missing; and what is made EvaluationError for inputs
    that do not fit.
    """
    if find_spec("jax") is None:
        raise ArgumentError("functions of JAX need the package jax: pip install 'tidu[jax]'")
    from tidu_cli.adapters.jax.lowering.calling import jax_callable

    return jax_callable(materialize(document, outputs=cast("list[Key]", output)).head)
