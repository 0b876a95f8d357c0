"""The rules of custom operations: the graphs of their definitions, derived by the transforms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

from tidu_cli.custom.attrs import AttrValues, CustomAttrs, attrs_class
from tidu_cli.custom.definitions import OpDefinition
from tidu_cli.custom.graphs import typed_graph
from tidu_cli.custom.patterns import TensorPattern, completed
from tidu_cli.errors import MissingRuleError, TypeRuleError
from tidu_cli.graph.graph import CaseTable, Graph, Output
from tidu_cli.graph.types import TensorType, Type, tangent_type
from tidu_cli.rules.contract import JVP, Batching, Kernel, Primitive, PrimitiveSet, Transposition, Types, ValueTypes
from tidu_cli.rules.graphs import kernel, recorded
from tidu_cli.rules.linearity import require_linear
from tidu_cli.rules.recording import HIDDEN, Term, Trace
from tidu_cli.transforms import nested

JVP_SUFFIX = ".jvp"
"""What follows an op's name in that of its derivative, where that has no graph of its own."""


class Sets:
    """The set of primitives that custom operations are in, given as `whole` once it is there: they are made of one another."""

    whole: PrimitiveSet

    @cached_property
    def linear(self) -> PrimitiveSet:
        """The set by whose rules graphs are derived that are linear: there an op is what it stands for.

        Its own `jvp` may be defined by itself, and of a linear map it is no other.
        """
        through = {d.name: replace(self.whole[d.name], jvp=_Op(d, self).jvp_through_forward) for d in self.whole.definitions}
        return replace(self.whole, primitives={**self.whole.primitives, **through})


def custom_primitives(definition: OpDefinition, sets: Sets) -> list[Primitive]:
    """The primitives of a definition: the op, and its derivative if only `backward` says what that is."""
    op = _Op(definition, sets)
    return [op.primitive(), _Derivative(op).primitive()] if op.has_derivative else [op.primitive()]


class _ByGraph:
    """The rules of what is defined by a graph, whichever it is."""

    name: str
    sets: Sets

    def __init__(self) -> None:
        self._flops: dict[Graph, int] = {}

    def graph(self, attrs: CustomAttrs, operands: Sequence[Type | None]) -> Graph:
        """What the op computes of operands of these types. Raises TypeRuleError, and MissingRuleError where one is hidden."""
        raise NotImplementedError

    def made(self, arity: int | None, attrs: AttrValues, n_results: int, **rules: Any) -> Primitive:
        """The primitive, with these rules and those that follow from the graph."""
        return Primitive(
            self.name,
            arity,
            self.types,  # type: ignore[arg-type]  # of records, too
            self.kernel,
            attrs=attrs_class(self.name, attrs),
            n_results=lambda attrs, n_operands: n_results,
            batch=self.batch,
            integers="exact",
            records=True,
            flops=self.flops,
            **rules,
        )

    def types(self, attrs: CustomAttrs, operands: ValueTypes) -> ValueTypes:
        return tuple(o.type for o in self.graph(attrs, operands).outputs)

    def kernel(self, np: Any, attrs: CustomAttrs, operands: ValueTypes, results: ValueTypes) -> Kernel:
        return kernel(np, self.graph(attrs, operands), self.sets.whole)

    def flops(self, attrs: CustomAttrs, operands: ValueTypes, results: ValueTypes) -> int:
        graph = self.graph(attrs, operands)
        if graph not in self._flops:  # once, since ops made of ops made of ops may have many nodes
            cases = map(graph.cases.__getitem__, graph.code)
            self._flops[graph] = sum(
                self.sets.whole[c.op].flops(c.attrs, cast(Types, c.operands), cast(Types, c.results)) for c in cases
            )
        return self._flops[graph]

    def batch(self, node: Batching) -> Sequence[Term]:
        graph = self.graph(node.attrs, node.types)
        return _all(nested.batch(node.operands[0].trace, graph, node.operands, node.batched, node.size))


