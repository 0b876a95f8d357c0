"""The primitive contract: everything tidu needs to know of an operation, in one place.

Rules are pure functions of attrs, operand types and active mask. They are written with `Term`s, which stand for values and
have arithmetic, and what they compute is recorded (see `tidu_cli.rules.recording`), once per distinct case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

from tidu_cli.errors import MissingRuleError, TypeRuleError, UnknownNameError, did_you_mean
from tidu_cli.graph.graph import Case, CaseAttrs, CaseTable, Graph
from tidu_cli.graph.types import ALL, RecordType, TensorType, Type, require_possible
from tidu_cli.rules.attrs.fields import Attrs as Attrs
from tidu_cli.rules.attrs.fields import NoAttrs as NoAttrs
from tidu_cli.rules.flops import ONE_EACH
from tidu_cli.rules.tangents import joined

if TYPE_CHECKING:
    from tidu_cli.rules.recording import Term

Types = tuple[TensorType, ...]
ValueTypes = tuple[Type, ...]
Kernel = Callable[..., Any]

Inlining = Callable[[Any, Sequence["Term"]], Sequence["Term"]]
"""From (attrs, operands) to results, in terms of other primitives. Where operands are linear, so are the nodes that read them."""


@dataclass(frozen=True, slots=True)
class JVP:
    """What a JVP rule sees of a node. `tangents` has None where an operand is inactive; at least one is not None."""

    attrs: Any
    operands: Sequence[Term]
    results: Sequence[Term]
    tangents: Sequence[Term | None]


@dataclass(frozen=True, slots=True)
class Transposition:
    """What a transpose rule sees of a linear node.

    `operands` has None where the operand is active (the rule may not read it), `cotangents` None where an output's
    cotangent is zero; at least one is not None. `types` are the operands' types, `active` the mask.
    """

    attrs: Any
    operands: Sequence[Term | None]
    types: Types
    active: tuple[bool, ...]
    cotangents: Sequence[Term | None]


@dataclass(frozen=True, slots=True)
class Batching:
    """What a batch rule sees of a node: many applications of it at once.

    Operands that are `batched` have the batch as their first axis, of `size`; the others are shared by all applications; at least
    one is batched. `types` are the operands' types in one application.
    """

    attrs: Any
    operands: Sequence[Term]
    types: Types
    batched: tuple[bool, ...]
    size: int


JVPRule = Callable[[JVP], Sequence["Term | None"]]
"""Gives one tangent per result, None for zero."""

TransposeRule = Callable[[Transposition], Sequence["Term | None"]]
"""Gives one cotangent per operand, None for zero and for inactive operands."""

BatchRule = Callable[[Batching], Sequence["Term"]]
"""Gives all results, each with the batch as its first axis."""

ReadingRule = Callable[[Any, "Term", Sequence["Term"]], "Term"]
"""From (attrs, an array in the place of operand 0, the other operands) to the elements of it that the result has.

The array numbers the elements of operand 0 from 0 up; where the result is none of them, their count stands, and numbers none.
"""

HiddenRule = Callable[[Any, Sequence["Type | None"], "ValueTypes | None"], Sequence["Type | None"]]
"""From (attrs, operand types, None where one is hidden, result types if they are stated) to operand types, as many as are known."""

KernelRule = Callable[[Any, Any, Types, Types], Kernel]
"""From (numpy, attrs, operand types, result types) to a function of the operands' arrays that gives the result's array."""

TypeRule = Callable[[Any, Types], Types]
"""From (attrs, operand types) to result types. Raises TypeRuleError in the user's terms."""

FlopsRule = Callable[[Any, Types, Types], int]
"""From (attrs, operand types, result types) to the number of operations (see `tidu_cli.rules.flops`)."""

Groups = tuple[tuple[int, int | None], ...]
"""Groups of operands, each from the first of two numbers to before the second; None means to the last."""

TOGETHER: Groups = ((0, None),)
"""One group of all operands: linear in all of them together, as a sum is."""

EACH: Groups = ((0, 1), (1, 2))
"""Linear in each of two operands alone, as a product is."""

