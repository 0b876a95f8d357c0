"""Nodes with hostile attrs: each attr of each primitive with values that no author of a rule had in mind, as plain documents."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from copy import deepcopy
from itertools import product
from typing import Any

from tests.graphs.plain_data import places
from tidu_cli.checking.numeric.trials import DTYPES
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.attrs import to_file
from tidu_cli.rules.contract import Example, Primitive
from tidu_cli.rules.fields import field_names

HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 2**31 - 1, 2**31, 2**62, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30,
    0.0, 1.0, -1.5, 1e300, "NaN", "Infinity", "", "x", "yes", "f64", "i8", "bool", "duration[h]", "f64[2]", "\n", "\u202e",
    [], [0], [-1], [0, 0], [0, 1], [1, 0], [2**62], [2**63], [[]], [[0]], [[0], [0]], [True], [1.0], [None], ["x"], [1] * 65,
    {}, {"type": "f64[]", "data": [1]}, {"type": "i8[1]", "data": [300]}, {"type": "f64[2]", "data": ["NaN", 1.0]},
)  # fmt: skip
"""Values for any attr, or any part of one."""

INTEGERS = (*(v for v in HOSTILE if type(v) is int), 0, 0, 1, 1, 2, 3, 4, 5)
"""Values for the entries of lists: small ones more often, which may fit."""

SHAPES = (
    "[]",
    "[0]",
    "[1]",
    "[3]",
    "[2,3]",
    "[3,3]",
    "[2,0]",
    "[0,3]",
    "[1,2,1]",
    "[1,2,3,4]",
    "[2147483648]",
    f"[{','.join(['1'] * 64)}]",
)
"""Shapes for operands in place of an example's."""


def systematic() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each attr of each primitive, and each part of its value in each example, in turn with each hostile value."""
    for primitive in BUILTIN:
        for example in primitive.catalogue.examples:
            dtype = _dtypes(primitive)[0]
            attrs, types = _instance(example, dtype)
            for name, value in product(field_names(primitive.domain.attrs), HOSTILE):
                if name not in attrs:
                    yield primitive.name, one_node(primitive.name, types, {**attrs, name: value})
            for k, value in product(range(len(places(attrs))), HOSTILE):
                changed = deepcopy(attrs)
                parent, step = places(changed)[k]
                parent[step] = value
                yield primitive.name, one_node(primitive.name, types, changed)


def drawn(seed: int, count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """So many documents with several hostile attrs, operands of other shapes and any dtype. The same for the same seed."""
    rng = random.Random(seed)
    chosen = [p for p in BUILTIN if p.catalogue.examples]
    with_attrs = [p for p in chosen if field_names(p.domain.attrs)]
    for _ in range(count):
        primitive = rng.choice(with_attrs if rng.random() < 0.9 else chosen)
        attrs, types = _instance(rng.choice(primitive.catalogue.examples), rng.choice(_dtypes(primitive)))
        for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3])):
            _change(rng, attrs, field_names(primitive.domain.attrs))
        if types and rng.random() < 0.4:
            changed, shape = rng.choice(types), rng.choice(SHAPES)
            types = [_SHAPE.sub(shape, t) if t == changed else t for t in types]
        yield primitive.name, one_node(primitive.name, types, attrs)


def _dtypes(primitive: Primitive) -> list[str]:
    # f64 first, and i8, whose range is small: rules for other dtypes are theirs.
    dtypes = [d for d in ("f64", "i8", "c64", "bool", "u32", "bf16", "datetime[ms]", "duration[h]") if d in primitive.domain.dtypes]
    return dtypes or [d for d in DTYPES if d in primitive.domain.dtypes]


def _instance(example: Example, dtype: str) -> tuple[dict[str, Any], list[str]]:
    """The attrs and operand types of an example."""
    given = example.attrs() if callable(example.attrs) else example.attrs
    attrs = {name: dtype if value == "T" else deepcopy(to_file(value, binary=False)) for name, value in given.items()}
    return attrs, [_GENERIC.sub(dtype, operand) for operand in example.operands]


_GENERIC = re.compile(r"\bT\b")
_SHAPE = re.compile(r"(?<![a-z])\[[0-9,]*\](?=$|[,)}])")


def one_node(op: str, types: list[str], attrs: dict[str, Any]) -> dict[str, Any]:
    """A document of one graph of one node, without outputs."""
    inputs = [{"key": f"x{k}", "type": type_} for k, type_ in enumerate(types)]
    node = {"op": op, "inputs": list(range(len(types))), **({"attrs": attrs} if attrs else {})}
    return {"tidu": 1, "graphs": [{"name": "f", "inputs": inputs, "nodes": [node], "outputs": []}]}


def _change(rng: random.Random, attrs: dict[str, Any], names: tuple[str, ...]) -> None:
    """Change one attr, or one part of it; of primitives without attrs, and seldom of others, add one."""
    if not names or rng.random() < 0.01:
        attrs["other"] = rng.choice(HOSTILE)
        return
    name = rng.choice(names)
    if name not in attrs:
        attrs[name] = deepcopy(rng.choice(HOSTILE))
        return
    parent, last = rng.choice([(attrs, name), *places(attrs[name])])
    if isinstance(parent[last], list) and rng.random() < 0.4:
        parent[last].append(deepcopy(rng.choice([*parent[last], *INTEGERS])))
    elif isinstance(parent, list) and rng.random() < 0.2:
        del parent[last]
    else:
        integers = type(parent[last]) is int and rng.random() < 0.8
        parent[last] = (
            not parent[last] if isinstance(parent[last], bool) else deepcopy(rng.choice(INTEGERS if integers else HOSTILE))
        )
