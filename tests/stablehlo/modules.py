"""Modules of functions of JAX, and of texts, as documents, beside what JAX and XLA compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

import tidu_cli
from tests.stablehlo.claims.written import in_this_process
from tidu_cli.adapters.stablehlo.reading.importer import import_module
from tidu_cli.graph.closed import closed_graphs
from tidu_cli.graph.graph import Case, Document, Graph


def of_text(text: str) -> Document:
    """The document of a module's text, parsed in this process."""
    return import_module(in_this_process(text.encode(), "text"))


def of_function(function: Callable[..., Any], *arguments: Any) -> Document:
    """The document of the module that JAX lowers a function to."""
    return of_text(jax.jit(function, keep_unused=True).lower(*arguments).as_text())


def main(arguments: str, results: str, body: str) -> str:
    """The text of a module of one function: arguments such as "%x: tensor<3xf64>", and a body that returns."""
    return f"func.func public @main({arguments}) -> ({results}) {{\n{body}\n}}\n"


def values(document: Document, *arguments: Any) -> list[Any]:
    """The results for these arguments."""
    return list(tidu_cli.evaluate(document, {str(k): np.asarray(x) for k, x in enumerate(arguments)}).values())


def cases_within(document: Document) -> Iterator[Case]:
    """The cases of all nodes, those of graphs within nodes, too."""
    graphs: list[Graph] = [document.head]
    while graphs:
        graph = graphs.pop()
        for case, _ in graph.nodes():
            yield case
            graphs += [inner.graph for inner in closed_graphs(case.attrs)]


def operations(document: Document) -> set[str]:
    """The operations of all nodes."""
    return {case.op for case in cases_within(document)}