Integers = Literal["numbers", "exact", "steps", "moved"]
"""What an operation on integers is to differentiation, where an active operand is of integers, or of datetimes.

Their tangents are floats. `numbers`: the JVP rule sees integer operands and results as floats of the tangents' dtypes, so that a
rule written for floats serves. `exact`: it sees them as they are, since it compares them, and floats round; zeros and weights that
it makes must have the tangents' dtype. `steps`: the operation rounds, and its derivative is zero. `moved`: the rule alone says
which tangents there are, of results of integers also those that come from floats.
"""


@dataclass(frozen=True, slots=True)
class Example:
    """A typical application of a primitive, on which `tidu check --ops` tries its rules.

    `operands` are types in which the letter T stands for each dtype of the primitive in turn, such as `T[2,3]` or `i32[2]`.
    `within` are intervals, one per operand or one for all, away from kinks and poles, from which operands are drawn; the parts
    of complex numbers are both drawn from it. `diagonals` are numbers, one per operand or one for all, that are added to the
    diagonals of its matrices (the last two axes), so that they are positive definite or well conditioned. `attrs` are in their
    file form; a dtype in them may be T, too.
    """

    operands: tuple[str, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    within: tuple[tuple[float, float], ...] = ((-2.0, 2.0),)
    diagonals: tuple[float, ...] = (0.0,)


@dataclass(frozen=True)
class Primitive:
    """One operation: its name, arity (None: any number from one up), attrs, types, evaluation, derivative and batch rules.

    `dtypes` are those that it takes: of the operands that its examples call T, or of its result if it has no operand. `alike` says
    that all operands have one type; where a detached reference hides some operand's type, it is then known. `hidden` finds such
    types by what else is known, where operands differ. `n_results` counts the results from attrs and the number of operands,
    which is all that is known where operand types are hidden. `inert` operands have no derivative though they may be inexact (the
    order of a polygamma, say): a rule may refuse them, and `inert_reason` says why. `inlined` says what a custom
    operation stands for, and `linear_in` in which of n operands it is declared linear, in these together. `faithful` is False for
    the few whose derivative is by intention not that of their values (stop_gradient). `integers` says what it is to the tangents of
    integers; `indices` are the operands from the first to before the second of two numbers, which say where or which and not how
    much: integers there contribute nothing. `linear` are the groups of operands in which it is linear together, but for indices:
    where some of a group are active, the others must be zeros; None where rules tell. `records` says that it takes and
    gives records, too, which its rules then see; of one that only puts fields together `makes` names these, and of one that takes
    a field `takes` does. `joins` says that it adds tangents of different types, as one. `reads` is given where results are elements
    of operand 0, at places that do not depend on it: its cotangents need not be dense arrays then. `fresh` says that results with
    axes are always new arrays, which share memory with no other; `reusing` is a kernel of the same results, which may make them in
    the memory of operand 0; `passes` says that the results are the operands, one for one, and take no memory. `flops` counts
    operations, by default one for each element of the result. `formula` and `summary` go to the catalogue.
    """

    name: str
    arity: int | None
    types: TypeRule
    kernel: KernelRule
    jvp: JVPRule | None = None
    transpose: TransposeRule | None = None
    batch: BatchRule | None = None
    inlined: Inlining | None = None
    linear_in: Callable[[int], tuple[bool, ...]] | None = None
    attrs: type[Attrs] = NoAttrs
    dtypes: frozenset[str] = ALL
    examples: tuple[Example, ...] = ()
    alike: bool = False
    hidden: HiddenRule | None = None
    n_results: Callable[[Any, int], int] = lambda attrs, n_operands: 1
    inert: tuple[int, ...] = ()
    inert_reason: str = ""
    faithful: bool = True
    passes: bool = False
    integers: Integers = "numbers"
    indices: tuple[int, int | None] = (0, 0)
    linear: Groups | None = None
    records: bool = False
    makes: Callable[[Any], tuple[str, ...]] | None = None
    takes: Callable[[Any], str] | None = None
    joins: bool = False
    reads: ReadingRule | None = None
    fresh: bool = False
    reusing: KernelRule | None = None
    flops: FlopsRule = ONE_EACH
    formula: str = ""
    summary: str = ""

    def is_index(self, operand: int) -> bool:
        """Whether the operand of that number is one of `indices`."""
        first, end = self.indices
        return first <= operand and (end is None or operand < end)

    @property
    def without_derivative(self) -> str:
        """In which operands there is no derivative, and why, for people; empty where there is one in all."""
        if not self.inert:
            return ""
        numbers = " and ".join(map(str, self.inert))
        return f"no derivative in input{'s' if len(self.inert) > 1 else ''} {numbers}: {self.inert_reason or 'its rules refuse it'}"

    @cached_property
    def groups(self) -> Groups | None:
        """`linear`, which of one operand need not be said: a transpose rule shows it."""
        if self.linear is None and self.arity == 1 and self.transpose and self.inlined is None:
            return TOGETHER
        return self.linear

    def others(self, active: Sequence[bool]) -> tuple[int, ...] | None:
        """The inactive operands of the group that holds all active ones; None where no group does."""
        for first, end in self.groups or ():
            group = [k for k in range(first, len(active) if end is None else end) if not self.is_index(k)]
            if sum(map(active.__getitem__, group)) == sum(active):
                return tuple(k for k in group if not active[k])
        return None


Definition = Any
"""The definition of a custom operation: it has a name, an origin (its library), inputs, outputs, and the ops that it uses."""

Extension = Callable[["PrimitiveSet", Sequence[Definition]], "PrimitiveSet"]
"""From (a set, definitions) to the set with these custom operations. Raises TypeRuleError for two different ones of one name."""


@dataclass(frozen=True)
class PrimitiveSet:
    """A closed vocabulary of primitives.

    `add` names the one that accumulates cotangents, `constant` that of constant arrays, `barrier` the identity of several operands
    whose results are other values, which recomputation needs, `record` the one that puts records together; `records` are the record
    types by name, and `origins` the libraries of those that are not a document's own.

    What is beyond the built-in primitives comes with those who make such sets: `definitions` are those of custom operations,
    `extended` adds such to another set, and `require_written_out` raises LimitError, naming an op, if those of graphs stand for too
    many nodes to go through; `plugins` are the packages whose primitives are in the set, too, `announced` are the ops of all that
    are installed, and `installed` imports the primitive that one of `plugins` brings; None if no package does.
    """

    primitives: Mapping[str, Primitive]
    add: str = "add"
    constant: str = "constant"
    barrier: str = "optimization_barrier"
    record: str = "record"
    records: Mapping[str, RecordType] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    definitions: tuple[Definition, ...] = ()
    extended: Extension = lambda base, definitions: base
    require_written_out: Callable[[Sequence[Graph]], None] = lambda graphs: None
    plugins: frozenset[str] = frozenset()
    announced: Callable[[], Iterable[str]] = tuple
    installed: Callable[[str, frozenset[str]], Primitive | None] = lambda op, plugins: None

    @classmethod
    def of(cls, primitives: Sequence[Primitive], add: str = "add") -> PrimitiveSet:
        """A set of these primitives. Raises ValueError if two share a name."""
        by_name = {p.name: p for p in primitives}
        if len(by_name) != len(primitives):
            raise ValueError("two primitives of one set share a name")
        return cls(by_name, add)

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
            raise UnknownNameError(
                f"unknown op '{op}'{did_you_mean(op, [*self.primitives, *self.announced()])} (tidu ops lists them)"
            )
        return primitive

    def __iter__(self) -> Iterator[Primitive]:
        return iter(self.primitives.values())

    def parse_attrs(self, op: str, attrs: Mapping[str, object]) -> Attrs:
        """Attrs from their file form. Raises TypeRuleError for missing, unknown or malformed ones."""
        return self[op].attrs.parse(attrs, self.records)

    def case(
        self,
        op: str,
        attrs: CaseAttrs,
        mask: tuple[bool, ...] | None,
        operands: Sequence[Type | None],
        declared: ValueTypes | None = None,
    ) -> Case:
        """The case of a node: checks arity and mask, and infers the result types.

        `declared` are the result types that the node states, if any. An operand type of None (detached) is taken from the
        others where the primitive's operands are alike. Raises UnknownNameError and TypeRuleError.
        """
        primitive = self[op]
        n = len(operands)
        if primitive.arity is None and n == 0:
            raise TypeRuleError("takes at least 1 input, got 0")
        if primitive.arity is not None and n != primitive.arity:
            raise TypeRuleError(f"takes {primitive.arity} input{'s' if primitive.arity != 1 else ''}, got {n}")
        if mask is not None and len(mask) != n:
            raise TypeRuleError(f"active mask has {len(mask)} entries for {n} inputs")
        known = [t for t in operands if t is not None]
        if len(known) < n and primitive.alike:
            type_ = known[0] if known else _operand_type(primitive, attrs, n, declared)
            operands = operands if type_ is None else _completed(primitive, attrs, operands, type_, declared)
            known = [t for t in operands if t is not None]
        if len(known) < n and primitive.hidden is not None:
            operands = primitive.hidden(attrs, operands, declared)
            known = [t for t in operands if t is not None]
        if len(known) < n:
            if declared is None:
                raise TypeRuleError(
                    "reads a detached value, so its result types cannot be inferred; give the node's types or resolve first"
                )
            due = primitive.n_results(attrs, n)
            if len(declared) != due:
                raise TypeRuleError(f"declares {len(declared)} result types, but has {due} result{'' if due == 1 else 's'}")
            return Case(op, attrs, mask, tuple(operands), declared)
        if not primitive.records:
            for k, type_ in enumerate(known):
                if isinstance(type_, RecordType):
                    raise TypeRuleError(f"input {k} is a record, {type_}, but it takes arrays; take its fields with the op 'field'")
        taken = self._joined(tuple(known)) if primitive.joins else tuple(known)
        results: ValueTypes = primitive.types(attrs, cast(Types, taken))
        for result in results:
            require_possible(result)
        if declared is not None and declared != results:
            raise TypeRuleError(f"declares the result {_join(declared)}, but it is {_join(results)}")
        return Case(op, attrs, mask, tuple(known), results)

    def _joined(self, types: ValueTypes) -> ValueTypes:
        """Types of tangents as the one in which they add up, if there is one."""
        if all(t == types[0] for t in types):
            return types
        found = joined(types, self.records)
        return types if found is None else (found,) * len(types)

    def fields_taken(self, cases: CaseTable) -> dict[int, str]:
        """The numbers of the cases that take a field of a record, with its name."""
        found = {}
        for number, case in enumerate(cases.cases):
            takes = self[case.op].takes
            if takes is not None:
                found[number] = takes(case.attrs)
        return found

    def jvp_rule(self, op: str) -> JVPRule:
        """The JVP rule of a primitive. Raises MissingRuleError."""
        rule = self[op].jvp
        if rule is None:
            raise MissingRuleError(f"missing JVP rule for {op}")
        return rule

    def transpose_rule(self, op: str) -> TransposeRule:
        """The transpose rule of a primitive. Raises MissingRuleError."""
        rule = self[op].transpose
        if rule is None:
            raise MissingRuleError(f"missing transpose rule for {op}")
        return rule

    def batch_rule(self, op: str) -> BatchRule:
        """The batch rule of a primitive. Raises MissingRuleError."""
        rule = self[op].batch
        if rule is None:
            raise MissingRuleError(f"missing batch rule for {op}")
        return rule


def _completed(
    primitive: Primitive, attrs: CaseAttrs, operands: Sequence[Type | None], type_: Type, declared: ValueTypes | None
) -> Sequence[Type | None]:
    """Operand types with this one for those that are hidden; or with one that gives what is declared: a number that scales, say.

    Unchanged where the primitive takes no operands of that one type.
    """
    others = () if declared is None or isinstance(type_, RecordType) else (type_.with_dtype("f64"),)
    found = operands
    for candidate in (type_, *others, *(declared or ())):
        completed = [candidate if t is None else t for t in operands]
        try:
            results = primitive.types(attrs, cast(Types, tuple(completed)))
        except TypeRuleError:
            continue  # the primitive does not take it
        if declared is None or results == declared:
            return completed
        found = completed if candidate == type_ else found  # which says what is wrong with the declaration
    return found


def _operand_type(primitive: Primitive, attrs: CaseAttrs, n: int, declared: ValueTypes | None) -> Type | None:
    """The type of n operands of one type that gives the declared results; None where there is none, or more than one."""
    if declared is None or len(declared) != 1 or not isinstance(declared[0], TensorType):
        return None
    found: list[TensorType] = []
    for dtype in primitive.dtypes:
        candidate = declared[0].with_dtype(dtype)
        try:
            if primitive.types(attrs, (candidate,) * n) == declared:
                found.append(candidate)
        except TypeRuleError:
            continue  # the primitive does not take it
    return found[0] if len(found) == 1 else None


def _join(types: ValueTypes) -> str:
    return ", ".join(map(str, types))
