"""The lowerings of all primitives, by name."""

from __future__ import annotations

from collections.abc import Mapping

from tidu_cli.adapters.onnx.writing import arrays, bits, control_flow, elementwise, indexing, linear_algebra, reductions, windows
from tidu_cli.adapters.onnx.writing.lowering import Rule

LOWERINGS: Mapping[str, Rule] = {
    name: rule
    for family in (arrays, bits, control_flow, elementwise, indexing, linear_algebra, reductions, windows)
    for name, rule in family.LOWERINGS.items()
}
"""How primitives are written; `constant` is an initializer."""
