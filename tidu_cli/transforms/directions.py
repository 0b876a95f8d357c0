"""The directions that linearize differentiates along: tangents of inputs, their types, and what may depend on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidu_cli.errors import TransformError, TypeRuleError
from tidu_cli.graph.graph import Input
from tidu_cli.graph.keys import Key
from tidu_cli.graph.passes import Call
from tidu_cli.graph.types import Type, tangent_type
from tidu_cli.rules.tangents import types as tangents
from tidu_cli.rules.tangents.conversion import conversion
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.derivative import Derivative


def tangent_inputs(call: Call, chosen: Mapping[Key, Type]) -> list[Input]:
    """The inputs of the linear graph: a tangent of each input of the call, of a chosen type or of the natural one.

    Raises TransformError where there is no such tangent.
    """
    document = call.logical.document
    declared = {key: document.inputs[key].type for key in call.wrt}
    for key, type_ in declared.items():
        if key in document.bound:
            graph = document.graphs[document.bound[key][0]].name
            raise TransformError(
                f"input '{key}' is bound to a value of graph '{graph}'; differentiate with respect to that graph's inputs"
            )
        if tangents.natural(type_) is None:
            raise TransformError(
                f"input '{key}' has type {type_}, whose only tangent is zero; if it is meant as a number, "
                "declare it as a float and use convert_element_type where a bool is needed"
            )
    types = {key: tangent_type(type_) for key, type_ in declared.items()}
    for key, type_ in chosen.items():
        if key not in types:
            raise TransformError(f"a tangent type is given for '{key}', which is none of the inputs to differentiate by")
        try:
            types[key] = tangents.chosen(declared[key], type_)
        except TypeRuleError as error:
            raise TransformError(f"input '{key}' has type {declared[key]}, which {error}") from None
    return [Input(key.tangent(call.number), type_) for key, type_ in types.items()]


def require_known_paths(call: Call) -> None:
    """Raises TransformError if outputs of the call may depend on some of its inputs through values that are detached."""
    # What a linear graph reads detached does not depend on its own inputs; of any other input it may.
    if 1 not in call.needed[call.logical.base[-1] :]:
        return
    tangents = {i.key for graph in call.logical.document.graphs if graph.linear is not None for i in graph.inputs}
    for key in call.wrt:
        if key not in tangents:
            raise TransformError(
                f"the outputs read detached values, which may depend on '{key}'; resolve them with the document that defines them"
            )


def natural_seeds(derivative: Derivative, call: Call, chosen: Iterable[Key], primitives: PrimitiveSet) -> dict[int, int]:
    """By the flat ids of inputs, the handles of their tangents in their natural types, which rules take."""
    logical, linear = derivative.logical, derivative.linear
    seeds = {logical.source[key]: -1 - k for k, key in enumerate(call.wrt)}
    for key in chosen:
        source = logical.source[key]
        primal, given = logical.type_of(source), linear.inputs[-1 - seeds[source]].type
        if primal is not None and call.needed[source] and given != tangent_type(primal):
            template = conversion(primitives, logical.document.cases, given, tangent_type(primal))
            (seeds[source],) = derivative.stamper.stamp(template, [seeds[source]])
    return seeds