class _Op(_ByGraph):
    """The rules of a custom operation."""

    def __init__(self, definition: OpDefinition, sets: Sets) -> None:
        super().__init__()
        self.definition = definition
        self.name = definition.name
        self.sets = sets

    @property
    def has_derivative(self) -> bool:
        """Whether its derivative is an op of its own."""
        return "backward" in self.definition.graphs and "jvp" not in self.definition.graphs

    def primitive(self) -> Primitive:
        definition = self.definition
        is_linear = "transpose" in definition.graphs or "backward" not in definition.graphs
        return self.made(
            len(definition.inputs),
            definition.attrs,
            len(definition.outputs),
            jvp=self.jvp if definition.graphs.keys() & {"jvp", "backward"} else self.jvp_through_forward,
            transpose=self.transpose if is_linear else None,
            hidden=self.hidden,
            inlined=self.inlined,
            linear_in=lambda n_operands: definition.linear_in,
            formula=f"{self.name}({', '.join(p.name for p in definition.inputs)})",
            summary="defined in the document",
        )

    def hidden(self, attrs: CustomAttrs, operands: Sequence[Type | None], declared: ValueTypes | None) -> Sequence[Type | None]:
        patterns = [p.pattern for p in self.definition.outputs]
        results = zip(patterns, declared, strict=True) if declared is not None and len(declared) == len(patterns) else ()
        return completed([p.pattern for p in self.definition.inputs], operands, [*results])

    def graph(self, attrs: CustomAttrs, operands: Sequence[Type | None]) -> Graph:
        return typed_graph(self.definition, "forward", self.sets.whole, attrs, _all_known(operands))

    def derivative(self, kind: str, attrs: CustomAttrs, operands: Sequence[Type | None]) -> Graph:
        """The graph `jvp`, `backward` or `transpose`. Raises MissingRuleError if it is wrong, or not linear as it must be."""
        try:
            return typed_graph(self.definition, kind, self.sets.whole, attrs, _all_known(operands))
        except TypeRuleError as error:
            raise MissingRuleError(str(error)) from None

    def linear_map(self, graph: Graph, operands: Sequence[Term], moving: Sequence[Term | None]) -> Sequence[Term | None]:
        """Emit a graph that is linear in its last inputs, for tangents or cotangents of which some are zero."""
        trace = (*operands, *(t for t in moving if t is not None))[0].trace
        values, tangents = [*operands, *[None] * len(moving)], [*[None] * len(operands), *moving]
        return nested.push_forward(trace, graph, values, tangents, self.sets.linear)

    def inlined(self, attrs: CustomAttrs, operands: Sequence[Term]) -> Sequence[Term]:
        trace, linear = operands[0].trace, [t.linear for t in operands]
        graph = self.graph(attrs, [t.value_type for t in operands])
        if not any(linear):
            return _all(nested.apply(trace, graph, operands))
        # In the nodes that rules emit: those can be transposed.
        require_linear(self.sets.whole, graph, linear, "active inputs")
        values, tangents = ([t if t.linear is kind else None for t in operands] for kind in (False, True))
        return _dense(trace, graph.outputs, nested.push_forward(trace, graph, values, tangents, self.sets.linear))

    def jvp(self, node: JVP) -> Sequence[Term | None]:
        """The JVP by the graph that says what it is."""
        if not self.has_derivative:
            graph = self.derivative("jvp", node.attrs, [t.value_type for t in node.operands])
            return self.linear_map(graph, [*node.operands, *node.results], node.tangents)
        attrs = node.attrs.values | {"active": [t is not None for t in node.tangents]}
        tangents = [t for t in node.tangents if t is not None]
        return tangents[0].trace.emit_all(self.name + JVP_SUFFIX, *node.operands, *node.results, *tangents, **attrs)

    def jvp_through_forward(self, node: JVP) -> Sequence[Term | None]:
        """The JVP by what the op computes: of an op that is declared linear in just these tangents, the op itself."""
        operands = [t.value_type for t in node.operands]
        mixed = [x if t is None else t for x, t in zip(node.operands, node.tangents, strict=True)]
        is_linear = "transpose" in self.definition.graphs and _active(node.tangents) == self.definition.linear_in
        # The op itself takes the tangents only where they are of the type of its inputs, as those of integers are not.
        if is_linear and [t.value_type for t in mixed] == operands:
            self.derivative("transpose", node.attrs, operands)  # whether it is linear
            return _trace_of(node.tangents).apply(self.name, node.attrs, mixed)
        return nested.push_forward(_trace_of(node.tangents), self.graph(node.attrs, operands), node.operands, node.tangents)

    def transpose(self, node: Transposition) -> Sequence[Term | None]:
        if node.active == self.definition.linear_in and "transpose" in self.definition.graphs:
            graph = self.derivative("transpose", node.attrs, node.types)
            found = iter(self.linear_map(graph, [t for t in node.operands if t is not None], node.cotangents))
            return [next(found) if a else None for a in node.active]
        graph = self.graph(node.attrs, node.types)
        require_linear(self.sets.whole, graph, node.active, "active inputs")
        trace = _trace_of(node.cotangents)
        return nested.pull_back(trace, graph, node.operands, node.active, node.cotangents, self.sets.linear)


