"""Which function reads an operation: found by its name in the files of families. Why others are not read."""

from __future__ import annotations

from importlib import import_module

from tidu_cli.adapters.stablehlo.reading.site import Reader, RefusedError

COLLECTIVE = "is a collective of several devices; export the module for one"
DYNAMIC = "makes a shape that is only known at run time; export the module with fixed shapes"
EFFECT = "has a side effect, and a graph has none"
ASYNCHRONOUS = "runs beside others, which is for several devices; export the module for one"
RANDOM = "draws random numbers, which would be others each time; make them an input"

REASONS = {
    **dict.fromkeys(
        ["all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute", "cross-replica-sum",
         "partition_id", "reduce_scatter", "replica_id", "send", "recv"], COLLECTIVE),
    **dict.fromkeys(["set_dimension_size", "compute_reshape_shape", "cstr_reshapable"], DYNAMIC),
    **dict.fromkeys(["after_all", "create_token", "infeed", "outfeed", "trace"], EFFECT),
    **dict.fromkeys(["async_start", "async_done"], ASYNCHRONOUS),
    **dict.fromkeys(["tuple", "get_tuple_element"], "is of tuples, for which tidu has no type; return arrays one by one"),
    "rng": RANDOM,
    "rng_bit_generator": "makes bits by an algorithm of the device's; keys of threefry, JAX's default, are arithmetic",
    **dict.fromkeys(["uniform_quantize", "uniform_dequantize"], "is of quantized numbers, for which tidu has no type"),
}  # fmt: skip
"""By the name after the dialect's."""


def reason_for(name: str) -> str:
    """Why an operation is not read."""
    dialect, _, short = name.partition(".")
    if dialect in ("stablehlo", "chlo", "mhlo", "vhlo"):
        return REASONS.get(short, "is not read yet")
    return f"is of the dialect {dialect}, which is not read; lower the module to StableHLO"


FAMILIES = (
    "elementwise",
    "arrays",
    "custom_calls",
    "reductions",
    "control_flow",
    "older",
)
"""The files of families, each with OPERATIONS by name."""

_readers: dict[str, Reader] = {}


def reader_of(name: str) -> Reader:
    """The reader of an operation. Raises RefusedError, which says why there is none."""
    if not _readers:
        for family in FAMILIES:
            _readers.update(import_module(f"{__package__}.{family}").OPERATIONS)
    reader = _readers.get(name)
    if reader is None:
        raise RefusedError(reason_for(name))
    return reader
