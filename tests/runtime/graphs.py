"""Small graphs for the tests of the runtime, built in memory."""

from __future__ import annotations

from tidu_cli.graph.graph import CaseTable, Input, Output
from tidu_cli.graph.keys import parse_key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.types import parse_type
from tidu_cli.lax.vocabulary import BUILTIN


class Sketch:
    """A graph in the making: `apply` gives local ids, types are kept beside them."""

    def __init__(self, primitives=BUILTIN, **inputs):
        self.primitives = primitives
        self.types = [parse_type(t) for t in inputs.values()]
        self.builder = GraphBuilder(CaseTable(), [Input(parse_key(k), t) for k, t in zip(inputs, self.types, strict=True)])

    def apply(self, op, *reads, mask=None, **attrs):
        case = self.primitives.case(op, self.primitives.parse_attrs(op, attrs), mask, [self.types[r] for r in reads])
        self.types += case.results
        return self.builder.append(self.builder.cases.intern(case), reads)

    def graph(self, **outputs):
        """The finished graph; an output is a local id, or a type's text for a structural zero."""
        return self.builder.build(
            "f",
            [
                Output(parse_key(k), None, parse_type(v)) if isinstance(v, str) else Output(parse_key(k), v, self.types[v])
                for k, v in outputs.items()
            ],
        )
