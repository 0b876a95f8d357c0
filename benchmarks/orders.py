"""How derivatives of order n grow: nodes after materialize against distinct subexpressions, counted without tidu.

    python benchmarks/orders.py --markdown

The function takes v to exp(sin(v y)), some times over, from v = x on. Its derivatives by x are taken in n *directions*, as by
`tidu linearize` n times, or in *one*, as by `tidu derivative --order n`. With n directions each value has a derivative in each
subset of them, and a product's has a term for each way to divide the subset in two: 3^n in all. In one direction only the sizes of
subsets count, and growth is polynomial.

Distinct subexpressions are those that the textbook's rules give, equal ones being one. tidu's graphs may have more: they keep
products apart that differ in which factor is the tangent.
"""

from __future__ import annotations

import argparse

from pipeline import rendered

from tidu_cli.graph.graph import CaseTable, Document, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.shorthands import derivative

SCALAR = TensorType("f64")
COLUMNS = ("n", "linked", "n directions", "distinct", "ratio", "one direction", "distinct", "ratio")


def chain(length: int) -> Document:
    """The document of the function, with output v."""
    builder = GraphBuilder(CaseTable(), [Input(Key("x"), SCALAR), Input(Key("y"), SCALAR)])

    def append(op: str, *args: int) -> int:
        case = BUILTIN.case(op, BUILTIN.parse_attrs(op, {}), None, [SCALAR] * len(args))
        return builder.append(builder.cases.intern(case), args)

    value = 0
    for _ in range(length):
        value = append("exp", append("sin", append("mul", value, 1)))
    return Document((builder.build("f", [Output(Key("v"), value, SCALAR)]),), builder.cases)


class Expressions:
    """Expressions by number, of which equal ones have one; products and sums are equal in either order."""

    def __init__(self) -> None:
        self.known: list[tuple[object, ...]] = []
        self._number: dict[tuple[object, ...], int] = {}
        self._derivative: dict[tuple[int, int], int | None] = {}

    def of(self, op: str, *operands: object) -> int:
        """The number of an expression; operands are numbers of others, or the name of a variable."""
        ordered = sorted(operands) if op in ("add", "mul") else operands  # type: ignore[type-var]
        expression = (op, *ordered)
        if expression not in self._number:
            self._number[expression] = len(self.known)
            self.known.append(expression)
        return self._number[expression]

    def derivative(self, expression: int, direction: int) -> int | None:
        """The derivative of an expression, where that of x is the variable of a direction; None where it is zero."""
        case = expression, direction
        if case not in self._derivative:
            self._derivative[case] = self._derived(expression, direction)
        return self._derivative[case]

    def _derived(self, u: int, direction: int) -> int | None:
        op, *operands = self.known[u]
        if op == "variable":
            return self.of("variable", f"dx{direction}") if operands == ["x"] else None
        parts = [self.derivative(v, direction) for v in operands]  # type: ignore[arg-type]
        if op == "mul":
            a, b = operands
            terms = [self.of("mul", da, other) for da, other in zip(parts, (b, a), strict=True) if da is not None]
        elif op == "exp":
            terms = [self.of("mul", u, da) for da in parts if da is not None]
        elif op == "sin":
            terms = [self.of("mul", self.of("cos", *operands), da) for da in parts if da is not None]
        elif op == "cos":
            terms = [self.of("mul", self.of("neg", self.of("sin", *operands)), da) for da in parts if da is not None]
        else:  # sums, and changes of sign
            terms = [da if op == "add" else self.of(str(op), da) for da in parts if da is not None]
        return None if not terms else terms[0] if len(terms) == 1 else self.of("add", *terms)

    def within(self, expression: int) -> int:
        """The number of distinct operations in an expression."""
        pending, seen = [expression], {expression}
        while pending:
            op, *operands = self.known[pending.pop()]
            fresh = set() if op == "variable" else set(operands) - seen  # type: ignore[arg-type]
            seen |= fresh
            pending += fresh
        return sum(self.known[u][0] != "variable" for u in seen)


def distinct(length: int, n: int, *, one: bool) -> int:
    """The distinct subexpressions of the derivative of order n, in one direction or in n."""
    expressions = Expressions()
    value = expressions.of("variable", "x")
    for _ in range(length):
        product = expressions.of("mul", value, expressions.of("variable", "y"))
        value = expressions.of("exp", expressions.of("sin", product))
    for k in range(n):
        derived = expressions.derivative(value, 0 if one else k)
        assert derived is not None
        value = derived
    return expressions.within(value)


def sizes(length: int, n: int) -> tuple[int, int, int]:
    """The nodes of the derivative of order n: of all linked graphs, after materialize, and in one direction.

    The constant 1 that is the one direction does not count: where subexpressions are counted, it is a variable.
    """
    document = chain(length)
    for _ in range(n):
        document = linearize(document, [Key("x")])
    linked = sum(graph.n_nodes for graph in document.graphs)
    one = derivative(chain(length), [Key("x")], order=n).document.head.n_nodes - 1
    return linked, materialize(document).head.n_nodes, one


def table(length: int, orders: int) -> list[list[str]]:
    """A row for each order up to `orders`."""
    rows = [list(COLUMNS)]
    for n in range(1, orders + 1):
        linked, several, one = sizes(length, n)
        row = [f"{n}", f"{linked:,}"]
        for nodes, least in ((several, distinct(length, n, one=False)), (one, distinct(length, n, one=True))):
            row += [f"{nodes:,}", f"{least:,}", f"{nodes / least:.2f}"]
        rows.append(row)
    return rows


def main() -> None:
    """Count, and print a table for each length."""
    parser = argparse.ArgumentParser(description="Count the nodes of derivatives of high order.")
    parser.add_argument("--lengths", default="1,2,4", help="how many times over, separated by commas")
    parser.add_argument("--orders", type=int, default=8, help="the greatest order")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    chosen = parser.parse_args()
    for length in map(int, chosen.lengths.split(",")):
        print("\n".join([f"length {length}:", "", *rendered(table(length, chosen.orders), markdown=chosen.markdown), ""]))


if __name__ == "__main__":
    main()
