"""What JAX adds to the API: its functions as documents, and documents as functions of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, cast

from tidu_cli.arguments import a_function, text
from tidu_cli.errors import ArgumentError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.options import checked
from tidu_cli.transforms.materialize import materialize


@checked(function=a_function, name=text)
def from_jax(
    function: Callable[..., Any], *args: Any, names: Sequence[str] = (), name: str | None = None, rules: bool = True
) -> Document:
    """The graph of a function of JAX, which traces it, at arguments of these types: arrays, numbers, text, also nested.

    Or they are `jax.ShapeDtypeStruct`s. What is nested is a pytree, whose leaves that are no arrays (functions, say) stay what they
    are. Inputs are called as the parameters of the function, or as `names` says, one for each argument, and within pytrees by the
    path: "params.w", "layers.0.b". Symbolic dimensions of `jax.export` become open sizes.
    Dtypes are JAX's: those of 64 bits need `jax.enable_x64(True)`. Functions of `jax.custom_jvp`
    and `jax.custom_vjp` become operations of the document that have the derivatives they define; those of JAX's own, such as relu,
    become nodes with these derivatives. With rules=False what they compute is differentiated. Raises BuildError, with the
    equation and the line, for what has no place in a graph.
    """
    from tidu_cli.adapters.jax.functions.function import from_jax as traced

    return traced(function, *args, names=names, name=name, rules=rules)


@checked()
def to_jax(document: Document, output: str | Key | Sequence[str | Key] = ()) -> Callable[..., Any]:
    """The head's outputs (or `output`) as a function of JAX, to be called, or given to jax.jit, jax.grad, jax.vmap and the like.

    It takes the inputs in the order of the document, or by name, or in one dict by key, {"x@-1": ...}; those that no output depends
    on may be left out. It gives the output, or a dict of several by the text of their keys. Arrays have the declared shape, and its
    dtype or one of which it has all values; Python's numbers have any.
    Open sizes are those of the arrays that are given. Records are dicts of their fields, tuples are tuples;
    datetimes are given as in `evaluate`, and are counts of their unit in i64, durations in f64.

    Derivatives are JAX's, by its conventions: cotangents of complex numbers are the conjugates of those that `vjp` gives. Of
    primitives that JAX cannot differentiate they are computed by the rules of tidu. What has 64 bits needs
    jax.config.update("jax_enable_x64", True), or jax.enable_x64(True) around the call. Raises UnknownNameError, TransformError,
    MissingRuleError for what only NumPy computes, ArgumentError where JAX is missing; and what is made EvaluationError for inputs
    that do not fit.
    """
    if find_spec("jax") is None:
        raise ArgumentError("functions of JAX need the package jax: pip install 'tidu[jax]'")
    from tidu_cli.adapters.jax.lowering.calling import jax_callable

    return jax_callable(materialize(document, outputs=cast("list[Key]", output)).head)
