"""Open sizes in modules: cases of them as JAX lowers them at symbolic dimensions, and the @main that jax.export has for these.

That computes sizes from the shapes of its arguments, asserts what is said of them, and calls a function that takes sizes first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.jax.dims import dims_of, scope_of, size_name, sizes_of
from tidu_cli.adapters.jax.lowering.functions import jax_function
from tidu_cli.adapters.stablehlo import text as mlir
from tidu_cli.errors import MissingRuleError, Remedy
from tidu_cli.graph.graph import Case, Document
from tidu_cli.graph.open_sizes import names_in_case, open_names
from tidu_cli.graph.sizes.algebra import Name, size_named, way_to_fix
from tidu_cli.rules.vocabulary import PrimitiveSet


def open_module(case: Case, primitives: PrimitiveSet, platform: str) -> Any:
    """The module of a case with open sizes: an argument has them as its shape, so that JAX knows all of them.

    Raises ValueError, with what JAX does not do with symbolic dimensions; it has many classes of errors for that.
    """
    from jax.interpreters.mlir import LoweringParameters

    jax, names = mlir.package(), names_in_case(case)
    with jax.enable_x64(True), scope_of(names.values()):
        given = [mlir.shapes_of(t, dims_of) for t in case.operands]
        try:
            function = jax_function(case, primitives)

            def computed(*operands: Any) -> Any:  # which is a function of the module by this name
                return function(*operands)

            inner = jax.jit(computed)
            sizes = jax.ShapeDtypeStruct(dims_of([size_named(name) for name in names.values()]), np.dtype("?"))
            traced = jax.jit(lambda sizes, *operands: inner(*operands), keep_unused=True).trace(sizes, *given)
            mlir.require_types(case, jax.tree.leaves(traced.out_info), lambda shape: sizes_of(dims_of(shape)))
            lowered = traced.lower(lowering_platforms=(platform,), _private_parameters=LoweringParameters(for_export=True))
            return lowered.compiler_ir("stablehlo")
        except (MissingRuleError, RecursionError):
            raise
        except Exception as error:
            raise ValueError(_line(error)) from None


def sizes_first(module: Any) -> tuple[str, list[str]]:
    """The function of such a module that computes the case, and the sizes that it takes before operands."""
    (call, _) = mlir.function_of(module, "main").regions[0].blocks[0].operations
    ((_, (name,)),) = mlir.symbols_in(call.operation)
    return name, [size_name(text) for text in mlir.global_constants(mlir.function_of(module, name)) if text]


def way_out(case: Case) -> Remedy:
    """How a size of a case is given a number, so that it has fixed ones."""
    return way_to_fix(min(names_in_case(case)))


class Wrapper:
    """What @main is made of: JAX's operations for sizes, and a call."""

    def __init__(
        self, document: Document, arguments: Sequence[str], named: Callable[[Sequence[tuple[str, str]]], Sequence[str]]
    ) -> None:
        """For arguments of these types; `named` gives names of a module's to functions.

        Raises UnwrittenError for sizes that may be 0, which those of jax.export may not, or that JAX does not find by shapes.
        """
        names = open_names(document)
        if empty := sorted(text for text, name in names.items() if name.least < 1):
            what = f": the size {empty[0]} may be 0, and those of jax.export are at least 1; give it that bound, or a number: "
            raise mlir.UnwrittenError(what, way_to_fix(empty[0]))
        exported = _exported(document, names)
        with mlir.package().interpreters.mlir.make_ir_context() as context:
            from jaxlib.mlir.dialects import stablehlo

            module = stablehlo.deserialize_portable_artifact(context, exported)
            self.sizes = [size_name(text) for text in mlir.global_constants(mlir.function_of(module, mlir.WRAPPED)) if text]
            if unsaid := sorted(names.keys() - set(self.sizes)):
                what = f": no argument says what the size {unsaid[0]} is; give it a number first: "
                raise mlir.UnwrittenError(what, way_to_fix(unsaid[0]))
            *functions, _, (_, text) = mlir.functions_of(module, "main")
        _, *lines, call, _, _ = text.strip().splitlines()  # an operation a line, between the head of @main and what it returns
        self.values = re.findall(r"%[\w#]+", call)[: len(self.sizes)]
        text = "\n".join(lines)
        for k, name in enumerate(named(functions)):
            text = text.replace(f"@{mlir.CALLED.format(k)}", f"@{name}")
        self.text = text
        self.arguments = arguments

    def pieces(self, results: Sequence[str]) -> Iterator[str]:
        """The text from the first operation of @main to the head of the function that it calls, for results of these types."""
        names = [f"%arg{k}" for k in range(len(self.arguments))]
        types = ", ".join([*[mlir.SIZE] * len(self.sizes), *self.arguments])
        returned = ["%results"] if len(results) == 1 else [f"%results#{k}" for k in range(len(results))]
        left = "" if not results else "%results = " if len(results) == 1 else f"%results:{len(results)} = "
        yield f"{self.text}\n"
        yield f"{left}func.call @{mlir.WRAPPED}({', '.join([*self.values, *names])}) : ({types}) -> ({', '.join(results)})\n"
        yield f"return {', '.join(returned)}{' : ' if results else ''}{', '.join(results)}\n}}\n"
        taken = [f"{mlir.size_value(name)}: {mlir.SIZE} {{{mlir.GLOBAL_CONSTANT} = {mlir.quoted(name)}}}" for name in self.sizes]
        taken += [f"{name}: {type_}" for name, type_ in zip(names, self.arguments, strict=True)]
        yield f"func.func private @{mlir.WRAPPED}({', '.join(taken)}) -> ({', '.join(results)}) {{\n"


def _exported(document: Document, names: Mapping[str, Name]) -> bytes:
    """A function of the document's inputs, as jax.export writes it. Raises UnwrittenError."""
    jax = mlir.package()
    from jax import export

    with jax.enable_x64(True), scope_of(names.values()):
        try:
            given = [mlir.shapes_of(i.type, dims_of) for i in document.free_inputs]
            exported = export.export(jax.jit(lambda *values: (), keep_unused=True), platforms=("cpu",))(*given)
        except Exception as error:
            message = _line(error)
            if unsolved := sorted(re.findall(r"'(\w+)'", message)) if message.startswith("Cannot solve") else []:
                message = f"JAX does not solve the shapes of arguments for the size {size_name(unsolved[0])}"
            raise mlir.UnwrittenError(
                f": {message}; give it a number first: ", way_to_fix((unsolved or sorted(names))[0])
            ) from None
    return exported.mlir_module_serialized


def _line(error: Exception) -> str:
    """What an error of JAX says, in one sentence; of tidu without ways out, which are the caller's to name."""
    return re.split(r"\. |; give |\.?$", " ".join(str(error).split()))[0][:300] or type(error).__name__
