"""Operators that have no place in a graph of arrays of known shapes, and why."""

from __future__ import annotations

from collections.abc import Mapping

from tidu_cli.adapters.onnx.reading.node import Operator

OPERATORS: Mapping[str, Operator] = {}

CUT = "tidu convert --cut NAME --input-type NAME=TYPE"
"""How commands cut a model, in the reasons below."""

_STRINGS = f"computes with strings, of which tidu has no arrays; cut the model behind it: {CUT}"
_RANDOM = f"draws random numbers, and graphs are functions; make them an input: {CUT}"
_IMAGES = f"decodes files of images; give the array of pixels: {CUT}"
_CHOICE = f"has as many results as its inputs have it, and shapes are known in a graph; cut the model behind it: {CUT}"

REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer"), _STRINGS),
    **dict.fromkeys(
        ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"), _RANDOM
    ),
    "ImageDecoder": _IMAGES,
    "NonMaxSuppression": _CHOICE,
}
"""Why operators are not read."""
