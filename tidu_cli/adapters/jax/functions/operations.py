"""Functions of `jax.custom_jvp` and `jax.custom_vjp` as operations of the document, with the derivatives that they define.

What a rule computes is asked of JAX itself: the jaxpr of the JVP, or of the VJP, of the one equation. It becomes a graph of a
definition (`tidu_cli.custom.definitions`), which the transforms put in the place of the derivative.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from tidu_cli.adapters.jax.functions.jaxpr import equations_within, is_extended, struct_of, type_of
from tidu_cli.adapters.numpy.errors import BuildError, called
from tidu_cli.custom.definitions import PASS, OpDefinition, SourceGraph, SourceNode
from tidu_cli.custom.library import extended
from tidu_cli.custom.patterns import TensorPattern
from tidu_cli.errors import TiduError
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import ClosedGraph, forwards
from tidu_cli.graph.graph import CaseTable, Document, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.contract import Attrs
from tidu_cli.rules.vocabulary import PrimitiveSet

RULES = {"custom_jvp_call": "jvp", "custom_vjp_call": "backward"}
"""Equations of functions that define a derivative, and which graph of a definition says it."""

Made = Callable[[Sequence[TensorType], Callable[[Any, list[Any]], list[Any]]], Graph]
"""Makes a graph of inputs of these types, whose outputs a function gives of (a reader, arrays)."""


class NoDerivativeError(BuildError):
    """A rule that raises: JAX has no derivative there, as of what equinox calls nondifferentiable."""


class Operations:
    """The operations that a reading has defined, and the primitives with them; with `always` every function with a rule is one."""

    def __init__(self, *, always: bool) -> None:
        self.always = always
        self.primitives: PrimitiveSet = BUILTIN
        self._definitions: dict[str, OpDefinition] = {}
        self._going_on: dict[str, dict[str, str]] = {}  # by the place of the function: its jaxpr, and the name it has
        self._names: dict[str, str] = {}  # of definitions, by their words
        self._attrs: dict[str, Attrs] = {}  # of nodes of definitions, by what they are in a file

    def wants(self, equation: Any) -> bool:
        """Whether an equation is to be an operation: where what it computes does not tell its derivative, it is."""
        given, results = ([v.aval for v in some] for some in (equation.invars, equation.outvars))
        if any(map(is_extended, given + results)) or not all(any(type_of(a).inexact for a in some) for some in (given, results)):
            return False
        jaxpr = equation.params["call_jaxpr"]
        if (source := _source_of(jaxpr)) in self._going_on and str(jaxpr) not in self._going_on[source]:
            return False  # the rule of a solver that solves a larger system by itself, whose rule solves one yet larger
        return self.always or hides_its_derivative(jaxpr.jaxpr)

    def named(self, equation: Any, made: Made) -> str:
        """The name of the operation that an equation is. Raises TiduError where its rule is no derivative that a graph can have."""
        jaxpr = equation.params["call_jaxpr"]
        source = _source_of(jaxpr)
        if source in self._going_on:  # within its own rule
            return self._going_on[source][str(jaxpr)]
        name = self._free_name(jaxpr.jaxpr.debug_info.func_name)
        self._going_on[source] = {str(jaxpr): name}
        before = self.primitives, dict(self._definitions), dict(self._names)
        try:
            return self._defined(name, Rule(equation), made)
        except TiduError:
            self.primitives, self._definitions, self._names = before
            raise
        finally:
            del self._going_on[source]

    def settled(self, document: Document) -> Document:
        """A document of one graph, in which all graphs are of the operations that there are in the end."""
        if not self._definitions:
            return document
        graph = over(document.head, self.primitives)
        return Document((graph,), graph.cases)

    def _defined(self, name: str, rule: Rule, made: Made) -> str:
        graphs = {"forward": self._source(*rule.forward(made))}
        self._define(name, rule, graphs)  # so that its rule may apply it
        graphs[rule.kind] = self._source(*(rule.jvp(made) if rule.kind == "jvp" else rule.backward(made)))
        provisional = self._definitions.pop(name)
        data = replace(provisional, graphs=graphs, typed={}).to_data()
        words = json.dumps(data).replace(f'"op": "{name}"', '"op": ""')  # whatever it is called, also within its own rule
        if words in self._names:
            self.primitives = extended(BUILTIN, list(self._definitions.values()))
            return self._names[words]
        self._define(name, rule, graphs)
        self._names[words] = name
        return name

    def _define(self, name: str, rule: Rule, graphs: Mapping[str, SourceGraph]) -> None:
        self._definitions[name] = OpDefinition(name, rule.inputs, rule.outputs, {}, dict(graphs), self._read_attrs)
        self.primitives = extended(BUILTIN, list(self._definitions.values()))

    def _free_name(self, wanted: str) -> str:
        name = re.sub(r"[^A-Za-z0-9_-]", "_", wanted.rpartition(".")[2]).lstrip("_-0123456789") or "function"
        taken = {*BUILTIN.primitives, *self._definitions}
        return next(n for k in range(1, len(taken) + 2) if (n := name if k == 1 else f"{name}_{k}") not in taken)

    def _source(self, graph: Graph, inputs: Sequence[Key], outputs: Mapping[Key, int | None]) -> SourceGraph:
        """A graph as one of a definition, whose inputs and outputs have these keys; the latter by their numbers, None for zeros."""
        nodes = []
        for code, args, _, _ in forwards(graph, graph.args):
            case = graph.cases[code]
            data = case.attrs.to_data(binary=False)
            self._attrs[_text(case.op, data)] = cast(Attrs, case.attrs)
            nodes.append(SourceNode(case.op, data, tuple(args)))
        values = tuple((key, None if k is None else graph.outputs[k].value) for key, k in outputs.items())
        return SourceGraph(tuple(inputs), tuple(nodes), values)

    def _read_attrs(self, primitives: PrimitiveSet, op: str, data: Mapping[str, Any]) -> Any:
        known = self._attrs.get(_text(op, data))
        return primitives.parse_attrs(op, data) if known is None else settled(known, primitives)


class Rule:
    """An equation of a function that defines its derivative: graphs of a definition, with the keys of their inputs and outputs."""

    def __init__(self, equation: Any) -> None:
        self.equation = equation
        self.kind = RULES[equation.primitive.name]
        self.types, self.results = ([type_of(v.aval) for v in some] for some in (equation.invars, equation.outvars))
        self.inputs, self.outputs = (
            {Key(f"{letter}{k}"): TensorPattern(t.dtype, t.shape) for k, t in enumerate(types)}
            for letter, types in (("x", self.types), ("y", self.results))
        )
        # What a function closes over has no part in its rule.
        first = equation.params["num_consts"]
        self.active = [k for k, t in enumerate(self.types) if t.inexact and k >= first]
        self.inexact = [k for k, t in enumerate(self.results) if t.inexact]

    def forward(self, made: Made) -> tuple[Graph, list[Key], dict[Key, int | None]]:
        """What it computes."""
        closed = self.equation.params["call_jaxpr"]
        graph = made(self.types, lambda reader, xs: reader.run(closed.jaxpr, closed.consts, xs))
        return graph, [*self.inputs], {key: k for k, key in enumerate(self.outputs)}

    def jvp(self, made: Made) -> tuple[Graph, list[Key], dict[Key, int | None]]:
        """The tangents of its results, of operands and their tangents."""
        import jax

        def tangents(*values: Any) -> list[Any]:
            xs, moving = values[: len(self.types)], dict(zip(self.active, values[len(self.types) :], strict=True))
            zero = [np.zeros(x.shape, x.dtype if t.inexact else jax.dtypes.float0) for x, t in zip(xs, self.types, strict=True)]
            _, out_tangents = jax.jvp(self._apply, xs, tuple(moving.get(k, z) for k, z in enumerate(zero)))
            return [out_tangents[k] for k in self.inexact]

        return self._made(made, tangents, self.active, self.types, self.inexact, self.outputs, lambda key: key.tangent(PASS))

    def backward(self, made: Made) -> tuple[Graph, list[Key], dict[Key, int | None]]:
        """The cotangents of its operands, of these and those of its results. Here they are the conjugates of JAX's."""
        import jax

        def cotangents(*values: Any) -> list[Any]:
            xs, given = list(values[: len(self.types)]), values[len(self.types) :]

            def moved(*active: Any) -> list[Any]:
                for k, x in zip(self.active, active, strict=True):
                    xs[k] = x
                results = self._apply(*xs)
                return [results[k] for k in self.inexact]

            _, pull_back = jax.vjp(moved, *[xs[k] for k in self.active])
            return [_conjugate(ct) for ct in pull_back([_conjugate(ct) for ct in given])]

        return self._made(made, cotangents, self.inexact, self.results, self.active, self.inputs, lambda key: key.cotangent(PASS))

    def _made(
        self,
        made: Made,
        function: Callable[..., Any],
        moving: Sequence[int],
        types: Sequence[TensorType],
        computed: Sequence[int],
        due: Mapping[Key, Any],
        moved: Callable[[Key], Key],
    ) -> tuple[Graph, list[Key], dict[Key, int | None]]:
        import jax

        given = [*self.types, *[types[k] for k in moving]]
        try:
            closed = called(jax.make_jaxpr(function), *map(struct_of, given))  # a rule may take fewer tangents than there are
        except BuildError as error:
            raise NoDerivativeError(str(error)) from error
        graph = made(given, lambda reader, xs: reader.run(closed.jaxpr, closed.consts, xs))
        sources = list(self.inputs if types is self.types else self.outputs)
        keys = [*self.inputs, *[moved(sources[k]) for k in moving]]
        number = {k: n for n, k in enumerate(computed)}
        return graph, keys, {moved(key): number.get(k) for k, key in enumerate(due)}

    def _apply(self, *operands: Any) -> Any:
        """The equation itself, with its rule."""
        primitive = self.equation.primitive
        return primitive.bind(*operands, **primitive.get_bind_params(self.equation.params))


