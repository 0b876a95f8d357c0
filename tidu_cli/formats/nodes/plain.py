"""What is asked of all nodes of a graph at once, answered by a walk through them. Of large graphs `bulk` is asked, by columns.

What is said here to be right is right. Of what is not, others find out more, and say where it is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain, repeat
from operator import eq, lt

from tidu_cli.graph.columns.large import by_columns
from tidu_cli.graph.graph import Column, Externals, column

_BULK = "tidu_cli.formats.nodes.bulk"


@by_columns(_BULK, lambda code, *_: len(code))
def args_in_range(
    code: Column[int], args: Column[int], arity: Sequence[int], n_results: Sequence[int], n: int, n_external: int
) -> bool:
    """Whether each argument is an external, or one of the `n` values of inputs and those of the nodes before its own.

    `arity` and `n_results` are of each row of the table.
    """
    n_values = accumulate(map(n_results.__getitem__, code), initial=n)
    before = chain.from_iterable(map(repeat, n_values, map(arity.__getitem__, code)))  # of each argument
    return all(map(lt, args, before)) and (not args or min(args) >= -n_external)


@by_columns(_BULK, lambda code, *_: len(code))
def are_local(code: Column[int], args: Column[int], masks: Mapping[int, Sequence[bool]]) -> bool:
    """Whether of each node the arguments that the mask of its case says are local values, and the others externals."""
    return all(map(eq, chain.from_iterable(map(masks.__getitem__, code)), map((-1).__lt__, args)))


@by_columns(_BULK, lambda code, *_: len(code))
def operands_of(
    code: Column[int], args: Column[int], arity: Sequence[int], chosen: Mapping[int, Sequence[int]]
) -> Iterator[tuple[int, int, int]]:
    """A node, the number of its operand, and the argument, for each argument that some node has as one chosen by its case."""
    if chosen.keys().isdisjoint(code):
        return
    starts = accumulate(map(arity.__getitem__, code), initial=0)
    for node, (number, start) in enumerate(zip(code, starts, strict=False)):
        for k in chosen.get(number, ()):
            yield node, k, args[start + k]


@by_columns(_BULK, lambda code, _: len(code))
def renamed(code: Column[int], number: dict[int, int]) -> Column[int]:
    """A column with `number[c]` in the place of each c."""
    return column(map(number.__getitem__, code))


@by_columns(_BULK, lambda external, *_: len(external))
def distinct_externals(
    external: Sequence[object], args: Column[int], n_values: Sequence[int]
) -> tuple[Externals, Column[int]] | None:
    """The externals of a file, each once, and the arguments that refer to them; None where they have to be read one by one."""
    return None


@by_columns(_BULK, lambda args, _: len(args))
def is_in_order(args: Column[int], external: Externals) -> bool:
    """Whether it is known that externals are as files have them: none detached, each once, in order of first use by arguments."""
    return False
