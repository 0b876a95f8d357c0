"""What NumPy adds to the API and to the port of sources: functions and formulas as documents, loops and branches in functions.

What does the work is imported where it is called, as a formula needs nothing of the tracing of functions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tidu_cli.adapters.numpy.parameters import free_names, functions_of, parameters_of
from tidu_cli.arguments import (
    a_function,
    anything,
    formula_text,
    maybe_function,
    several_functions,
    several_names,
    text,
    types_by_name,
)
from tidu_cli.graph.graph import Document
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import Type
from tidu_cli.options import checked
from tidu_cli.port_data import Data, Given, Static


@checked(output=text)
def trace(
    function: Callable[..., Any], *args: Any, name: str | None = None, output: str = "y", source: Any = False, **inputs: Any
) -> Document:
    """The graph of a NumPy function of inputs of these types: text, types, arrays or numbers, also nested. Raises BuildError.

    What is no input, but a constant that the function is called with, is `static(value)`; None and functions are so by themselves.
    With `source=True` the meta of each node says which lines of which functions made it: pictures have boxes for these.
    """
    from tidu_cli.adapters.numpy.tracing import trace as traced

    return traced(function, *args, name=name, output=output, source=source, **inputs)


def static(value: Any) -> Static:
    """A constant of Python among the arguments of `trace` and `from_jax`: the function is called with the value.

    For example a number of steps, static(5), an option, static("linear"), or a table, static(table): the graph has no input for it.
    """
    return Static(value)


@checked()
def stop_gradient(x: Any) -> Any:
    """x, of which no derivative is taken: in functions that are traced. Other values are given back as they are.

    >>> tidu.grad(lambda x: x * tidu.stop_gradient(x))(3.0)
    np.float64(3.0)
    """
    from tidu_cli.adapters.numpy.control_flow.bodies import stopped

    return stopped(x)


@checked(formula=formula_text, inputs=types_by_name, output=several_names)
def formula(
    formula: str,
    inputs: Mapping[str, str | Type] | None = None,
    name: str = "f",
    output: str | Sequence[str] = (),
    **more: str | Type,
) -> Document:
    """The graph of a formula of NumPy's operators and functions, as `tidu build` makes it: formula("sum(x**2)", x="f64[3]").

    The types of inputs go by name, in the order in which the graph declares them. `y = ...; z = ...` names several outputs, of
    which `output` chooses. Nothing is executed. Raises BuildError.
    """
    from tidu_cli.adapters.numpy.formulas.formula import build_formula

    types = {
        key: parse_value_type(t) if isinstance(t, str) else t
        for key, t in {**(inputs or {}), **types_by_name("types", more)}.items()
    }
    return build_formula(formula, types, name=name, outputs=output)


@checked(f=a_function)
def scan(f: Callable[..., Any], init: Any, xs: Any = None, length: int | None = None, reverse: bool = False) -> tuple[Any, Any]:
    """The loop `carry, y = f(carry, x)` over the slices x of xs along axis 0: the last carry, and all y, stacked along axis 0.

    With `reverse` it goes from the last slice to the first. Without xs there are `length` steps. The carry, which is `init` first,
    xs and y are arrays, also nested; the carry keeps its types. Where something is traced, in the arguments or in what f closes
    over, f is traced once, and the loop is a node of the graph. Raises BuildError.
    """
    from tidu_cli.adapters.numpy.control_flow.scan import scan as run

    return run(f, init, xs, length, reverse)


@checked(body_fun=a_function)
def fori_loop(lower: Any, upper: Any, body_fun: Callable[..., Any], init_val: Any) -> Any:
    """The loop `val = body_fun(i, val)` for i from lower to upper - 1: the last val, which keeps its types.

    It is a `scan` if the bounds are Python's integers, and if they are traced a `while_loop`. Raises BuildError.
    """
    from tidu_cli.adapters.numpy.control_flow.scan import fori_loop as run

    return run(lower, upper, body_fun, init_val)


@checked(cond_fun=a_function, body_fun=a_function)
def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """The loop `val = body_fun(val)` while `cond_fun(val)`: the last val, which keeps its types.

    It is differentiated in forward mode only, as how often it runs is not known before. Raises BuildError.
    """
    from tidu_cli.adapters.numpy.control_flow.while_loop import while_loop as run

    return run(cond_fun, body_fun, init_val)


@checked(true_fun=a_function, false_fun=a_function)
def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """true_fun(*operands) if pred, else false_fun(*operands), of which the graph runs one; both give the same types.

    pred is a bool, or a number, which is true unless it is 0. Raises BuildError.
    """
    from tidu_cli.adapters.numpy.control_flow.while_loop import cond as run

    return run(pred, true_fun, false_fun, *operands)


@checked(branches=several_functions)
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """branches[index](*operands), of which the graph runs one; index is clamped, and all give the same types. Raises BuildError."""
    from tidu_cli.adapters.numpy.control_flow.while_loop import switch as run

    return run(index, branches, *operands)


@checked(f=a_function, solve=maybe_function, tangent_solve=maybe_function)
def root(
    f: Callable[..., Any], x0: Any, solve: Callable[..., Any] | None = None, tangent_solve: Callable[..., Any] | None = None
) -> Any:
    """An x with f(x) = 0, near the first guess x0: an array or nested ones, which f takes and gives.

    Derivatives are those of the implicit function, in both modes and of any order, whatever solves the equation: they take no
    memory for its steps, and x0 has none. `solve(f, x0)` gives x, by default Newton's method; `tangent_solve(g, b)` gives the t of
    g(t) = b, where g is the derivative of f, by default by its matrix. What does not converge by these defaults is NaN.
    `root(lambda x: x**2 - a, 1.0)` is the square root of a. Raises BuildError.
    """
    from tidu_cli.adapters.numpy.control_flow.implicit import root as run

    return run(f, x0, solve, tangent_solve)


@checked(f=a_function, solve=maybe_function, tangent_solve=maybe_function)
def fixed_point(
    f: Callable[..., Any], x0: Any, solve: Callable[..., Any] | None = None, tangent_solve: Callable[..., Any] | None = None
) -> Any:
    """An x with f(x) = x, near the first guess x0: an array or nested ones, which f takes and gives.

    Derivatives are those of the root of x - f(x), of any order and in both modes. `solve(f, x0)` gives x; by default f is applied
    until x moves no more, and x is NaN where it still does after 10,000 steps. `tangent_solve(g, b)` gives the t of g(t) = b, where
    g is the derivative of x - f(x), by default by its matrix. Raises BuildError.
    """
    from tidu_cli.adapters.numpy.control_flow.implicit import fixed_point as run

    return run(f, x0, solve, tangent_solve)


@checked(matvec=a_function, b=anything, solve=maybe_function, transpose_solve=maybe_function)
def linear_solve(
    matvec: Callable[..., Any], b: Any, solve: Callable[..., Any] | None = None, transpose_solve: Callable[..., Any] | None = None
) -> Any:
    """The x with matvec(x) = b, where matvec is linear: an array or nested ones, of the types of b.

    `solve(matvec, b)` gives x, and `transpose_solve(vecmat, b)` the solution of the transposed system, which reverse mode takes. By
    default both are solved by the matrix, of more than 2048 unknowns by conjugate gradients, which give NaN where they do not
    converge. Derivatives are solutions again, and take no memory for the steps of a solver. Raises BuildError.
    """
    from tidu_cli.adapters.numpy.control_flow.implicit import linear_solve as run

    return run(matvec, b, solve, transpose_solve)


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
