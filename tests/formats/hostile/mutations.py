"""Documents changed at random: plain data whose values, fields and entries are replaced, dropped, repeated and renamed; bytes."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.formats.plain import documents, read
from tests.fuzz.choices import Choices
from tests.fuzz.inputs.attr_values import HOSTILE
from tests.fuzz.mutation import mutate_bytes
from tests.graphs.plain_data import places
from tests.graphs.strategies import seeds
from tidu_cli.formats.write import format_document

VALID = sorted((Path(__file__).parents[3] / "samples" / "conformance" / "valid").iterdir())
CONTENTS = [path.read_bytes() for path in VALID]

PARTS: tuple[Any, ...] = (
    "f64[1.5]",
    " {x: f64[]}",
    "{x: f64[]} ",
    "f64[]\n",
    "Point",
    "{x: f64[1.5]}",
    "(f64[],)",
    "(f64[])",
    "{x: f64[], x: i8[]}",
    "f64[n]",
    "T[...]",
    "T[...,...]",
    "f64[n, m]",
    "datetime[ms]",
    "duration[xx]",
    "datetime[ms][3]",
    "f64[99999999999999999999]",
    "sha256:" + "0" * 64,
    "sha256:" + "A" * 64,
    [0, 0],
    [1, 0],
    [0, -1],
    {"tangent": {"of": "x", "pass": 1}},
    {"cotangent": {"of": "x", "pass": 1}},
    {"tangent": {"of": "x", "pass": 2**53}},
    {"linearized": {"active_mask": [True]}},
    {"linearized": {"active_mask": [False]}},
    {"pass": 1},
    {"attr": "n"},
    ["f64[]"],
    {"op": "sin", "inputs": [0]},
    "add",
    10**400,
    {"key": "q", "type": "f64[]"},
    {"key": "q", "value": 0},
    {"key": "q", "value": None},
    {"type": "datetime[ms][]", "data": ["2026-01-01"]},
    {"type": "u8[1]", "data": [256]},
    {"type": "f64[]", "base64": "AAAAAAAAAAA"},
    {"type": "f64[]", "base64": "AAAAAAAAAAA="},
    {"type": "bool[1]", "data": [1]},
    {"type": "duration[h][1]", "data": ["NaN"]},
)
"""What a place may become, beside hostile values of attrs."""

NAMES = (
    "op",
    "inputs",
    "types",
    "value",
    "meta",
    "other",
    "role",
    "attrs",
    "key",
    "type",
    "linear",
    "graphs",
    "ops",
    "bindings",
    "tangent",
    "of",
    "pass",
    "forward",
    "jvp",
    "backward",
    "transpose",
    "outputs",
    "nodes",
    "table",
    "code",
    "args",
    "external",
    "data",
    "base64",
    "1op",
    "a.jvp",
    "sin",
    "",
    "active",
    "f64",
    "Point",
)
"""What a field may be called."""


def mutated(rng: random.Random, plain: Any) -> Any:
    """A copy of plain data with one to three changes."""
    plain = deepcopy(plain)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        here = places(plain)
        if not here:
            break
        _change(rng, *rng.choice(here))
    return plain


def _change(rng: random.Random, parent: Any, last: Any) -> None:
    kind = rng.choice(["replace", "replace", "replace", "delete", "repeat", "rename", "add"])
    if kind == "delete":
        del parent[last]
    elif kind == "repeat" and isinstance(parent, list):
        parent.insert(last, deepcopy(parent[last]))
    elif kind == "rename" and isinstance(parent, dict):
        parent[rng.choice(NAMES)] = parent.pop(last)
    elif kind == "add" and isinstance(parent, dict):
        parent[rng.choice(NAMES)] = deepcopy(rng.choice((*HOSTILE, *PARTS)))
    else:
        parent[last] = deepcopy(rng.choice((*HOSTILE, *PARTS, *PARTS)))


@st.composite
def mutated_structures(draw: st.DrawFn) -> Any:
    """Plain data of documents, with listed nodes or packed ones, with one to three changes."""
    data = draw(documents())
    if draw(st.booleans()):
        data = json.loads(format_document(read(data), "json", listed=False))
    return mutated(random.Random(draw(seeds)), data)


mutated_bytes = st.builds(
    lambda data, changes: mutate_bytes(Choices(changes), data), st.sampled_from(CONTENTS), st.binary(max_size=60)
)
"""Files of documents, with some bytes changed."""
