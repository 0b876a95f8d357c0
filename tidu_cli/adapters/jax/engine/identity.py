"""What a compiled program depends on, in a digest by which it is found again: graph, versions and machine."""

from __future__ import annotations

import os
import platform
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from tidu_cli import __version__
from tidu_cli.graph.columns.blocks import array_of
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.identity import case_digests

_PACKAGE = Path(__file__).parents[3]


def file_name(graph: Graph, device: Any) -> str:
    """The name of the file that keeps a graph compiled for a device of JAX. Keys are no part of it. Linear in the graph's size."""
    digest = sha256(_surroundings())
    digest.update("\n".join((device.device_kind, device.client.platform_version, str(device.id))).encode())
    # Cases are numbered as they come: numbers in tables depend on what else is in them.
    codes, first, inverse = np.unique(array_of(graph.code), return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), np.int32)
    number[order] = np.arange(len(order))
    of_case = case_digests(graph.cases, codes.tolist())
    for code in codes[order].tolist():
        case = graph.cases[code]
        # As repr has types: of a record str has no more than the name.
        digest.update(of_case[code] + f"{case.operands!r}{case.results!r}\n".encode())
    ends = [[i.type for i in graph.inputs], [(o.type, o.value) for o in graph.outputs], graph.n_nodes]
    digest.update(f"{ends}\n".encode())
    digest.update(number[inverse].tobytes())
    digest.update(array_of(graph.args).astype(np.int32, copy=False).tobytes())
    return f"xla-{digest.hexdigest()[:32]}.bin"


@cache
def _surroundings() -> bytes:
    """All but the graph and the device: versions, what tidu makes of primitives, the processor, and what the environment says."""
    import jax
    import jaxlib.version

    versions = (__version__, jax.__version__, jaxlib.version.__version__, np.__version__, platform.platform(), _processor())
    digest = sha256("\n".join((*versions, str(os.cpu_count()), os.environ.get("XLA_FLAGS", ""))).encode())
    for folder in ("lax", "adapters/jax/lowering", "adapters/jax/engine"):
        for path in sorted((_PACKAGE / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.digest()


def _processor() -> str:
    """Its name and features, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "CPU part", "Features"))}))
