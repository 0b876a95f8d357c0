"""The rules of custom operations: the graphs of their definitions, derived by the transforms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

from tidu_cli.custom.definitions import PASS, AttrValues, CustomAttrs, OpDefinition, attrs_class
from tidu_cli.custom.graphs import typed_graph
from tidu_cli.custom.patterns import TensorPattern, completed
from tidu_cli.errors import MissingRuleError, TypeRuleError
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import CaseTable, Graph, Input
from tidu_cli.graph.types import TensorType, Type, tangent_type
from tidu_cli.rules.contract import JVP, Batching, Kernel, Primitive, Transposition, Types, ValueTypes
from tidu_cli.rules.families import changed, primitive
from tidu_cli.rules.recording.functions import kernel
from tidu_cli.rules.recording.linearity import require_linear
from tidu_cli.rules.recording.trace import Trace, as_output, recorded
from tidu_cli.rules.terms import HIDDEN, Recorder, Term, trace_of, zeros
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms import nested
from tidu_cli.transforms.stamp import drop_dead_nodes

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
        through = {d.name: changed(self.whole[d.name], jvp=_Op(d, self).jvp) for d in self.whole.definitions}
        return replace(self.whole, primitives={**self.whole.primitives, **through})


def custom_primitives(definition: OpDefinition, sets: Sets) -> list[Primitive]:
    """The primitives of a definition: the op, and its derivative if only `backward` says what that is."""
    op = _Op(definition, sets)
    return [op.primitive(), _Derivative(op).primitive()] if "backward" in definition.graphs else [op.primitive()]


class _ByGraphs(ABC):
    """The rules of what is computed by one graph, and is transposed by another where just the operands `linear_in` are active."""

    def __init__(self, name: str, definition: OpDefinition, sets: Sets) -> None:
        self.name = name
        self.definition = definition
        self.sets = sets
        self._flops: dict[Graph, int] = {}

    @abstractmethod
    def graph(self, attrs: CustomAttrs, operands: Sequence[Type | None]) -> Graph:
        """What it computes of operands of these types. Raises TypeRuleError, and MissingRuleError where one is hidden."""

    @abstractmethod
    def reverse(self, attrs: CustomAttrs, operands: Sequence[Type | None]) -> Graph:
        """The graph from the other operands and cotangents of results to cotangents. Raises MissingRuleError if it is wrong."""

    @abstractmethod
    def linear_in(self, n_operands: int) -> tuple[bool, ...]:
        """In which operands it is declared linear together."""

    @abstractmethod
    def hidden(self, attrs: CustomAttrs, operands: Sequence[Type | None], declared: ValueTypes | None) -> Sequence[Type | None]:
        """Operand types, where some are hidden, by patterns."""

    def made(self, arity: int | None, attrs: AttrValues, **more: Any) -> Primitive:
        """The primitive of these rules."""
        rules: dict[str, Any] = {"jvp": self.jvp, "transpose": self.transpose, "batch": self.batch, "inlined": self.inlined}
        return primitive(
            self.name,
            arity,
            self.types,  # type: ignore[arg-type]  # of records, too
            self.kernel,
            **rules | more,
            attrs=attrs_class(self.name, attrs),
            hidden=self.hidden,
            n_results=lambda attrs, n_operands: len(self.definition.outputs),
            integers="exact",
            records=True,
            flops=self.flops,
        )

    def types(self, attrs: CustomAttrs, operands: ValueTypes) -> ValueTypes:
        return tuple(o.type for o in self.graph(attrs, operands).outputs)

    def kernel(self, np: Any, attrs: CustomAttrs, operands: ValueTypes, results: ValueTypes) -> Kernel:
        return kernel(np, self.graph(attrs, operands), self.sets.whole)

    def flops(self, attrs: CustomAttrs, operands: ValueTypes, results: ValueTypes) -> int:
        graph = self.graph(attrs, operands)
        if graph not in self._flops:  # once, since ops made of ops made of ops may have many nodes
            cases, primitives = map(graph.cases.__getitem__, graph.code), self.sets.whole
            flops = (primitives[c.op].evaluation.flops(c.attrs, cast(Types, c.operands), cast(Types, c.results)) for c in cases)
            self._flops[graph] = sum(flops)
        return self._flops[graph]

    def batch(self, node: Batching) -> Sequence[Term]:
        graph = self.graph(node.attrs, node.types)
        return _all(nested.batch(node.operands[0].trace, graph, node.operands, node.batched, node.size))

    def inlined(self, attrs: CustomAttrs, operands: Sequence[Term]) -> Sequence[Term]:
        return _all(nested.apply(operands[0].trace, self.graph(attrs, [t.value_type for t in operands]), operands))

    def jvp(self, node: JVP) -> Sequence[Term | None]:
        """The JVP by what it computes; where it is declared linear in just these tangents, it is its own."""
        operands, trace = [t.value_type for t in node.operands], trace_of(node.tangents)
        if tuple([t is not None for t in node.tangents]) == self.linear_in(len(operands)):
            mixed = [x if t is None else t for x, t in zip(node.operands, node.tangents, strict=True)]
            # It takes the tangents only where they are of the type of its inputs, as those of integers are not.
            if [t.value_type for t in mixed] == operands:
                self.reverse(node.attrs, operands)  # whether it is linear
                return trace.apply(self.name, node.attrs, mixed)
        return nested.push_forward(trace, self.graph(node.attrs, operands), node.operands, node.tangents)

    def transpose(self, node: Transposition) -> Sequence[Term | None]:
        trace = trace_of(node.cotangents)
        if node.active == self.linear_in(len(node.active)):
            graph, others = self.reverse(node.attrs, node.types), [t for t in node.operands if t is not None]
            terms = iter(self.linear_map(trace, graph, others, node.cotangents))
            return [next(terms) if a else None for a in node.active]
        graph = self.graph(node.attrs, node.types)
        require_linear(self.sets.whole, graph, node.active, "active inputs")
        return nested.pull_back(trace, graph, node.operands, node.active, node.cotangents, self.sets.linear)

    def linear_map(
        self, trace: Recorder, graph: Graph, operands: Sequence[Term], moving: Sequence[Term | None]
    ) -> Sequence[Term | None]:
        """Emit a graph that is linear in its last inputs, for tangents or cotangents of which some are zero."""
        values, tangents = [*operands, *[None] * len(moving)], [*[None] * len(operands), *moving]
        return nested.push_forward(trace, graph, values, tangents, self.sets.linear)


class _Op(_ByGraphs):
    """The rules of a custom operation."""

    def __init__(self, definition: OpDefinition, sets: Sets) -> None:
        super().__init__(definition.name, definition, sets)

    def primitive(self) -> Primitive:
        definition, rules = self.definition, dict[str, Any]()
        if "jvp" in definition.graphs:
            rules["jvp"] = self.jvp_by_graph
        if "backward" in definition.graphs:
            rules |= {"jvp": self.jvp_by_derivative, "transpose": None}
        formula = f"{self.name}({', '.join(key.name for key in definition.inputs)})"
        return self.made(len(definition.inputs), definition.attrs, **rules, formula=formula, summary="defined in the document")

    def graph(self, attrs: CustomAttrs, operands: Sequence[Type | None]) -> Graph:
        return typed_graph(self.definition, "forward", self.sets.whole, attrs, _all_known(operands))

    def derivative(self, kind: str, attrs: CustomAttrs, operands: Sequence[Type | None]) -> Graph:
        """The graph `jvp`, `backward` or `transpose`. Raises MissingRuleError if it is wrong, or not linear as it must be."""
        try:
            return typed_graph(self.definition, kind, self.sets.whole, attrs, _all_known(operands))
        except TypeRuleError as error:
            raise MissingRuleError(str(error)) from None

    def reverse(self, attrs: CustomAttrs, operands: Sequence[Type | None]) -> Graph:
        return self.derivative("transpose", attrs, operands)

    def linear_in(self, n_operands: int) -> tuple[bool, ...]:
        return self.definition.linear_in

    def hidden(self, attrs: CustomAttrs, operands: Sequence[Type | None], declared: ValueTypes | None) -> Sequence[Type | None]:
        patterns = self.definition.outputs.values()
        results = zip(patterns, declared, strict=True) if declared is not None and len(declared) == len(patterns) else ()
        return completed([*self.definition.inputs.values()], operands, [*results])

    def inlined(self, attrs: CustomAttrs, operands: Sequence[Term]) -> Sequence[Term]:
        linear = [t.linear for t in operands]
        if not any(linear):
            return super().inlined(attrs, operands)
        # In the nodes that rules emit: those can be transposed.
        graph, trace = self.graph(attrs, [t.value_type for t in operands]), operands[0].trace
        require_linear(self.sets.whole, graph, linear, "active inputs")
        values, tangents = ([t if t.linear is active else None for t in operands] for active in (False, True))
        pushed = nested.push_forward(trace, graph, values, tangents, self.sets.linear)
        return [zeros(trace, o.type) if t is None else t for o, t in zip(graph.outputs, pushed, strict=True)]

    def jvp_by_graph(self, node: JVP) -> Sequence[Term | None]:
        graph = self.derivative("jvp", node.attrs, [t.value_type for t in node.operands])
        return self.linear_map(trace_of(node.tangents), graph, [*node.operands, *node.results], node.tangents)

    def jvp_by_derivative(self, node: JVP) -> Sequence[Term | None]:
        attrs = node.attrs.values | {"active": [t is not None for t in node.tangents]}
        tangents = [t for t in node.tangents if t is not None]
        return tangents[0].trace.emit_all(self.name + JVP_SUFFIX, *node.operands, *node.results, *tangents, **attrs)


class _Derivative(_ByGraphs):
    """The rules of the derivative of an op that has `backward` only: the transpose of that, which is linear in its cotangents.

    Its operands are the op's inputs and outputs, and the tangents of those inputs that its attr `active` says.
    """

    def __init__(self, op: _Op) -> None:
        super().__init__(op.name + JVP_SUFFIX, op.definition, op.sets)
        self.op = op
        self.n_primal = len(op.definition.inputs) + len(op.definition.outputs)
        self._graphs: dict[object, Graph] = {}

    def primitive(self) -> Primitive:
        formula, summary = f"the derivative of {self.op.name}", "the transpose of its backward graph"
        return self.made(None, {**self.definition.attrs, "active": []}, formula=formula, summary=summary)

    def linear_in(self, n_operands: int) -> tuple[bool, ...]:
        return (False,) * self.n_primal + (True,) * (n_operands - self.n_primal)

    def split(self, attrs: CustomAttrs) -> tuple[CustomAttrs, list[bool]]:
        """The op's attrs, and which of its inputs have tangents."""
        values = dict(attrs.values)
        active = values.pop("active")
        n = len(self.definition.inputs)
        if not isinstance(active, list) or len(active) != n or not all(isinstance(a, bool) for a in active) or not any(active):
            raise TypeRuleError(f"attr 'active': it says of each of the {n} inputs whether it has a tangent")
        return CustomAttrs.of(values), active

    def hidden(self, attrs: CustomAttrs, operands: Sequence[Type | None], declared: ValueTypes | None) -> Sequence[Type | None]:
        """By the patterns of the op. Those of tangents have their shapes, and another dtype where it is of integers, or any."""
        inputs, outputs = self.definition.inputs.values(), self.definition.outputs.values()
        _, active = self.split(attrs)
        moving = [pattern for pattern, a in zip(inputs, active, strict=True) if a]
        if len(operands) != self.n_primal + len(moving) or (declared is not None and len(declared) != len(outputs)):
            return operands  # which is refused where types are checked
        tangents = zip([*moving, *(outputs if declared else ())], [*operands[self.n_primal :], *(declared or ())], strict=True)
        shapes = [(replace(p, dtype=t.dtype), t) for p, t in tangents if isinstance(p, TensorPattern) and isinstance(t, TensorType)]
        return [*completed([*inputs, *outputs], operands[: self.n_primal], shapes), *operands[self.n_primal :]]

    def reverse(self, attrs: CustomAttrs, operands: Sequence[Type | None]) -> Graph:
        of_op, active = self.split(attrs)
        backward = self.op.derivative("backward", of_op, operands[: len(active)])
        return replace(backward, outputs=tuple(o for o, a in zip(backward.outputs, active, strict=True) if a))

    def graph(self, attrs: CustomAttrs, operands: Sequence[Type | None]) -> Graph:
        identity = attrs, tuple(operands)
        if identity not in self._graphs:
            self._graphs[identity] = self._transposed_reverse(attrs, _all_known(operands))
        return self._graphs[identity]

    def _transposed_reverse(self, attrs: CustomAttrs, operands: ValueTypes) -> Graph:
        x, y = self.definition.inputs, self.definition.outputs
        _, active = self.split(attrs)
        due = [tangent_type(t) for t, a in zip(operands, active, strict=False) if a]
        if len(operands) != self.n_primal + len(due) or list(operands[self.n_primal :]) != due:
            tangents_due = ", ".join(map(str, due))
            raise TypeRuleError(f"takes the inputs and outputs of {self.op.name}, and tangents {tangents_due}")
        reverse, trace = self.reverse(attrs, operands), Trace(self.sets.whole, CaseTable())
        keys = (*x, *y, *(key.tangent(PASS) for key, a in zip(x, active, strict=True) if a))
        terms = [trace.source(t, linear=False) for t in operands]
        primal, tangents = terms[: self.n_primal], terms[self.n_primal :]
        moving = self.linear_in(len(reverse.inputs))
        pulled = nested.pull_back(trace, reverse, [*primal, *[None] * len(y)], moving, tangents, self.sets.linear)[self.n_primal :]
        outputs = zip(y, operands[len(x) :], pulled, strict=False)
        dense = [as_output(k.name, zeros(trace, tangent_type(t)) if ct is None else ct) for k, t, ct in outputs]
        graph = recorded(trace, self.name, list(map(Input, keys, operands)), dense)
        return drop_dead_nodes([graph], 0)[0]


def _all_known(operands: Sequence[Type | None]) -> ValueTypes:
    if None in operands:
        raise MissingRuleError(HIDDEN)
    return tuple(cast(Sequence[Type], operands))


def _all(terms: Sequence[Term | None]) -> list[Term]:
    return [t for t in terms if t is not None]  # none is: forward graphs give no null, and derivatives write zeros out
