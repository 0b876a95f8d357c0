"""Which operators are read, by domain and name, and why others are not."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module

from tidu_cli.adapters.onnx.reading.node import Operator

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "": (
        "elementwise.elementwise",
        "arrays.shapes",
        "elementwise.activations",
        "elementwise.bits",
        "elementwise.quantization",
        "arrays.joining",
        "arrays.indexing",
        "arrays.scattering",
        "sums.reductions",
        "sums.contraction",
        "sums.normalization",
        "sums.losses",
        "attention.attention",
        "attention.rotary",
        "windows.convolution",
        "windows.pooling",
        "sampling.resizing",
        "sampling.sampling",
        "windows.regions",
        "sampling.signal",
        "control_flow.control_flow",
        "control_flow.recurrent",
        "arrays.sequences",
        "refused",
    ),
    "ai.onnx.ml": ("machine_learning.machine_learning", "machine_learning.support_vectors", "machine_learning.tree_ensembles"),
    "ai.onnx.preview.training": ("training",),
    "com.microsoft": ("contrib", "attention.contrib_attention"),
}
"""The modules of a domain's operators: each has OPERATORS, by name, and perhaps REFUSED, the reasons why others are not read."""


@lru_cache(maxsize=16)
def operators(domain: str) -> Mapping[str, Operator]:
    """The operators of a domain by their names, none for a domain that is not known."""
    return {name: run for family in FAMILIES.get(domain, ()) for name, run in _module(family).OPERATORS.items()}


@lru_cache(maxsize=16)
def refusals(domain: str) -> Mapping[str, str]:
    """The reasons why operators of a domain are not read, by their names."""
    return {name: text for family in FAMILIES.get(domain, ()) for name, text in getattr(_module(family), "REFUSED", {}).items()}


def _module(family: str):  # type: ignore[no-untyped-def]
    return import_module(f"tidu_cli.adapters.onnx.reading.operators.{family}")
