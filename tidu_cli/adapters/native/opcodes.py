"""The table of opcodes: what the machine computes of scalars, by operation and dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from llvmlite import ir

Value = Any
"""A value of LLVM's; of a complex number the pair of its parts."""


class Signature(NamedTuple):
    """What an opcode computes: an operation, with what of its attrs makes another opcode of it, and its dtypes."""

    op: str
    operands: tuple[str, ...]
    result: str


Emit = Callable[..., Value]
"""From an `Emitter` and the values of the operands to that of the result."""

WORD = ir.IntType(64)
_SHORT = ir.IntType(32)
PARTS = {"c128": "f64", "c64": "f32"}
TYPES: dict[str, Any] = {
    "f64": ir.DoubleType(), "f32": ir.FloatType(), "bool": ir.IntType(1),
    **{f"{sign}{n}": ir.IntType(n) for sign in "iu" for n in (8, 16, 32, 64)},
}  # fmt: skip
"""The types of LLVM's in which numbers are computed with."""

FLOATS = ("f64", "f32")
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
COMPLEXES = ("c128", "c64")


class Emitter:
    """Emits the instructions of an opcode: LLVM's builder, and functions of the C library. Values may be vectors of numbers."""

    def __init__(self, builder: Any, functions: dict[str, Any]) -> None:
        self.b = builder
        self._functions = functions

    def constant(self, like: Value, number: float | int) -> Value:
        """A number of the type of a value."""
        return ir.Constant(like.type, [number] * like.type.count if isinstance(like.type, ir.VectorType) else number)

    def intrinsic(self, name: str, *values: Value, result: Any = None) -> Value:
        """A call of LLVM's intrinsic, by name without the types that follow it; of that element type, where it is another."""
        types = [v.type for v in values]
        given = types[0] if result is None else over(types[0], result)
        suffix = ".".join(map(_suffix, [given] if result is None else [given, types[0]]))
        return self.b.call(self._function(f"{name}.{suffix}", given, types), values)

    def libm(self, name: str, *values: Value) -> Value:
        """A call of a function of the C library of doubles; of floats it is rounded from there."""
        double = TYPES["f64"]
        wide = [v if v.type == double else self.b.fpext(v, double) for v in values]
        result = self.b.call(self._function(name, double, [double] * len(wide)), wide)
        return result if values[0].type == double else self.b.fptrunc(result, values[0].type)

    def special(self, name: str, *values: Value) -> Value:
        """A call of one of SciPy's functions of doubles, whose address the variable `special_NAME` of the module holds."""
        double, module = TYPES["f64"], self.b.module
        if name not in self._functions:
            self._functions[name] = ir.GlobalVariable(module, WORD, f"special_{name}")
            self._functions[name].initializer = ir.Constant(WORD, 0)
        type_ = ir.FunctionType(double, [double] * len(values) + [_SHORT])
        function = self.b.inttoptr(self.b.load(self._functions[name]), type_.as_pointer())
        return self.b.call(function, [*values, ir.Constant(_SHORT, 0)])  # the last one is Cython's

    def _function(self, name: str, result: Any, types: list[Any]) -> Any:
        if name not in self._functions:
            module = self.b.module
            self._functions[name] = ir.Function(module, ir.FunctionType(result, types), name)
        return self._functions[name]


def over(like: Any, element: Any) -> Any:
    """The type of as many of these elements as another type has."""
    return ir.VectorType(element, like.count) if isinstance(like, ir.VectorType) else element


def _suffix(type_: Any) -> str:
    if isinstance(type_, ir.VectorType):
        return f"v{type_.count}{_suffix(type_.element)}"
    if isinstance(type_, ir.IntType):
        return f"i{type_.width}"
    return "f64" if isinstance(type_, ir.DoubleType) else "f32"


def same(op: str, dtypes: Iterable[str], arity: int, emit: Emit, result: str = "") -> dict[Signature, Emit]:
    """The entries of an operation whose operands are of one dtype each time, and whose result is of that, or of `result`."""
    return {Signature(op, (dtype,) * arity, result or dtype): emit for dtype in dtypes}