class _Derivative(_ByGraph):
    """The rules of the derivative of an op that has `backward` only: the transpose of that, which is linear in its cotangents.

    Its operands are the op's inputs and outputs, and the tangents of those inputs that its attr `active` says.
    """

    def __init__(self, op: _Op) -> None:
        super().__init__()
        self.op = op
        self.name = op.name + JVP_SUFFIX
        self.sets = op.sets
        self.n_primal = len(op.definition.inputs) + len(op.definition.outputs)
        self._graphs: dict[object, Graph] = {}

    def primitive(self) -> Primitive:
        definition = self.op.definition
        return self.made(
            None,
            {**definition.attrs, "active": []},
            len(definition.outputs),
            jvp=self.jvp,
            transpose=self.transpose,
            hidden=self.hidden,
            inlined=self.inlined,
            linear_in=self.linear_in,
            formula=f"the derivative of {definition.name}",
            summary="the transpose of its backward graph",
        )

    def linear_in(self, n_operands: int) -> tuple[bool, ...]:
        return (False,) * self.n_primal + (True,) * (n_operands - self.n_primal)

    def split(self, attrs: CustomAttrs) -> tuple[CustomAttrs, list[bool]]:
        values = dict(attrs.values)
        active = values.pop("active")
        n = len(self.op.definition.inputs)
        if not isinstance(active, list) or len(active) != n or not all(isinstance(a, bool) for a in active) or not any(active):
            raise TypeRuleError(f"attr 'active': it says of each of the {n} inputs whether it has a tangent")
        return CustomAttrs.of(values), active

    def hidden(self, attrs: CustomAttrs, operands: Sequence[Type | None], declared: ValueTypes | None) -> Sequence[Type | None]:
        """By the patterns of the op. Those of tangents have their shapes, and another dtype where it is of integers, or any."""
        definition = self.op.definition
        inputs, outputs = ([p.pattern for p in ports] for ports in (definition.inputs, definition.outputs))
        _, active = self.split(attrs)
        moving = [pattern for pattern, a in zip(inputs, active, strict=True) if a]
        if len(operands) != self.n_primal + len(moving) or (declared is not None and len(declared) != len(outputs)):
            return operands  # which is refused where types are checked
        tangents = zip([*moving, *(outputs if declared else ())], [*operands[self.n_primal :], *(declared or ())], strict=True)
        shapes = [(replace(p, dtype=t.dtype), t) for p, t in tangents if isinstance(p, TensorPattern) and isinstance(t, TensorType)]
        return [*completed([*inputs, *outputs], operands[: self.n_primal], shapes), *operands[self.n_primal :]]

    def graph(self, attrs: CustomAttrs, operands: Sequence[Type | None]) -> Graph:
        identity = attrs, tuple(operands)
        if identity not in self._graphs:
            self._graphs[identity] = self._transposed_backward(attrs, _all_known(operands))
        return self._graphs[identity]

    def _transposed_backward(self, attrs: CustomAttrs, operands: ValueTypes) -> Graph:
        definition = self.op.definition
        of_op, active = self.split(attrs)
        inputs = operands[: len(definition.inputs)]
        due = [tangent_type(t) for t, a in zip(inputs, active, strict=True) if a]
        if list(operands[self.n_primal :]) != due or len(operands) < self.n_primal:
            tangents_due = ", ".join(map(str, due))
            raise TypeRuleError(f"takes the inputs and outputs of {definition.name}, and tangents {tangents_due}")
        backward = self.op.derivative("backward", of_op, inputs)
        keys = (*definition.input_keys, *definition.output_keys)
        moved = [key.tangent(1) for key, a in zip(keys, active, strict=False) if a]
        types = dict(zip((*keys, *moved), operands, strict=True))
        trace = Trace(self.sets.linear, CaseTable())
        terms = {key: trace.source(t, linear=False) for key, t in types.items()}
        values = [*map(terms.get, keys), *[None] * len(definition.outputs)]
        cotangents = [terms.get(key.tangent(1)) for key in definition.input_keys]
        found = nested.pull_back(trace, backward, values, self.linear_in(len(values)), cotangents)[self.n_primal :]
        outputs = [Output(key, None, tangent_type(types[key])) for key in definition.output_keys]
        dense = _dense(trace, outputs, found)
        return recorded(trace, self.name, types, dict(zip(definition.output_keys, dense, strict=True)))

    def inlined(self, attrs: CustomAttrs, operands: Sequence[Term]) -> Sequence[Term]:
        return _all(nested.apply(operands[0].trace, self.graph(attrs, [t.value_type for t in operands]), operands))

    def jvp(self, node: JVP) -> Sequence[Term | None]:
        if _active(node.tangents) == self.linear_in(len(node.tangents)):
            moved = [x if t is None else t for x, t in zip(node.operands, node.tangents, strict=True)]
            return moved[-1].trace.apply(self.name, node.attrs, moved)
        graph = self.graph(node.attrs, [t.value_type for t in node.operands])
        return nested.push_forward(_trace_of(node.tangents), graph, node.operands, node.tangents)

    def transpose(self, node: Transposition) -> Sequence[Term | None]:
        of_op, active = self.split(node.attrs)
        if node.active != self.linear_in(len(node.active)):
            raise MissingRuleError(f"missing transpose rule for {self.name} with active inputs {list(node.active)}")
        backward = self.op.derivative("backward", of_op, node.types[: len(self.op.definition.inputs)])
        found = self.op.linear_map(backward, [t for t in node.operands if t is not None], node.cotangents)
        return [*[None] * self.n_primal, *(c for c, a in zip(found, active, strict=True) if a)]


def _all_known(operands: Sequence[Type | None]) -> ValueTypes:
    if None in operands:
        raise MissingRuleError(HIDDEN)
    return tuple(cast(Sequence[Type], operands))


def _active(tangents: Sequence[Term | None]) -> tuple[bool, ...]:
    return tuple([t is not None for t in tangents])


def _trace_of(terms: Sequence[Term | None]) -> Trace:
    return next(t.trace for t in terms if t is not None)


def _all(terms: Sequence[Term | None]) -> list[Term]:
    return [t for t in terms if t is not None]  # none is: forward graphs give no null, and derivatives write zeros out


def _dense(trace: Trace, outputs: Sequence[Output], terms: Sequence[Term | None]) -> list[Term]:
    """Tangents of outputs, with zeros written out."""
    return [_zeros(trace, o.type) if t is None else t for o, t in zip(outputs, terms, strict=True)]


def _zeros(trace: Trace, type_: Type) -> Term:
    """The zero of a type of tangents."""
    if isinstance(type_, TensorType):
        return trace.full(0, type_)
    name, first = type_.fields[0]  # the others are structurally zero
    return trace.emit(trace.primitives.record, _zeros(trace, first), type=type_, fields=(name,) if len(type_.fields) > 1 else None)