def _source_of(closed: Any) -> str:
    return str(closed.jaxpr.debug_info.func_src_info)


def settled(attrs: Attrs, primitives: PrimitiveSet) -> Attrs:
    """Attrs whose graphs are of these primitives, which may be more than those that they were made with."""
    return attrs.with_graphs(lambda closed: ClosedGraph(over(closed.graph, primitives))) if attrs.graphs else attrs


def over(graph: Graph, primitives: PrimitiveSet) -> Graph:
    """A graph over a table of these primitives."""
    cases = CaseTable(primitives)
    for case in graph.cases.cases:
        cases.intern(replace(case, attrs=settled(cast(Attrs, case.attrs), primitives)))
    return replace(graph, cases=cases)


def _text(op: str, data: Mapping[str, Any]) -> str:
    return f"{op} {json.dumps(data, sort_keys=True)}"


def _conjugate(x: Any) -> Any:
    return x.conj() if x.dtype.kind == "c" else x


def hides_its_derivative(jaxpr: Any) -> bool:
    """Whether a jaxpr does not tell its derivative: it takes bits, or has a loop that ends when a condition says so."""
    return any(e.primitive.name == "while" or _takes_bits(e) for e in equations_within(jaxpr))


def takes_bits(jaxpr: Any) -> bool:
    """Whether a jaxpr takes the bits of floats, which have no derivative."""
    return any(map(_takes_bits, equations_within(jaxpr)))


def _takes_bits(equation: Any) -> bool:
    return bool(equation.primitive.name == "bitcast_convert_type" and equation.invars[0].aval.dtype.kind == "f")
