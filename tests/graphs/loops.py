"""Documents with loops and branches, by hand."""

from __future__ import annotations

import json
from typing import Any


def graph(inputs: dict[str, str], nodes: list[Any], outputs: dict[str, int]) -> dict[str, Any]:
    """A graph, closed or not: keys and types, nodes, keys and values."""
    return {
        "inputs": [{"key": key, "type": type_} for key, type_ in inputs.items()],
        "nodes": nodes,
        "outputs": [{"key": key, "value": value} for key, value in outputs.items()],
    }


def node(op: str, *inputs: int, **attrs: Any) -> dict[str, Any]:
    """A node."""
    return {"op": op, "inputs": list(inputs), **({"attrs": attrs} if attrs else {})}


def document(data: dict[str, Any], **more: Any) -> bytes:
    """A document of one graph, f."""
    return json.dumps({"tidu": 1, **more, "graphs": [{"name": "f", **data}]}).encode()


F64, I32 = "f64[]", "i32[]"

STEP = graph(
    {"k": F64, "s": F64, "x": F64}, [node("sin", 0), node("mul", 3, 1), node("add", 4, 2), node("cos", 5)], {"s": 5, "y": 6}
)
SCAN = document(
    graph(
        {"k": F64, "s0": F64, "xs": "f64[4]"},
        [node("scan", 0, 1, 2, length=4, num_consts=1, num_carry=1, body=STEP), node("reduce_sum", 4, axes=[0])],
        {"s": 3, "sum": 5},
    )
)
"""s ← sin(k) s + x, which also gives cos(s)."""

WHILE = document(
    graph(
        {"tol": F64, "h": F64, "a": F64},
        [
            node(
                "while",
                0,
                1,
                2,
                cond_consts=1,
                body_consts=1,
                condition=graph({"tol": F64, "a": F64}, [node("gt", 1, 0)], {"go": 2}),
                body=graph({"h": F64, "a": F64}, [node("mul", 1, 0)], {"a": 2}),
            )
        ],
        {"a": 3},
    )
)
"""a ← h a while a > tol."""

_INNER = graph({"a": F64, "y": F64}, [node("mul", 1, 0)], {"y": 2})
_BRANCHES = [
    graph({"a": F64, "y": F64}, [node("scan", 0, 1, length=3, num_consts=1, num_carry=1, body=_INNER)], {"y": 2}),
    graph({"a": F64, "y": F64}, [node("add", 1, 0)], {"y": 2}),
]
_OUTER = graph({"a": F64, "y": F64, "k": "bool[]"}, [node("cond", 2, 0, 1, branches=_BRANCHES)], {"y": 3, "ys": 3})
NESTED = document(
    graph(
        {"a": F64, "y": F64, "ks": "bool[5]"},
        [node("scan", 0, 1, 2, length=5, num_consts=1, num_carry=1, body=_OUTER)],
        {"y": 3, "ys": 4},
    )
)
"""A loop of branches, of which one is a loop."""
