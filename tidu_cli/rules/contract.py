"""The primitive contract: everything tidu needs to know of an operation, in one place.

Rules are pure functions of attrs, operand types and active mask. They are written with `Term`s, which stand for values and
have arithmetic, and what they compute is recorded (see `tidu_cli.rules.recording`), once per distinct case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol
from typing import Literal as OneOf

from tidu_cli.frozen import Frozen, field
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.types import ALL, Type
from tidu_cli.rules.analysis import ONE_EACH, FlopsRule, PatternRule, Sparsity, WorkRule
from tidu_cli.rules.analysis import Types as Types
from tidu_cli.rules.attrs import Attrs as Attrs
from tidu_cli.rules.attrs import NoAttrs as NoAttrs
from tidu_cli.rules.catalogue import Catalogue as Catalogue
from tidu_cli.rules.catalogue import DependenceRule
from tidu_cli.rules.catalogue import Example as Example
from tidu_cli.rules.terms import Term

if TYPE_CHECKING:
    from dataclasses import KW_ONLY

ValueTypes = tuple[Type, ...]
Kernel = Callable[..., Any]

Inlining = Callable[[Any, Sequence["Term"]], Sequence["Term"]]
"""From (attrs, operands) to results, in terms of other primitives. Where operands are linear, so are the nodes that read them."""


class JVP(Frozen):
    """What a JVP rule sees of a node. `tangents` has None where an operand is inactive; at least one is not None."""

    attrs: Any
    operands: Sequence[Term]
    results: Sequence[Term]
    tangents: Sequence[Term | None]

    @property
    def tangent(self) -> Term:
        """The tangent of a primitive's one operand, or of the first."""
        assert self.tangents[0] is not None
        return self.tangents[0]


class Transposition(Frozen):
    """What a transpose rule sees of a linear node.

    `operands` has None where the operand is active (the rule may not read it), `cotangents` None where an output's
    cotangent is zero; at least one is not None. `types` are the operands' types, `active` the mask.
    """

    attrs: Any
    operands: Sequence[Term | None]
    types: Types
    active: tuple[bool, ...]
    cotangents: Sequence[Term | None]

    @property
    def cotangent(self) -> Term:
        """The cotangent of a primitive's one result."""
        (ct,) = self.cotangents
        assert ct is not None
        return ct


class Batching(Frozen):
    """What a batch rule sees of a node: many applications of it at once.

    Operands that are `batched` have the batch as their first axis, of `size`; the others are shared by all applications; at least
    one is batched. `types` are the operands' types in one application.
    """

    attrs: Any
    operands: Sequence[Term]
    types: Types
    batched: tuple[bool, ...]
    size: int


class Narrowing(Frozen):
    """What a rule sees of a node of which not all results are needed: `needed` says which.

    `literals` has the values of operands that are constant scalars, and None for others.
    """

    attrs: Any
    operands: Sequence[Term]
    needed: tuple[bool, ...]
    literals: Sequence[Literal | None]


JVPRule = Callable[[JVP], Sequence["Term | None"]]
"""Gives one tangent per result, None for zero."""

AlongRule = Callable[[JVP], tuple[Sequence["Term"], Sequence["Term | None"]]]
"""Gives results, and one tangent per result, None for zero."""

TransposeRule = Callable[[Transposition], Sequence["Term | None"]]
"""Gives one cotangent per operand, None for zero and for inactive operands."""

BatchRule = Callable[[Batching], Sequence["Term"]]
"""Gives all results, each with the batch as its first axis."""

NarrowingRule = Callable[[Narrowing], "Sequence[Term | None] | None"]
"""Gives the results that are needed, None for others; or None to leave the node as it is."""

MergingRule = Callable[[Any, Any, Sequence["Term"]], "Sequence[Term] | None"]
"""From the attrs of two nodes and the operands that both read to the results of both, one after the other; None to leave them."""


class Segmented(Protocol):
    """Two loops, of which the second reads what the first stores, in segments."""

    def first(self, operands: Sequence[Term]) -> tuple[Sequence[Term | None], Sequence[Term]]:
        """The results of the first, None for those that only the second reads, and the states that it stores."""

    def second(self, operands: Sequence[Term], of_first: Sequence[Term], states: Sequence[Term]) -> Sequence[Term]:
        """The results of the second, from its operands but for what it read of the first, the first's operands, and the states."""


SegmentedRule = Callable[[Any, Any, Sequence["int | None"], Sequence[int], Callable[[int], int]], "Segmented | None"]
"""From the attrs of two loops; which result of the first each operand of the second is, or None; which of these others need, too;
and from the number of steps to that of a segment. None where that cannot be."""

BoundingRule = Callable[[Any, Sequence["Term"], int, bool], Sequence["Term"]]
"""From (attrs, operands, a number of steps, whether some may be tangents) to results by a loop of no more steps than that."""

