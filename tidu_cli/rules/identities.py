"""Identities: what a simplifier may put in the place of a node, as lines of a table.

A rule sees a *site*: a node, what made its operands, and which values are known or the same. It gives what the node's result
equals, in terms of these, or None. What it sees is the same for all nodes of one kind, so that it is asked once for each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import copysign
from typing import Any, get_args
from typing import Literal as OneOf

from tidu_cli.errors import MissingRuleError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.literals import Literal, filled
from tidu_cli.graph.types import COMPLEXES, INEXACT, RecordType, TensorType, Type
from tidu_cli.rules.terms import Term

Assumption = OneOf["no-signed-zeros", "finite"]
"""What a user may grant, by the names of compilers' flags: that zeros have no sign, that no value is infinite or NaN."""

ASSUMPTIONS: tuple[Assumption, ...] = get_args(Assumption)


class Known(Frozen):
    """What is known of a constant array.

    `kind` "uniform": all elements are the one of `element`. "count": they count 0, 1, … along axis `axes[0]`. "unit": they are 1
    where the indices on the two `axes` are equal, and 0 elsewhere. "small": they are those of `element`, an array of few bytes.
    """

    kind: OneOf["uniform", "count", "unit", "small"]
    element: Literal | None = None
    axes: tuple[int, ...] = ()


class Operand(Frozen):
    """An operand at a site: its term, what made it (`op` is empty for an input, and for what is not looked at), what is known.

    Two operands are the same value where their `number` is the same. `alone` says that nobody else reads it.
    """

    term: Term
    number: int
    known: Known | None = None
    op: str = ""
    attrs: Any = None
    slot: int = 0
    alone: bool = False
    operands: tuple[Operand, ...] = ()

    @property
    def type(self) -> TensorType:
        """The type of an array."""
        return self.term.type

    @property
    def dtype(self) -> str:
        """Its dtype."""
        return self.type.dtype

    def equals(self, number: float) -> bool:
        """Whether all elements are known to be this number, complex ones with two parts of a zero of that sign."""
        if self.known is None or self.known.kind != "uniform":
            return False
        assert self.known.element is not None
        return self.known.element.data == _scalar(self.dtype, number, copysign(1, number))


@cache
def _scalar(dtype: str, number: float, sign: float) -> bytes:
    """The bytes of a number in a dtype. The sign tells the zeros apart, which are one to a dictionary."""
    exact: complex = number
    if dtype in COMPLEXES and number == 0:
        exact = complex(number, number)
    return filled(TensorType(dtype), exact if dtype in INEXACT else int(number)).data


class Site(Frozen):
    """A node as a rule sees it."""

    op: str
    attrs: Any
    operands: tuple[Operand, ...]
    types: tuple[Type, ...]

    @property
    def type(self) -> TensorType:
        """The type of the one result, an array. Raises MissingRuleError for a record."""
        (type_, *_) = self.types
        if isinstance(type_, RecordType):
            raise MissingRuleError(f"the identity is one of arrays, and a value is a record, {type_}")
        return type_

    @property
    def trace(self) -> Any:
        """The recording that terms are of."""
        return self.operands[0].term.trace


Rewriting = Callable[[Site], "Sequence[Term] | Term | None"]
"""From a site to its result, or its results; None where the identity does not apply."""


class Identity(Frozen):
    """A line of the table: nodes of `op` for which `rewrite` has something are that, bit for bit, provided what it `assumes`.

    The bits of NaNs, which IEEE 754 leaves open, may differ, and not their places. `statement` is the equation.
    `in_place` says that what is put there is in memory where and as the node's result would be, so that no reader can tell.
    """

    op: str
    statement: str
    rewrite: Rewriting
    assumes: frozenset[Assumption] = frozenset()
    in_place: bool = False
