"""Examples of primitives, as cases and as one-node documents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.graph import Case, CaseTable, Document, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.text.types import parse_value_type
from tidu_cli.graph.types import ITEMSIZE
from tidu_cli.rules.contract import Example, Primitive
from tidu_cli.rules.vocabulary import PrimitiveSet

T = TypeVar("T")

DTYPES = (*ITEMSIZE, "datetime[ms]", "duration[h]")
"""The dtypes that examples are tried in: of times one each, since rules tell units apart only in conversions."""

_GENERIC = re.compile(r"\bT\b")


def example_cases(primitives: PrimitiveSet, primitive: Primitive) -> Iterator[tuple[Example, Case]]:
    """Every example of a primitive in every dtype that it takes, as a primary case."""
    for example in primitive.catalogue.examples:
        given = example.attrs() if callable(example.attrs) else example.attrs
        texts = [*example.operands, *(value for value in given.values() if isinstance(value, str))]
        generic = any(map(_GENERIC.search, texts))
        for dtype in [d for d in DTYPES if d in primitive.domain.dtypes] if generic else ["f64"]:
            attrs = {name: _GENERIC.sub(dtype, value) if isinstance(value, str) else value for name, value in given.items()}
            types = [parse_value_type(_GENERIC.sub(dtype, type_), primitives.records) for type_ in example.operands]
            yield example, primitives.case(primitive.name, primitives.parse_attrs(primitive.name, attrs), None, types)


def one_node_document(
    case: Case, primitives: PrimitiveSet | None = None, inputs: Sequence[Key] = (), outputs: Sequence[Key] = ()
) -> Document:
    """A document of one graph, named like the op, of one node. Inputs are x0, x1, ..., outputs y0, y1, ..., or have these keys."""
    cases = CaseTable(primitives)
    types = [t for t in case.operands if t is not None]
    assert len(types) == len(case.operands)
    input_keys = inputs or [Key(f"x{k}") for k in range(len(types))]
    output_keys = outputs or [Key(f"y{k}") for k in range(len(case.results))]
    builder = GraphBuilder(cases, list(map(Input, input_keys, types)))
    first = builder.append(cases.intern(case), range(len(types)))
    ends = [Output(key, first + k, t) for k, (key, t) in enumerate(zip(output_keys, case.results, strict=True))]
    return Document((builder.build(case.op, ends),), cases)


def of_operand(given: Sequence[T], k: int) -> T:
    """What an example gives for operand k: one thing for each of its operands, or one for all."""
    return given[min(k, len(given) - 1)]


def with_diagonal(x: Any, added: float) -> Any:
    """Matrices with a number added to their diagonals, in their own dtype; arrays as they are where it is 0."""
    import numpy as np

    return np.asarray(x + added * np.eye(*x.shape[-2:]), x.dtype) if added else x