ReadingRule = Callable[[Any, "Term", Sequence["Term"]], "Term"]
"""From (attrs, an array in the place of operand 0, the other operands) to the elements of it that the result has.

The array numbers the elements of operand 0 from 0 up; where the result is none of them, their count stands, and numbers none.
"""

HiddenRule = Callable[[Any, Sequence["Type | None"], "ValueTypes | None"], Sequence["Type | None"]]
"""From (attrs, operand types, None where one is hidden, result types if they are stated) to operand types, as many as are known."""

KernelRule = Callable[[Any, Any, Types, Types], Kernel]
"""From (numpy, attrs, operand types, result types) to a function of the operands' arrays that gives the result's array."""

SingularRule = Callable[[Any, Any, Sequence[Any], Sequence[Any]], str]
"""From (numpy, attrs, the operands' arrays, the results' arrays) to why there is no derivative there; empty where there is one."""

KinksRule = Callable[[Any], Sequence[Any]]
"""From the words for kinks, the module `tidu_cli.rules.kinks`, to the `Kink`s of an operation."""

RunInner = Callable[[int, "int | None", Sequence[Any]], Sequence[Any]]
"""From the number of a graph in attrs, that of a step, and the values of its inputs to those of its outputs."""

InnerRule = Callable[[Any, Sequence[Any], Sequence[Any], RunInner], None]
"""From attrs, the operands' and the results' values, and what runs a graph, to all runs of the graphs in attrs that make the
results, or that define their derivatives."""

StrongRule = Callable[[Sequence["Term"]], "tuple[str, Sequence[Term]] | None"]
"""From the operands of a linear node to the op that stands for it where zeros are strong, and its operands; None for itself."""

TypeRule = Callable[[Any, Types], Types]
"""From (attrs, operand types) to result types. Raises TypeRuleError in the user's terms."""

Span = tuple[int, int | None]
"""Operands from the first of two numbers to before the second; None means to the last."""

Groups = tuple[Span, ...]
"""Groups of operands."""


def in_span(span: Span, operand: int) -> bool:
    """Whether the operand of that number is one of a span."""
    return span[0] <= operand and (span[1] is None or operand < span[1])


TOGETHER: Groups = ((0, None),)
"""One group of all operands: linear in all of them together, as a sum is."""

EACH: Groups = ((0, 1), (1, 2))
"""Linear in each of two operands alone, as a product is."""

Integers = OneOf["numbers", "exact", "steps", "moved"]
"""What an operation on integers is to differentiation, where an active operand is of integers, or of datetimes.

Their tangents are floats. `numbers`: the JVP rule sees integer operands and results as floats of the tangents' dtypes, so that a
rule written for floats serves. `exact`: it sees them as they are, since it compares them, and floats round; zeros and weights that
it makes must have the tangents' dtype. `steps`: the operation rounds, and its derivative is zero. `moved`: the rule alone says
which tangents there are, of results of integers also those that come from floats.
"""


class Domain(Frozen, slots=False):
    """What an operation takes and gives, as far as types and attrs tell."""

    arity: int | None
    """How many operands it takes; None: any number from one up."""
    types: TypeRule
    """The types of its results."""
    _: KW_ONLY
    attrs: type[Attrs] = NoAttrs
    """The class of its attrs."""
    dtypes: frozenset[str] = ALL
    """The dtypes that it takes: of the operands that its examples call T, or of its result if it has no operand."""
    one_type: bool = False
    """Whether all operands have one type. Where a detached reference hides some operand's type, it is then known."""
    hidden: HiddenRule | None = None
    """Finds operand types that a detached reference hides by what else is known, where operands differ."""
    n_results: Callable[[Any, int], int] = lambda attrs, n_operands: 1
    """The number of results from attrs and the number of operands: all that is known where operand types are hidden."""
    indices: Span = (0, 0)
    """The operands that say where or which, and not how much: integers there have no tangents that contribute."""
    records: bool = False
    """Whether it takes and gives records, too, which its rules then see."""
    makes: Callable[[Any], tuple[str, ...]] | None = None
    """Of one that only puts the fields of a record together: their names, in the order of its operands, from attrs."""
    takes: Callable[[Any], str] | None = None
    """Of one that takes a field of a record: its name, from attrs."""
    joins: bool = False
    """Whether it adds tangents of different types, as one."""

    def is_index(self, operand: int) -> bool:
        """Whether the operand of that number is one of `indices`."""
        return in_span(self.indices, operand)


