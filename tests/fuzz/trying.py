"""All that is done to a document, in process: it works, or a TiduError says why not. Anything else is a bug."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import numpy as np

from tidu_cli.api import compile as compiled
from tidu_cli.api import evaluate, linearize, materialize, transpose
from tidu_cli.checking.report import check_document
from tidu_cli.errors import TiduError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document
from tidu_cli.graph.types import MAX_RANK, RecordType, TensorType, Type, moves, storage_dtype
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import vocabulary

MOST_MEMORY = 2**26
"""Evaluations that would take more are to be refused."""


def read(plain: Any) -> Document:
    """A document from plain data, by way of JSON."""
    return parse_document(json.dumps(plain).encode(), "d")[0]


def try_all(plain: dict[str, Any]) -> str:
    """Read, check, linearize, transpose, compile and evaluate a document of one graph, one value and many at once.

    Gives the last step that worked. Raises whatever is no TiduError, and AssertionError for one of several lines.
    """
    reached = "nothing"
    try:
        document = with_outputs(plain)
        reached = "read"
        for format_ in ("json", "msgpack"):
            assert format_document(parse_document(format_document(document, format_), "d")[0], "json") == format_document(
                document, "json"
            )
        check_document(document, vocabulary(document.cases), ("static",))
        reached = "check"
    except TiduError as error:
        if not str(error).isprintable():
            raise AssertionError(f"not one printable line: {error!r}") from error
        return reached
    inputs = document.graphs[0].inputs
    if sum(i.type.nbytes for i in inputs) > MOST_MEMORY:
        return reached
    with suppress(TiduError):
        evaluate(document, {i.key: ones(i.type) for i in inputs}, max_memory=MOST_MEMORY)
        reached = "eval"
    with suppress(TiduError):
        compiled(document)
    for size in (0, 2):
        with suppress(TiduError):
            _evaluate_batch(document, size)
    wrt = [i.key for i in inputs if moves(i.type)]
    if wrt and document.graphs[0].outputs:
        with suppress(TiduError):
            linear = linearize(document, wrt)
            reached = "linearize"
            _evaluate(linear)
            _evaluate(transpose(linear))
            reached = "transpose"
    return reached


def with_outputs(plain: dict[str, Any]) -> Document:
    """The document, every result of whose nodes is an output. Raises DocumentError."""
    graph = plain["graphs"][0]
    first, n = len(graph["inputs"]), read(plain).graphs[0].n_values
    outputs = [{"key": f"y{k}", "value": first + k} for k in range(n - first)]
    return read({**plain, "graphs": [{**graph, "outputs": outputs}]})


def ones(type_: Type) -> Any:
    """A value of a type; of integers and floats alike ones, which are valid indices and exponents more often than not."""
    if isinstance(type_, RecordType):
        values = [ones(field) for _, field in type_.fields]
        return tuple(values) if type_.is_tuple else dict(zip(type_.names, values, strict=True))
    return np.ones(type_.shape, numpy_dtype(np, storage_dtype(type_.dtype)))


def _evaluate(document: Document) -> None:
    graph = materialize(document).graphs[0]
    evaluate(document, {i.key: ones(i.type) for i in graph.inputs}, max_memory=MOST_MEMORY)


def _evaluate_batch(document: Document, size: int) -> None:
    tensors = [i for i in document.graphs[0].inputs if isinstance(i.type, TensorType) and i.type.dtype != "bool"]
    for batched in (tensors[:1], tensors):
        values = {i.key: ones(i.type) for i in document.graphs[0].inputs}
        for i in batched:
            one = ones(i.type)
            values[i.key] = [one.tolist()] * size if i.type.rank == MAX_RANK else np.ones((size, *one.shape), one.dtype)
        evaluate(document, values, max_memory=MOST_MEMORY, batch={i.key: 0 for i in batched})
