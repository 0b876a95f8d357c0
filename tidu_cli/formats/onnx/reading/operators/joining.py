"""Arrays joined, cut, padded and repeated."""

from __future__ import annotations

from collections.abc import Mapping

from tidu_cli.formats.onnx.reading.node import Operator

OPERATORS: Mapping[str, Operator] = {}