class Evaluation(Frozen, slots=False):
    """How an operation is computed, and what that costs."""

    kernel: KernelRule
    """Makes the function of arrays that computes the results."""
    _: KW_ONLY
    reusing: KernelRule | None = None
    """Makes a function of the same results, which may put them into the memory of operand 0."""
    fresh: bool = False
    """Whether results with axes are always new arrays, which share memory with no other."""
    passes: bool = False
    """Whether the results are the operands, one for one, and take no memory."""
    flops: FlopsRule = ONE_EACH
    """Counts operations; by default one for each element of the result."""
    definition: Inlining | None = None
    """What it is in terms of other operations: how backends compute it that have no kernel of it."""
    opaque: str = ""
    """Why it has no definition, where it is none of those that others are defined by."""
    inner: InnerRule | None = None
    """Runs the graphs in attrs one by one, for those who look at what happens in them."""
    work: WorkRule | None = None
    """The bytes that the kernel holds at most beside operands and results, where they may be many times as many as these."""


class Rules(Frozen, slots=False):
    """What is derived from an operation: its derivatives, batches of it, and what else stands for it."""

    jvp: JVPRule | None = None
    """The tangents of its results."""
    transpose: TransposeRule | None = None
    """The cotangents of the operands in which it is linear."""
    batch: BatchRule | None = None
    """Many applications at once."""
    _: KW_ONLY
    linear: Groups | None = None
    """The groups of operands, but for indices, in which it is linear together: where some of a group are active, the others must be
    zeros. None where rules tell."""
    integers: Integers = "numbers"
    """What it is to the tangents of integers."""
    inert: tuple[int, ...] = ()
    """Operands that may be inexact, but have no derivative (the order of a polygamma, say): a rule may refuse them."""
    inert_reason: str = ""
    """Why these have none."""
    irreversible: str = ""
    """Why it has no transpose where mathematics has none."""
    strong: StrongRule | None = None
    """What stands for it, of the same attrs, where a cotangent that is 0 stays 0 whatever the slope."""
    faithful: bool = True
    """False where the derivative is by intention not that of the values (stop_gradient)."""
    singular: SingularRule | None = None
    """Says of values why it has no derivative there, for `tidu check`."""
    kinks: KinksRule | None = None
    """Says where it has kinks, and what its derivative is taken to be there, for `tidu eval --kinks`."""
    unsolved: SingularRule | None = None
    """Says of values how far they are from solving what defines them, for `tidu check`."""
    reads: ReadingRule | None = None
    """Given where results are elements of operand 0, at places that do not depend on it: its cotangents need not be dense."""
    narrowed: NarrowingRule | None = None
    """What computes some results of a node that holds graphs, and as little else as can be."""
    along: AlongRule | None = None
    """Results and their tangents by one node that holds graphs, where nothing will be transposed. It reads no results."""
    merged: MergingRule | None = None
    """What computes the results of two nodes that hold graphs and read the same."""
    bounded: BoundingRule | None = None
    """What stands for a loop whose number of steps is not known before, where that may be bounded."""
    segmented: SegmentedRule | None = None
    """How a loop that stores values for a linear one stores fewer, of which that computes them anew."""
    inlined: Inlining | None = None
    """What an operation of a document stands for, in terms of others."""
    sparsity: Sparsity | None = None
    """Which elements of a result depend on which of an active operand, where it is linear; None: each on all."""
    unplaced: Sparsity | None = None
    """The same where an operand that says where or which is not known."""
    pattern: PatternRule | None = None
    """Which elements depend on which, where graphs in attrs compute them."""
    dependence: DependenceRule | None = None
    """How results depend on tangents where graphs in attrs compute them."""
    carried: Callable[[Any], range] = lambda attrs: range(0)
    """The operands that stand for what a first step would have carried over: zeros there are zeros of a linear map."""


class Primitive(Frozen, slots=False):
    """One operation: its name, and its facets. `tidu_cli.rules.families` makes one in a few words."""

    name: str
    domain: Domain
    evaluation: Evaluation
    rules: Rules = Rules()
    catalogue: Catalogue = field(default_factory=Catalogue)

    @property
    def in_terms_of_others(self) -> Inlining | None:
        """What it stands for: the graph of an operation of a document, or the definition of another."""
        return self.rules.inlined or self.evaluation.definition

    @property
    def without_derivative(self) -> str:
        """In which operands there is no derivative, and why, for people; empty where there is one in all."""
        inert, reason = self.rules.inert, self.rules.inert_reason or "its rules refuse it"
        return f"no derivative in input{'s' if len(inert) > 1 else ''} {' and '.join(map(str, inert))}: {reason}" if inert else ""

    @cached_property
    def groups(self) -> Groups | None:
        """Its linear groups, which of one operand need not be said: a transpose rule shows it."""
        rules = self.rules
        if rules.linear is None and self.domain.arity == 1 and rules.transpose and rules.inlined is None:
            return TOGETHER
        return rules.linear

    def others(self, active: Sequence[bool]) -> tuple[int, ...] | None:
        """The inactive operands of the group that holds all active ones; None where no group does."""
        for span in self.groups or ():
            group = [k for k in range(len(active)) if in_span(span, k) and not self.domain.is_index(k)]
            if sum(map(active.__getitem__, group)) == sum(active):
                return tuple(k for k in group if not active[k])
        return None
