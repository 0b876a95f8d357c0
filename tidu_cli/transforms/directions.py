"""The directions that linearize differentiates along: tangents of inputs, their types, and what may depend on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tidu_cli.errors import TransformError, TypeRuleError
from tidu_cli.graph.graph import Document, Input
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import LogicalGraph
from tidu_cli.graph.select import require_inputs
from tidu_cli.graph.types import Type, tangent_type
from tidu_cli.rules.tangents import types as tangents
from tidu_cli.rules.tangents.conversion import conversion
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.derivative import Derivative


def tangent_inputs(document: Document, wrt: Sequence[Key], pass_number: int, chosen: Mapping[Key, Type]) -> list[Input]:
    """The inputs of the linear graph: a tangent of each of these, of a chosen type or of the natural one.

    Raises UnknownNameError, and TransformError where there is no such tangent.
    """
    require_inputs(document, wrt)
    declared = {i.key: i.type for graph in document.graphs for i in graph.inputs}
    bound = {b.key: b for b in document.bindings}
    for key in wrt:
        if key in bound:
            graph = document.graphs[bound[key].graph].name
            raise TransformError(
                f"input '{key}' is bound to a value of graph '{graph}'; differentiate with respect to that graph's inputs"
            )
        if tangents.natural(declared[key]) is None:
            raise TransformError(
                f"input '{key}' has type {declared[key]}, whose only tangent is zero; if it is meant as a number, "
                "declare it as a float and use convert_element_type where a bool is needed"
            )
    types = {key: tangent_type(declared[key]) for key in wrt}
    for key, type_ in chosen.items():
        if key not in types:
            raise TransformError(f"a tangent type is given for '{key}', which is none of the inputs to differentiate by")
        try:
            types[key] = tangents.chosen(declared[key], type_)
        except TypeRuleError as error:
            raise TransformError(f"input '{key}' has type {declared[key]}, which {error}") from None
    return [Input(key.tangent(pass_number), types[key]) for key in wrt]


def require_known_paths(logical: LogicalGraph, needed: bytearray, wrt: Sequence[Key]) -> None:
    """Raises TransformError if outputs may depend on some of `wrt` through values that are detached."""
    # What a linear graph reads detached does not depend on its own inputs; of any other input it may.
    if 1 not in needed[logical.base[-1] :]:
        return
    tangents = {i.key for graph in logical.document.graphs if graph.linear is not None for i in graph.inputs}
    for key in wrt:
        if key not in tangents:
            raise TransformError(
                f"the outputs read detached values, which may depend on '{key}'; resolve them with the document that defines them"
            )


def natural_seeds(
    derivative: Derivative, wrt: Sequence[Key], chosen: Iterable[Key], needed: bytearray, primitives: PrimitiveSet
) -> dict[int, int]:
    """By the flat ids of inputs, the handles of their tangents in their natural types, which rules take."""
    logical, linear = derivative.logical, derivative.linear
    seeds = {logical.source[key]: -1 - k for k, key in enumerate(wrt)}
    for key in chosen:
        source = logical.source[key]
        primal, given = logical.type_of(source), linear.inputs[-1 - seeds[source]].type
        if primal is not None and needed[source] and given != tangent_type(primal):
            template = conversion(primitives, logical.document.cases, given, tangent_type(primal))
            (seeds[source],) = derivative.stamper.stamp(template, [seeds[source]])
    return seeds
