"""Operators that have no place in a graph of arrays of known shapes, and why."""

from __future__ import annotations

from collections.abc import Mapping

from tidu_cli.formats.onnx.reading.node import Operator

OPERATORS: Mapping[str, Operator] = {}

_STRINGS = "computes with strings, of which tidu has no arrays; cut the model behind it: tidu convert --cut NAME"
_RANDOM = "draws random numbers, and graphs are functions; make them an input: tidu convert --cut NAME"
_IMAGES = "decodes files of images; give the array of pixels: tidu convert --cut NAME"
_CHOICE = "has as many results as its inputs have it, and shapes are known in a graph; cut the model before it"

REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer"), _STRINGS),
    **dict.fromkeys(
        ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"), _RANDOM
    ),
    "ImageDecoder": _IMAGES,
    "NonMaxSuppression": _CHOICE,
}
"""Why operators are not read."""
