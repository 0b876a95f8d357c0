"""Stamping templates: what linearize and transpose share.

A rule's template is stamped out for every node of its case. Linear nodes go to one graph under construction, residual nodes to
another. Values are passed about as *handles*: a flat id for values outside the linear graph (of the document, or of the residual
graph, whose new values are numbered on after the document's), and -1-v for local value v of the linear graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.graph import Column, column
from tidu_cli.graph.link import LogicalGraph
from tidu_cli.limits import limits, require
from tidu_cli.rules.recording import Emitted, Template


class Stamper:
    """Two graphs under construction; the residual one is to be graph number `residual_number` of the document."""

    def __init__(self, logical: LogicalGraph, linear: GraphBuilder, residual: GraphBuilder, residual_number: int) -> None:
        self.logical = logical
        self.linear = linear
        self.residual = residual
        self.residual_number = residual_number
        self._n_document = logical.n_values
        self._most = limits().nodes
        # The fields, by name, of records that are put together in the linear graph.
        self.fields: dict[int, dict[str, int]] = {}
        self._closed: dict[Template, list[int]] = {}
        self._constants: dict[tuple[int, ...], list[int]] = {}

    # The argument by which each graph refers to a flat id; 0 where it does not yet, since externals are negative. There are none
    # before something is stamped, since in a large graph nothing is.

    @cached_property
    def _in_linear(self) -> Column[int]:
        return column([0]) * self.logical.n_values

    @cached_property
    def _in_residual(self) -> Column[int]:
        return column([0]) * self.logical.n_values

    def stamp(self, template: Template, sources: Sequence[int]) -> list[int]:
        """Emit the template's nodes for these sources. Gives the whole environment: the handle of every slot. Raises LimitError."""
        environment = [*sources, *self._closed_handles(template)] if template.closed else list(sources)
        linear, imported = self.linear, self._in_linear
        for node in template.nodes:
            if not node.linear:
                environment += self._residual_node(node, [environment[slot] for slot in node.reads])
                continue
            for slot in node.reads:
                handle = environment[slot]
                linear.args.append(-1 - handle if handle < 0 else imported[handle] or self._import_linear(handle))
            linear.code.append(node.code)
            for _ in range(node.n_results):
                environment.append(-1 - linear.n_values)
                linear.n_values += 1
        if linear.n_values + len(self.residual.code) > self._most:
            require("nodes", linear.n_values + len(self.residual.code), "the derivative, so far")
        for slot, fields in template.made:
            self.fields[environment[slot]] = {name: environment[read] for name, read in fields.items()}
        return environment

    def _closed_handles(self, template: Template) -> list[int]:
        handles = self._closed.get(template)
        if handles is None:
            environment = [0] * template.n_sources
            for node in template.closed:
                reads = [environment[slot] for slot in node.reads]
                constant = (node.code, *reads)  # templates of different cases share their constants
                if constant not in self._constants:
                    self._constants[constant] = self._residual_node(node, reads)
                environment += self._constants[constant]
            handles = self._closed[template] = environment[template.n_sources :]
        return handles

    def _residual_node(self, node: Emitted, handles: Sequence[int]) -> list[int]:
        imported, n_document = self._in_residual, self._n_document
        arguments = [h - n_document if h >= n_document else imported[h] or self._import_residual(h) for h in handles]
        first = self.residual.append(node.code, arguments) + n_document
        self._in_linear.extend([0] * node.n_results)
        return list(range(first, first + node.n_results))

    def _import_linear(self, handle: int) -> int:
        is_new = handle >= self._n_document
        reference = (self.residual_number, handle - self._n_document) if is_new else self.logical.origin(handle)
        argument = self._in_linear[handle] = self.linear.refer(*reference)
        return argument

    def _import_residual(self, handle: int) -> int:
        argument = self._in_residual[handle] = self.residual.refer(*self.logical.origin(handle))
        return argument
