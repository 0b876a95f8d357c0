"""Derivatives of any order of one primitive, through the transforms: what a rule emits must itself have rules that hold."""

from __future__ import annotations

import numpy as np

from tests.graphs.interpret import evaluate
from tests.graphs.templates import make_case, type_of
from tidu_cli.checking.numeric.trials import one_node_document
from tidu_cli.graph.keys import Key
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose


class Orders:
    """A primitive at a point. Operands that carry tangents are differentiated, unless `wrt` says which (by position)."""

    def __init__(self, op, operands, wrt=None, **attrs):
        operands = [np.asarray(x) for x in operands]
        self.document = one_node_document(make_case(op, attrs, map(type_of, operands)))
        inexact = [k for k, x in enumerate(operands) if type_of(x).inexact]
        self.wrt = [Key(f"x{k}") for k in (inexact if wrt is None else wrt)]
        self.at = {Key(f"x{k}"): x for k, x in enumerate(operands)}
        self.outputs = self.document.head.outputs

    def _along(self, *directions):
        tangents = {}
        for number, direction in enumerate(directions, start=1):
            tangents |= {key.tangent(number): np.asarray(t) for key, t in zip(self.wrt, direction, strict=True)}
        return self.at | tangents

    def jvp(self, *directions, output=0):
        """The derivative of as many orders as there are directions (each a list, of a tangent per active operand)."""
        document, key = self.document, self.outputs[output].key
        for number, _ in enumerate(directions, start=1):
            document, key = linearize(document, self.wrt), key.tangent(number)
        return self._evaluate(document, self._along(*directions), [key])[0]

    def vjp(self, *cotangents):
        """The cotangents of the active operands, for one cotangent of each output that carries one."""
        document = transpose(linearize(self.document, self.wrt))
        keys = [o.key for o in self.outputs if o.type.inexact]
        given = self.at | {key.cotangent(1): np.asarray(c) for key, c in zip(keys, cotangents, strict=True)}
        return self._evaluate(document, given, [key.cotangent(1) for key in self.wrt])

    def hvp(self, cotangent, direction):
        """Forward over reverse: how the cotangents move with the operands."""
        document = linearize(transpose(linearize(self.document, self.wrt)), self.wrt)
        given = self.at | {self.outputs[0].key.cotangent(1): np.asarray(cotangent)}
        given |= {key.tangent(2): np.asarray(t) for key, t in zip(self.wrt, direction, strict=True)}
        return self._evaluate(document, given, [key.cotangent(1).tangent(2) for key in self.wrt])

    def ror(self, cotangent, outer):
        """Reverse over reverse, with `outer` a cotangent of each operand's cotangent."""
        document = transpose(linearize(transpose(linearize(self.document, self.wrt)), self.wrt))
        given = self.at | {self.outputs[0].key.cotangent(1): np.asarray(cotangent)}
        given |= {key.cotangent(1).cotangent(2): np.asarray(c) for key, c in zip(self.wrt, outer, strict=True)}
        return self._evaluate(document, given, [key.cotangent(2) for key in self.wrt])

    def _evaluate(self, document, given, keys):
        with np.errstate(all="ignore"):
            values = evaluate(document, given, keys)
        return [values[key] for key in keys]
