"""Pipelines of transforms as values, which run and which can be told: what the shorthands are made of.

A stage is one command of a pipeline. `tidu_cli.cli` writes stages as commands, so that what a shorthand prints is what it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import Literal
from tidu_cli.transforms import linearize, materialize, matrix, transpose
from tidu_cli.transforms.linking.bind_constants import bind_constants


class Stage(Protocol):
    """One command: from a document to a document."""

    def apply(self, document: Document) -> Document:
        """The command's result. Raises what its transform raises."""
        ...


@dataclass(frozen=True)
class Linearize:
    """`tidu linearize --wrt KEY... --output KEY...`."""

    wrt: tuple[Key, ...]
    outputs: tuple[Key, ...] = ()

    def apply(self, document: Document) -> Document:
        """Append the JVP."""
        return linearize.linearize(document, self.wrt, outputs=self.outputs)


@dataclass(frozen=True)
class Transpose:
    """`tidu transpose`."""

    def apply(self, document: Document) -> Document:
        """Transpose the linear head."""
        return transpose.transpose(document)


@dataclass(frozen=True)
class Matrix:
    """`tidu matrix --holomorphic`."""

    holomorphic: bool = False

    def apply(self, document: Document) -> Document:
        """Replace the linear head by its matrix."""
        return matrix.matrix(document, holomorphic=self.holomorphic)


@dataclass(frozen=True)
class Materialize:
    """`tidu materialize --output KEY... --set KEY=VALUE...`."""

    outputs: tuple[Key, ...] = ()
    fixed: Mapping[Key, Literal] = field(default_factory=dict)

    def apply(self, document: Document) -> Document:
        """Make one graph, with inputs made constants."""
        return materialize.materialize(bind_constants(document, self.fixed), outputs=self.outputs)


class Pipeline:
    """A document, and the stages that it has gone through."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.stages: list[Stage] = []

    def then(self, *stages: Stage) -> Pipeline:
        """Go through more stages. Gives the pipeline itself."""
        for stage in stages:
            self.document = stage.apply(self.document)
            self.stages.append(stage)
        return self
