"""A closed vocabulary of primitives, and the case of a node: what its op, attrs and operand types come to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar, cast

from tidu_cli.errors import MissingRuleError, NoReverseError, Remedy, TypeRuleError, UnknownNameError, did_you_mean
from tidu_cli.frozen import Frozen, field, replace
from tidu_cli.graph.closed import cases_within, derived_graphs
from tidu_cli.graph.graph import Case, CaseAttrs, Graph
from tidu_cli.graph.types import RecordType, TensorType, Type, require_possible
from tidu_cli.rules.contract import Attrs, BatchRule, Domain, JVPRule, Primitive, TransposeRule, Types, ValueTypes
from tidu_cli.rules.tangents import joined

R = TypeVar("R")

Definition = Any
"""The definition of a custom operation: it has a name, an origin (its library), inputs, outputs, and the ops that it uses."""

Extension = Callable[["PrimitiveSet", Sequence[Definition]], "PrimitiveSet"]
"""From (a set, definitions) to the set with these custom operations. Raises TypeRuleError for two different ones of one name."""


class PrimitiveSet(Frozen, slots=False):
    """A closed vocabulary of primitives.

    `add` names the one that accumulates cotangents, `constant` that of constant arrays, `size` that of sizes as numbers, `barrier`
    the identity of several operands whose results are other values, which recomputation needs, `record` the one that puts records
    together; `records` are the record types by name, and `origins` the libraries of those that are not a document's own.

    What is beyond the built-in primitives comes with those who make such sets: `definitions` are those of custom operations,
    `extended` adds such to another set, and `require_written_out` raises LimitError, naming an op, if those of graphs stand for too
    many nodes to go through; `plugins` are the packages whose primitives are in the set, too, `announced` are the ops of all that
    are installed, and `installed` imports the primitive that one of `plugins` brings; None if no package does.
    `weak` is the same set where a zero times infinity is NaN: given where linear nodes have strong zeros (`strong`), else None.
    `templates` are what their rules emit, as far as it has been recorded (see `tidu_cli.rules.recording.templates`).
    """

    primitives: Mapping[str, Primitive]
    add: str = "add"
    constant: str = "constant"
    barrier: str = "optimization_barrier"
    size: str = "size"
    record: str = "record"
    records: Mapping[str, RecordType] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    definitions: tuple[Definition, ...] = ()
    extended: Extension = lambda base, definitions: base
    require_written_out: Callable[[Sequence[Graph]], None] = lambda graphs: None
    plugins: frozenset[str] = frozenset()
    announced: Callable[[], Iterable[str]] = tuple
    installed: Callable[[str, frozenset[str]], Primitive | None] = lambda op, plugins: None
    weak: PrimitiveSet | None = None
    templates: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, primitives: Sequence[Primitive], add: str = "add") -> PrimitiveSet:
        """A set of these primitives. Raises ValueError if two share a name."""
        by_name = {p.name: p for p in primitives}
        if len(by_name) != len(primitives):
            raise ValueError("two primitives of one set share a name")
        return cls(by_name, add)

    @cached_property
    def strong(self) -> PrimitiveSet:
        """The set whose rules emit linear products and quotients in which a zero stays one, whatever the slope (`Rules.strong`)."""
        return self if self.weak else replace(self, weak=self)

    def definition_of(self, op: str) -> Definition | None:
        """The definition of a custom operation, or of the one whose derivative `op` is; None for any other."""
        return self._definition_by_name.get(op.partition(".")[0]) if self.definitions else None

    @cached_property
    def _definition_by_name(self) -> dict[str, Definition]:
        return {d.name: d for d in self.definitions}

    def reached_from(self, ops: Iterable[str]) -> list[Definition]:
        """The definitions of custom operations among these ops, and of those that their graphs use, in the order of definition."""
        reached = self._reached(ops)
        return [d for d in self.definitions if d.name in reached]

    def _reached(self, ops: Iterable[str]) -> dict[str, Definition]:
        pending = list(ops)
        reached: dict[str, Definition] = {}
        while pending:
            definition = self.definition_of(pending.pop())
            if definition is not None and definition.name not in reached:
                reached[definition.name] = definition
                pending += definition.uses
        return reached

    def definitions_behind(self, op: str) -> list[Definition]:
        """The definitions that say what an op is: those it reaches, by name; none if it is built in."""
        reached = self._reached([op])
        return [reached[name] for name in sorted(reached, key=str.encode)]

    def __getitem__(self, op: str) -> Primitive:
        """The primitive of that name, of the set or of a package. Raises UnknownNameError with a suggestion, and PluginError."""
        primitive = self.primitives.get(op) or self.installed(op, self.plugins)
        if primitive is None:
            hint = did_you_mean(op, [*self.primitives, *self.announced()])
            raise UnknownNameError(f"unknown op '{op}'{hint} ({Remedy(function='ops')} lists them)")
        return primitive

    def __iter__(self) -> Iterator[Primitive]:
        return iter(self.primitives.values())

    def parse_attrs(self, op: str, attrs: Mapping[str, object]) -> Attrs:
        """Attrs from their file form. Raises TypeRuleError for missing, unknown or malformed ones."""
        return self[op].domain.attrs.parse(attrs, self.records)

    def case(
        self,
        op: str,
        attrs: CaseAttrs,
        mask: tuple[bool, ...] | None,
        operands: Sequence[Type | None],
        declared: ValueTypes | None = None,
    ) -> Case:
        """The case of a node: checks arity and mask, and infers the result types.

        `declared` are the result types that the node states, if any. An operand type of None is hidden by a detached reference.
        Raises UnknownNameError and TypeRuleError.
        """
        domain, n = self[op].domain, len(operands)
        if domain.arity is None and n == 0:
            raise TypeRuleError("takes at least 1 input, got 0")
        if domain.arity is not None and n != domain.arity:
            raise TypeRuleError(f"takes {domain.arity} input{'s' if domain.arity != 1 else ''}, got {n}")
        if mask is not None and len(mask) != n:
            raise TypeRuleError(f"active mask has {len(mask)} entries for {n} inputs")
        operands = _with_hidden_types(domain, attrs, operands, declared) if None in operands else operands
        if None in operands:
            return Case(op, attrs, mask, tuple(operands), _as_declared(domain, attrs, n, declared))
        known = cast(ValueTypes, tuple(operands))
        if not domain.records:
            for k, type_ in enumerate(known):
                if isinstance(type_, RecordType):
                    raise TypeRuleError(f"input {k} is a record, {type_}, but it takes arrays; take its fields with the op 'field'")
        results: ValueTypes = domain.types(attrs, cast(Types, self._joined(known) if domain.joins else known))
        for result in results:
            require_possible(result)
        if declared is not None and declared != results:
            raise TypeRuleError(f"declares the result {_join(declared)}, but it is {_join(results)}")
        return Case(op, attrs, mask, known, results)

    def _joined(self, types: ValueTypes) -> ValueTypes:
        """Types of tangents as the one in which they add up, if there is one."""
        if all(t == types[0] for t in types):
            return types
        common = joined(types, self.records)
        return types if common is None else (common,) * len(types)

    def is_irreversible(self, cases: Iterable[Case]) -> bool:
        """Whether some of these cases, or of those in the graphs that define them, can have no transpose."""
        return any(self[case.op].rules.irreversible for case in cases_within(cases, derived_graphs))

    def jvp_rule(self, op: str) -> JVPRule:
        """The JVP rule of a primitive. Raises MissingRuleError."""
        return _required(self[op].rules.jvp, "JVP", op)

    def transpose_rule(self, op: str) -> TransposeRule:
        """The transpose rule of a primitive. Raises MissingRuleError."""
        rules = self[op].rules
        if rules.irreversible:
            raise NoReverseError(f"{op} {rules.irreversible}")
        return _required(rules.transpose, "transpose", op)

    def batch_rule(self, op: str) -> BatchRule:
        """The batch rule of a primitive. Raises MissingRuleError."""
        return _required(self[op].rules.batch, "batch", op)


def _required(rule: R | None, kind: str, op: str) -> R:
    if rule is None:
        raise MissingRuleError(f"missing {kind} rule for {op}")
    return rule


def _join(types: ValueTypes) -> str:
    return ", ".join(map(str, types))


# Operand types that a detached reference hides, found by what else a node says: its other operands, and its result types.


def _with_hidden_types(
    domain: Domain, attrs: CaseAttrs, operands: Sequence[Type | None], declared: ValueTypes | None
) -> Sequence[Type | None]:
    """Operand types, of those that are None as many as the domain of the primitive can tell."""
    if domain.one_type:
        type_ = next((t for t in operands if t is not None), None) or _one_type(domain, attrs, len(operands), declared)
        operands = operands if type_ is None else _completed(domain, attrs, operands, type_, declared)
    return domain.hidden(attrs, operands, declared) if None in operands and domain.hidden is not None else operands


def _as_declared(domain: Domain, attrs: CaseAttrs, n: int, declared: ValueTypes | None) -> ValueTypes:
    """The result types of a node of n operands some of whose types stay hidden: those that it declares. Raises TypeRuleError."""
    if declared is None:
        raise TypeRuleError(
            "reads a detached value, so its result types cannot be inferred; give the node's types or resolve first"
        )
    due = domain.n_results(attrs, n)
    if len(declared) != due:
        raise TypeRuleError(f"declares {len(declared)} result types, but has {due} result{'' if due == 1 else 's'}")
    return declared


def _completed(
    domain: Domain, attrs: CaseAttrs, operands: Sequence[Type | None], type_: Type, declared: ValueTypes | None
) -> Sequence[Type | None]:
    """Operand types with this one for those that are hidden; or with one that gives what is declared: a number that scales, say.

    Unchanged where the primitive takes no operands of that one type.
    """
    others = () if declared is None or isinstance(type_, RecordType) else (type_.with_dtype("f64"),)
    best = operands
    for candidate in (type_, *others, *(declared or ())):
        completed = [candidate if t is None else t for t in operands]
        try:
            results = domain.types(attrs, cast(Types, tuple(completed)))
        except TypeRuleError:
            continue  # the primitive does not take it
        if declared is None or results == declared:
            return completed
        best = completed if candidate == type_ else best  # which says what is wrong with the declaration
    return best


def _one_type(domain: Domain, attrs: CaseAttrs, n: int, declared: ValueTypes | None) -> Type | None:
    """The type of n operands of one type that gives the declared results; None where there is none, or more than one."""
    if declared is None or len(declared) != 1 or not isinstance(declared[0], TensorType):
        return None
    candidates: list[TensorType] = []
    for dtype in domain.dtypes:
        candidate = declared[0].with_dtype(dtype)
        try:
            if domain.types(attrs, (candidate,) * n) == declared:
                candidates.append(candidate)
        except TypeRuleError:
            continue  # the primitive does not take it
    return candidates[0] if len(candidates) == 1 else None
