"""Functions of modules that call functions: what they stand for is counted before it is written out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from tidu_cli.adapters.stablehlo.module import Block, Function, Module, Operation
from tidu_cli.adapters.stablehlo.reading.importer import import_module
from tidu_cli.errors import DocumentError, LimitError
from tidu_cli.limits import Limits, limited


def calling(levels: list[list[int]], callee: str = "call") -> Module:
    """Functions f0, f1, … of one number: `levels[k]` are those that f_k calls one after the other; of none it is a sine."""
    functions = {}
    for k, calls in enumerate(levels):
        if callee == "call":
            made = [("func.call", {"callee": f"f{n}"}) for n in calls]
        else:
            made = [("stablehlo.composite", {"decomposition": f"f{n}"}) for n in calls]
        made = made or [("stablehlo.sine", {})]
        operations = [Operation(name, [j], j + 1, ["f32[]"], attributes, [], "") for j, (name, attributes) in enumerate(made)]
        body = Block(0, ["f32[]"], operations, [len(made)])
        functions[f"f{k}"] = Function(f"f{k}", k == 0, [{}], [{}], ["f32[]"], body)
    return Module("m", {}, functions)


def chain(n: int) -> list[list[int]]:
    """n functions that call the next one twice, and a last one."""
    return [*([k + 1, k + 1] for k in range(n)), []]


@pytest.mark.parametrize("callee", ["call", "composite"])
@pytest.mark.parametrize("n", [40, 3000])
def test_functions_that_double_are_refused_before_they_are_written_out(n, callee):
    with pytest.raises(LimitError, match=r"^@f0: its functions, .* than the limit of 200,000; allow more"):
        import_module(calling(chain(n), callee))


def test_empty_functions_that_double_count_as_calls():
    module = calling(chain(40))
    last = module.functions["f40"]
    module.functions["f40"] = Function(last.name, False, [{}], [{}], ["f32[]"], Block(0, ["f32[]"], [], [0]))
    with pytest.raises(LimitError, match="stand for 2,199,023,255,550 operations"):
        import_module(module)


def test_functions_without_end_are_refused_as_such():
    with pytest.raises(DocumentError, match="calls itself"):
        import_module(calling([[1, 1], [0]]))


@st.composite
def call_graphs(draw):
    n = draw(st.integers(1, 6))
    return [draw(st.lists(st.integers(k + 1, n), max_size=3)) for k in range(n)] + [[]]


@settings(max_examples=examples(100))
@given(call_graphs())
def test_the_count_is_that_of_all_operations_written_out(levels):
    def size(k):
        return sum(1 + size(n) for n in levels[k]) or 1

    written = sum(len(calls) or 1 for calls in levels)
    beyond = size(0) - written
    if beyond > 1:
        with limited(Limits(expansion=beyond)):
            import_module(calling(levels))
        with limited(Limits(expansion=beyond - 1)), pytest.raises(LimitError):
            import_module(calling(levels))
