"""Mutations: of bytes as such, and of plain data, whose parts are replaced, repeated, moved, renamed and left out."""

from __future__ import annotations

import copy
import json
from typing import Any

from tests.fuzz.choices import Choices
from tests.graphs.plain_data import places

TOKENS = (
    *(
        b"",
        b'"',
        b"\\ud800",
        b"\\u0000",
        b"-",
        b"9",
        b"1e999",
        b"1e-999",
        b"0.1",
        b"NaN",
        b"Infinity",
        b"null",
        b"true",
        b"[",
        b"]",
        b"{",
    ),
    *(
        b"}",
        b",",
        b":",
        b"\xc1",
        b"\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xc9",
        b"\xc4\xff",
        b"\x00",
        b"\xef\xbb\xbf",
        b"PK",
    ),
    *(b"\x80\x00\x00\x00", b"\xe2\x80\xae", b"\x1b[31m", b"\n", b" " * 30, b"[" * 200, b"9" * 400),
)
"""What parsers stumble over."""

NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    7,
    63,
    64,
    65,
    255,
    2**15,
    2**31 - 1,
    2**31,
    -(2**31) - 1,
    2**53,
    2**53 + 1,
    2**62,
    2**63 - 1,
    2**63,
    2**64,
)
"""Integers at the ends of what something holds."""

SCALARS: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        *NUMBERS,
        10**30,
        1.0,
        -0.5,
        0.0,
        -0.0,
        1e300,
        5e-324,
        "NaN",
        "-Infinity",
        "",
        "x",
        "y@-1",
        "x@1",
        "@",
        "@@",
    ),
    *(
        "add",
        "mul",
        "constant",
        "scan",
        "f64[]",
        "f32[2]",
        "c64[3,1]",
        "bool[]",
        "i32[0]",
        "u8[2,2]",
        "f64[99999999999]",
        "f64[1.5]",
    ),
    *(
        " f64[]",
        "f64[-1]",
        "f64" + "[" * 40,
        "datetime[ms][]",
        "duration[h]",
        "{x: f64[]}",
        "(f64[], i32[3])",
        "{",
        "sha256:" + "0" * 64,
    ),
    *("sha256:", "\x1b[31m\u202e\u009b", "line\nbreak", "\0", "é", "x" * 5000, "clip", "fill", "2026-01-31T12:00", "9999-99-99"),
)

CONTAINERS: tuple[Any, ...] = (
    *([], {}, [0], [0, 0], [[0, 0]], [0, 0, 0], [[]], [None], [-1], list(range(70)), {"x": 1}, {"": {}}),
    *({"tangent": {"of": "x", "pass": 1}}, {"cotangent": {"of": "y", "pass": 1}}, {"linearized": {"active_mask": [True]}}),
    *({"linearized": {"active_mask": [True, False]}}, {"type": "f64[]", "data": [0.0]}, {"type": "f64[2]", "base64": "AAAA"}),
)


def mutate_bytes(choices: Choices, data: bytes) -> bytes:
    """Up to four short stretches replaced by something else, or a cut end."""
    changed = bytearray(data)
    for _ in range(1 + choices.below(4)):
        at = choices.below(len(changed) + 1)
        match choices.below(6):
            case 0:
                del changed[at : at + 1 + choices.below(8)]
            case 1:
                changed[at:at] = choices.pick(TOKENS)
            case 2:
                changed[at : at + 1] = choices.rest(1)
            case 3:
                changed[at : at + choices.below(9)] = choices.rest(choices.below(9))
            case 4:
                start = choices.below(len(changed) + 1)
                changed[at:at] = changed[start : start + choices.below(60)]
            case _:
                if choices.one_in(3):
                    del changed[at:]
                else:
                    changed[at : at + 1] = choices.pick(TOKENS)
    return bytes(changed)


def mutate_plain(choices: Choices, data: Any, others: Any) -> Any:
    """One change of plain data, sometimes more, mostly to something of the same sort; parts of `others` may come in."""
    data = copy.deepcopy(data)
    for _ in range(choices.pick((1, 1, 1, 1, 2, 3))):
        here = places(data)
        if not here:
            return data
        parent, step = choices.pick(here)
        value = parent[step]
        match choices.below(12):
            case 0:
                parent[step] = copy.deepcopy(choices.pick((*SCALARS, *CONTAINERS)))
            case 1:
                del parent[step]
            case 2 if isinstance(parent, list):
                parent[step:step] = [copy.deepcopy(value)] * (1 + choices.below(3))
            case 3 if isinstance(parent, dict):
                names = [str(k) for p, k in here if isinstance(p, dict)]
                parent[choices.pick([*names, "meta", "types", "other"])] = parent.pop(step)
            case 4:
                elsewhere, other = choices.pick(here)
                _exchange(data, (parent, step), (elsewhere, other))
            case 5 | 6 if isinstance(value, int) and not isinstance(value, bool):
                parent[step] = value + choices.pick((-1, 1, 2, -value - 1, 2**31, 2**63))
            case 5 | 6 | 7 | 8:
                alike = [p[k] for p, k in (*here, *places(others)) if k == step or not isinstance(step, str)]
                alike = [v for v in alike if type(v) is type(value) and v != value]
                parent[step] = copy.deepcopy(choices.pick(alike)) if alike else None
            case _:
                alike = [v for v in (*SCALARS, *CONTAINERS) if type(v) is type(value)]
                parent[step] = copy.deepcopy(choices.pick(alike)) if alike else None
    return data


def _exchange(data: Any, one: tuple[Any, Any], other: tuple[Any, Any]) -> None:
    (a, i), (b, k) = one, other
    a[i], b[k] = b[k], a[i]
    if _is_endless(data):  # one was a part of the other
        a[i], b[k] = b[k], a[i]


def _is_endless(data: Any) -> bool:
    try:
        json.dumps(data)
    except (ValueError, RecursionError):
        return True
    return False
