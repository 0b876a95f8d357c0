"""Which operators are read, by domain and name, and why others are not."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module

from tidu_cli.adapters.onnx.reading.node import Operator

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "": (
        "elementwise",
        "shapes",
        "joining",
        "indexing",
        "reductions",
        "normalization",
        "networks.attention",
        "networks.signal",
        "networks.pooling",
        "networks.resampling",
        "control_flow",
        "networks.recurrent",
        "quantization",
    ),
    "ai.onnx.ml": ("networks.machine_learning", "networks.tree_ensembles"),
    "com.microsoft": ("networks.contrib", "networks.contrib_quantized"),
}
"""A domain's modules, the most usual first: each has OPERATORS, by name, and perhaps REFUSED, why others are not read."""

CUT = "tidu convert --cut NAME --input-type NAME=TYPE"
"""How commands cut a model, in the reasons below."""

_STRINGS = f"computes with strings, of which tidu has no arrays; cut the model behind it: {CUT}"
_RANDOM = f"draws random numbers, and graphs are functions; make them an input: {CUT}"
_IMAGES = f"decodes files of images; give the array of pixels: {CUT}"
_CHOICE = f"has as many results as its inputs have it, and shapes are known in a graph; cut the model behind it: {CUT}"
_STEP = "is a step of an optimizer, which takes gradients; export the model alone, and its gradients are tidu's: tidu grad"

_REFUSED: Mapping[str, Mapping[str, str]] = {
    "": {
        **dict.fromkeys(("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer"), _STRINGS),
        **dict.fromkeys(
            ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"), _RANDOM
        ),
        "ImageDecoder": _IMAGES,
        "NonMaxSuppression": _CHOICE,
    },
    "ai.onnx.preview.training": {
        **dict.fromkeys(("Adagrad", "Adam", "Momentum"), _STEP),
        "Gradient": "stands for a gradient; export the model alone, and its gradients are tidu's: tidu grad",
    },
}
"""By domain, why operators are not read that have no place in a graph of arrays of known shapes."""


@lru_cache(maxsize=1024)
def operator(domain: str, name: str) -> Operator | None:
    """An operator, None if there is none. Modules are imported until one has it."""
    families = (_module(family).OPERATORS for family in FAMILIES.get(domain, ()))
    return next((known[name] for known in families if name in known), None)


@lru_cache(maxsize=16)
def operators(domain: str) -> Mapping[str, Operator]:
    """The operators of a domain by their names, none for a domain that is not known."""
    return {name: run for family in FAMILIES.get(domain, ()) for name, run in _module(family).OPERATORS.items()}


@lru_cache(maxsize=16)
def refusals(domain: str) -> Mapping[str, str]:
    """The reasons why operators of a domain are not read, by their names."""
    of_families = (getattr(_module(family), "REFUSED", {}) for family in FAMILIES.get(domain, ()))
    return {name: text for reasons in (*of_families, _REFUSED.get(domain, {})) for name, text in reasons.items()}


def _module(family: str):  # type: ignore[no-untyped-def]
    return import_module(f"tidu_cli.adapters.onnx.reading.operators.{family}")
