"""Documents with open sizes, for the conformance samples: valid ones, and what is wrong with others."""

from __future__ import annotations

import json
from typing import Any

from defects import Defect
from documents import document, graph, node
from loops import closed


def _mean() -> dict[str, Any]:
    nodes = [
        node("slice", 0, attrs={"start_indices": ["N-1", 0], "limit_indices": ["2*N+1", 3]}),
        node("pad", 2, 1, attrs={"padding_config": [["N//2", "-(N%2)", 0], [0, 0, 0]]}),
        node("reduce_sum", 3, attrs={"axes": [0, 1]}),
        node("size", attrs={"expression": "3*max(M,N)*N", "dtype": "f64"}),
        node("div", 4, 5),
        node("broadcast_in_dim", 6, attrs={"shape": ["min(M,N)", "(M+N)//4"], "broadcast_dimensions": []}),
    ]
    return document(
        graph("mean", {"x": "f64[2*N+1,3]", "z": "f64[]"}, nodes, {"y": 7}),
        sizes={"M": {"max": 64}, "N": {"min": 2, "multiple_of": 2}},
    )


def _recurrent() -> dict[str, Any]:
    body = closed({"h": "f64[B]", "x": "f64[B]"}, [node("add", 0, 1)], {"h": 2, "y": 2})
    scan = node("scan", 0, 1, attrs={"length": "T", "num_consts": 0, "num_carry": 1, "body": body})
    return document(graph("sums", {"h": "f64[B]", "x": "f64[T,B]"}, [scan], {"h_T": 2, "hs": 3}))


VALID = {
    "open_sizes": ("open sizes in types and attrs, with bounds, and one as a number", _mean()),
    "open_loop": ("a loop of an open number of steps, over an open batch", _recurrent()),
}


def _wrong(purpose: str, *words: str, type_: str = "f64[N]", **fields: object) -> Defect:
    return Defect(purpose, json.dumps(document(graph("f", {"x": type_}, [], {"y": 0}), **fields)).encode(), words, None, None)


INVALID = {
    "size_text.json": _wrong("a size that is not an expression", "N+", type_="f64[N+]"),
    "size_operator.json": _wrong("a size with an operator that sizes do not have", "N**2", type_="f64[N**2]"),
    "size_negative.json": _wrong("a size that may be less than 0", "N-2", "less than 0", type_="f64[N-2]"),
    "size_divided.json": _wrong("a size divided by what may be 0", "M-1", type_="f64[N//(M-1)]"),
    "size_degree.json": _wrong("a size of a high degree", "factors", type_="f64[A*A*A*A*A*A*A*A*A]"),
    "size_long.json": _wrong("a size of a long text", "200", type_=f"f64[{'N' * 201}]"),
    "sizes_list.json": _wrong("sizes that are a list", "sizes", sizes=["N"]),
    "sizes_name.json": _wrong("a size called as a function", "max", sizes={"max": {"min": 2}}),
    "sizes_field.json": _wrong("a bound of another name", "min", sizes={"N": {"least": 2}}),
    "sizes_bool.json": _wrong("a bound that is a bool", "min", sizes={"N": {"min": True}}),
    "sizes_empty.json": _wrong("bounds that nothing is within", "N", sizes={"N": {"min": 5, "max": 3}}),
}
