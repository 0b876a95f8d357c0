"""Formulas and functions of NumPy behind the port of sources."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tidu_cli.adapters.numpy.parameters import free_names, functions_of, parameters_of
from tidu_cli.graph.graph import Document
from tidu_cli.port_data import Data, Given


class _Formula:
    """A formula of NumPy's operators and functions."""

    def names(self, text: str) -> Collection[str]:
        """The names that it reads."""
        return free_names(text)

    def functions(self, file: str) -> Mapping[str, str]:
        """None: formulas are no files."""
        return {}

    def build(
        self, text: str, given: Mapping[str, Given], *, data: Data | None, name: str | None, outputs: Sequence[str], **how: Any
    ) -> Document:
        """As `build_formula` does."""
        from tidu_cli.adapters.numpy.formulas.formula import build_formula

        return build_formula(text, given, data=data, outputs=outputs, name=name or "f", **how)

    def written(self, document: Document) -> str:
        """The head as a formula: as `formula_of` does."""
        from tidu_cli.adapters.numpy.formulas.formula import formula_of

        return formula_of(document)

    def notes(self, document: Document) -> Sequence[str]:
        """None."""
        return ()


class _Function:
    """FILE.py:FUNCTION, a function of NumPy, which is run."""

    def names(self, text: str) -> Collection[str] | None:
        """Its parameters; any if it takes **others, or is not there."""
        file, _, name = text.rpartition(":")
        function = functions_of(file).get(name)
        return None if function is None or function.args.kwarg else parameters_of(function)

    def functions(self, file: str) -> Mapping[str, str]:
        """Those that the file defines, in order, with their docstrings."""
        return {name: ast.get_docstring(node) or "" for name, node in functions_of(file).items()}

    def build(
        self, text: str, given: Mapping[str, Given], *, data: Data | None, name: str | None, outputs: Sequence[str], **how: Any
    ) -> Document:
        """As `build_function` does."""
        from tidu_cli.adapters.numpy.errors import BuildError
        from tidu_cli.adapters.numpy.tracing import build_function

        try:
            return build_function(text, given, data=data, name=name, outputs=outputs, **how)
        except BuildError as error:
            if "valid JAX type" not in str(error):
                raise
            raise BuildError(f"{str(error).rstrip('.')}; of a function of JAX say so, with --jax") from error

    def written(self, document: Document) -> str:
        """Graphs are not written as functions."""
        from tidu_cli.adapters.numpy.errors import BuildError

        raise BuildError("a graph is written as a formula, and not as a function; tidu show --formula writes it")

    def notes(self, document: Document) -> Sequence[str]:
        """That a loop of Python has been unrolled, if it was long."""
        from tidu_cli.adapters.numpy.tracing import repetition

        if not (repeated := repetition(document.head)):
            return ()
        turns, nodes = repeated
        return (f"{nodes:,} nodes repeat {turns:,} times; tidu.scan keeps such a loop as one node, for all numbers of steps",)


FORMULA, FUNCTION = _Formula(), _Function()
