"""Nodes with attributes, shapes and dtypes by chance: each is read, as recorded so folded, or refused in one line."""

import numpy as np
import onnx
import pytest

from tests.onnx.operators.one_node import One, by_tidu, draw, require_equal, versions
from tests.tiers import few
from tidu_cli.adapters.onnx.reading.operators import elementwise, indexing, joining, normalization, quantization, reductions, shapes
from tidu_cli.adapters.onnx.reading.operators.networks import attention
from tidu_cli.errors import TiduError

FAMILIES = (attention, elementwise, indexing, joining, normalization, quantization, reductions, shapes)
APART = {"QLinearConv", "QLinearMatMul", "SimplifiedLayerNormalization", *joining.TAKING}
"""Those that other tests try: `TAKING` gives sequences, which graphs do not."""

OPS = [op for family in FAMILIES for op in family.OPERATORS if op not in APART]
TEXTS = ("LEFT", "RIGHT", "reflect", "edge", "add", "mul", "none", "tanh", "CRD", "circular", "wrap", "nothing of that")
KINDS = onnx.defs.OpSchema.AttrType


def value(rng, kind):
    """An attribute by chance, None for kinds that none of these operators has much to do with."""
    if kind == KINDS.INT:
        return int(rng.choice([-(2**63), -3, -1, 0, 1, 2, 3, 7, 2**31]))
    if kind == KINDS.FLOAT:
        return float(rng.choice([0, 1, -1, 0.5, np.inf, np.nan]))
    if kind == KINDS.INTS:
        return rng.integers(-3, 4, rng.integers(1, 5)).tolist()
    return str(rng.choice(TEXTS)) if kind == KINDS.STRING else None


def operand(rng, first):
    dtype = np.dtype(rng.choice(["f4", "f8", "i8", "i4", "u1", "?", "f2"]) if rng.random() < 0.4 else "f4" if first else "i8")
    x = np.asarray(draw(rng, dtype, rng.integers(0, 4, rng.integers(0, 4))))
    if rng.random() < 0.1 and dtype.kind == "i" and x.size:
        x.flat[0] = rng.choice([np.iinfo(dtype).min, np.iinfo(dtype).max, 2**20])
    return x


def node(seed):
    rng = np.random.default_rng(seed)
    op = OPS[seed % len(OPS)]
    version = int(rng.choice(versions(op)))
    schema = onnx.defs.get_schema(op, version)
    n = rng.integers(schema.min_input, min(schema.max_input, 5) + 1)
    operands = [None if rng.random() < 0.05 else operand(rng, k == 0) for k in range(n)]
    attrs = {name: value(rng, a.type) for name, a in schema.attributes.items() if a.required or rng.random() < 0.5}
    return One(op, operands, {k: v for k, v in attrs.items() if v is not None}, version, max(schema.min_output, 1))


def outcome(one, fold):
    """What is computed, or why it is refused."""
    try:
        return by_tidu(one, fold)
    except TiduError as error:
        return str(error)


@pytest.mark.check
@pytest.mark.parametrize("start", few(range(0, 600, 100), 1))
def test_nodes_by_chance(start):
    for one in map(node, range(start, start + 100)):
        outcomes = [outcome(one, fold) for fold in (False, True)]
        if not any(isinstance(x, str) for x in outcomes):
            require_equal(*outcomes, str(one), 1e-5, 1e-5)
        for told in (x for x in outcomes if isinstance(x, str)):
            assert "\n" not in told and (f"({one.op}): " in told or "more than the limit" in told), f"{one}: {told}"
