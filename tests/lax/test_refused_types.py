"""Types that rules were not written for are taken, or refused in one line: never with errors of Python's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.tiers import thin
from tidu_cli.checking.numeric.trials import example_cases, one_node_document
from tidu_cli.errors import TiduError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Case
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.compose import detach
from tidu_cli.transforms.transpose import transpose

OTHERS = ("datetime[s]", "duration[ms]", "bool", "c64", "u8", "bf16")


def first_cases(primitive):
    """One case of each example."""
    return {id(example): case for example, case in example_cases(BUILTIN, primitive)}.values()


@contextmanager
def one_line_at_most() -> Iterator[None]:
    refused = ""
    try:
        yield
    except TiduError as error:
        refused = str(error)
    assert "\n" not in refused


def changed(case: Case, dtype: str) -> Iterator[list[Type]]:
    """The operands' types with another dtype: of one, and of all."""

    def other(type_):
        return type_.with_dtype(dtype) if isinstance(type_, TensorType) else type_

    for k, type_ in enumerate(case.operands):
        yield [*case.operands[:k], other(type_), *case.operands[k + 1 :]]
    yield list(map(other, case.operands))


@pytest.mark.every
def test_operands_of_any_dtype_are_taken_or_refused():
    for primitive in BUILTIN:
        for case in first_cases(primitive):
            for types in (types for dtype in OTHERS for types in changed(case, dtype)):
                with one_line_at_most():
                    BUILTIN.case(case.op, case.attrs, None, types)


@pytest.mark.parametrize("primitive", thin(list(BUILTIN), 60), ids=lambda p: p.name)
def test_detached_operands_are_transposed_or_named(primitive):
    for case in first_cases(primitive):
        for key in [Key(f"x{k}") for k in range(len(case.operands))]:
            with one_line_at_most():
                cut = detach(linearize(one_node_document(case), [key]), 1)
                transpose(parse_document(format_document(cut, "json"), "d")[0])
