"""Files of StableHLO, read by the MLIR of jaxlib: a program of its own, as a foreign parser may end the process that calls it.

    python -m tidu_cli.adapters.stablehlo.parsing KIND < file > plain data as msgpack

KIND is text, bytecode or export. `parsed` of `module.py` runs it. Nothing of tidu is imported here but the words of limits: a
process should begin fast.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

MOST_LEVELS = 64
"""How deep regions may stand within one another."""

DTYPES = {"i1": "bool", "f16": "f16", "bf16": "bf16", "f32": "f32", "f64": "f64", "complex<f32>": "c64", "complex<f64>": "c128"}
DTYPES |= {f"{prefix}i{bits}": f"{sign}{bits}" for prefix, sign in (("", "i"), ("s", "i"), ("u", "u")) for bits in (8, 16, 32, 64)}
"""Our names of dtypes by MLIR's names of element types."""


class ModuleError(Exception):
    """What is wrong with a file, in words."""


def plain(data: bytes, kind: str) -> dict[str, Any]:
    """The module in some bytes as plain data: see `module.py`. Raises ModuleError."""
    from jaxlib.mlir import ir

    names: list[str] = []
    if kind == "export":
        data, names = _exported(data)
    context = _context(ir)
    with context:
        try:
            module = _parsed(ir, context, data, kind)
        except ir.MLIRError as error:
            raise ModuleError(_diagnosis(error)) from None
        except (ValueError, RuntimeError, MemoryError, RecursionError) as error:  # what the bindings raise of damaged bytecode
            raise ModuleError(f"is a module that MLIR cannot read: {error or type(error).__name__}") from None
        try:
            return {**as_plain(module), "names": names}
        except (ValueError, RuntimeError, MemoryError, RecursionError, LookupError, TypeError, AttributeError) as error:
            raise ModuleError(f"is a module with a part that is not read: {error or type(error).__name__}") from None


def as_plain(module: Any, places: bool = True) -> dict[str, Any]:
    """A module of MLIR as plain data, in whose context this is, with `places` or without. Raises ModuleError."""
    from jaxlib.mlir import ir

    return _Walk(ir, places).module(module)


def _context(ir: Any) -> Any:
    """A context that knows what JAX writes. Operations of others are read, and refused by name later."""
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, mhlo, sdy, stablehlo

    context, registry = ir.Context(), ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.enable_multithreading(False)
    context.allow_unregistered_dialects = True
    context.load_all_available_dialects()
    sdy.register_dialect(context)
    mhlo.register_mhlo_dialect(context)
    chlo.register_dialect(context)
    stablehlo.register_dialect(context)
    return context


def _parsed(ir: Any, context: Any, data: bytes, kind: str) -> Any:
    if kind == "text":
        return ir.Module.parse(data)
    from jaxlib.mlir.dialects import stablehlo

    if b"StableHLO_v" not in data[:64]:
        return ir.Module.parse(data)
    try:
        return stablehlo.deserialize_portable_artifact(context, data)
    except ValueError:
        newest = stablehlo.get_current_version()
        raise ModuleError(f"is a damaged artifact of StableHLO, or one of a version that is newer than {newest}") from None


def _exported(data: bytes) -> tuple[bytes, list[str]]:
    """The module of a file of jax.export, and names for its arguments: 0, or 0.w of a dict."""
    import jax
    from jax import export

    try:
        exported = export.deserialize(bytearray(data))
    except ImportError:  # of a package that JAX itself does not bring
        raise ImportError("flatbuffers") from None
    except Exception as error:
        raise ModuleError(f"is not a complete file of jax.export: {error or type(error).__name__}") from None
    tree = jax.tree_util.tree_unflatten(exported.in_tree, list(range(len(exported.in_avals))))
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in jax.tree_util.tree_leaves_with_path(tree)]
    kept = set(exported.module_kept_var_idx)
    # Of a pair of positional arguments and those by name the first part says no more than which.
    return exported.mlir_module_serialized, [name.partition(".")[2] for k, name in enumerate(names) if k in kept]


def _diagnosis(error: Any) -> str:
    """The first diagnosis of MLIR, after the line and column that it is of."""
    for diagnosis in error.error_diagnostics:
        message = " ".join(str(diagnosis.message).split())
        place = _place(diagnosis.location)
        return f"{place}: {message}" if place else message
    return " ".join(str(error).split())


def _place(location: object) -> str:
    """A location in a few words: 41:5 of a place in the text itself, model.py:3:1 of one in the program that wrote it."""
    match = re.search(r'"([^"]*)":(\d+:\d+)', str(location))  # of callers the innermost comes first
    if match is None:
        return ""
    return match[2] if match[1] == "-" else f"{match[1]}:{match[2]}"


def _once(known: dict[Any, T], key: Any, read: Callable[[Any], T]) -> T:
    """What is read of this, which is kept among what is known."""
    if key not in known:
        known[key] = read(key)
    return known[key]


class _Walk:
    """A walk over a module: what attributes, types and places are is worked out once."""

    def __init__(self, ir: Any, places: bool) -> None:
        self.ir = ir
        self.places = places
        self.attributes: dict[Any, Any] = {}
        self.types: dict[Any, str] = {}
        self.locations: dict[Any, str] = {}
        self.labels: dict[str, list[str]] = {}
        # Nothing here refers to the walk: in a cycle, arrays and the module's context would stay until the next collection.
        self.readers: dict[Any, Callable[[_Walk, Any], Any]] = {
            ir.BoolAttr: lambda walk, a: bool(a.value),
            ir.IntegerAttr: lambda walk, a: int(a.value),
            ir.FloatAttr: lambda walk, a: float(a.value),
            ir.StringAttr: lambda walk, a: a.value_bytes.decode(errors="replace"),
            ir.FlatSymbolRefAttr: lambda walk, a: a.value,
            ir.UnitAttr: lambda walk, a: True,
            ir.TypeAttr: lambda walk, a: walk.type(a.value),
            **dict.fromkeys((ir.DenseI64ArrayAttr, ir.DenseI32ArrayAttr, ir.DenseBoolArrayAttr), lambda walk, a: list(a)),
            ir.ArrayAttr: lambda walk, a: [walk.attribute(x) for x in a],
            ir.DictAttr: lambda walk, a: {entry.name: walk.attribute(entry.attr) for entry in a},
            ir.DenseElementsAttr: _Walk._elements,
        }

    def module(self, module: Any) -> dict[str, Any]:
        operation = module.operation
        attributes = {a: self.attribute(operation.attributes[a]) for a in operation.attributes}
        functions = []
        for op in operation.regions[0].blocks[0].operations:
            if op.operation.name == "sdy.mesh":  # how devices are arranged, of which there is one here
                continue
            if op.operation.name != "func.func":
                raise ModuleError(f"{self.place(op.operation)}: has {op.operation.name} beside functions, which is not read")
            functions.append(self.function(op.operation))
        name = str(attributes.pop("sym_name", ""))
        return {"name": name, "attributes": attributes, "functions": functions, "labels": self.labels}

    def function(self, op: Any) -> list[Any]:
        name = self.ir.StringAttr(op.attributes["sym_name"]).value
        blocks = list(op.regions[0].blocks)
        if len(blocks) != 1:
            raise ModuleError(f"function @{name} has {len(blocks)} blocks, where one is read")
        kind = self.ir.FunctionType(self.ir.TypeAttr(op.attributes["function_type"]).value)
        public = "sym_visibility" not in op.attributes or self.ir.StringAttr(op.attributes["sym_visibility"]).value == "public"
        results = [self.type(t) for t in kind.results]
        if self.places and public:  # what the program calls arguments is where they are from, for those who look at the text
            self.labels[name] = [str(getattr(a.location, "name_str", "")) for a in blocks[0].arguments]
        attributes = [self.of_ports(op, "arg_attrs", len(kind.inputs)), self.of_ports(op, "res_attrs", len(results))]
        return [name, public, *attributes, results, self.block(blocks[0], {}, 0)]

    def of_ports(self, op: Any, name: str, n: int) -> Any:
        return self.attribute(op.attributes[name]) if name in op.attributes else [{}] * n

    def block(self, block: Any, numbers: dict[Any, int], level: int) -> list[Any]:
        if level > MOST_LEVELS:
            raise ModuleError(f"regions stand within one another deeper than {MOST_LEVELS} levels")
        first = len(numbers)
        for argument in block.arguments:
            numbers[argument] = len(numbers)
        operations, results = [], []
        for view in block.operations:
            op = view.operation
            operands = [numbers[v] for v in op.operands]
            if op.name in ("func.return", "stablehlo.return", "mhlo.return", "chlo.return"):
                results = operands
                continue
            regions = [self.region(op, region, numbers, level) for region in op.regions]
            its_first = len(numbers)
            for result in op.results:
                numbers[result] = len(numbers)
            try:
                attributes = {a: self.attribute(op.attributes[a]) for a in op.attributes}
            except TypeError:
                attributes = self._constant(op)
            types = [self.type(r.type) for r in op.results]
            operations.append([op.name, operands, its_first, types, attributes, regions, self.place(op) if self.places else ""])
        return [first, [self.type(a.type) for a in block.arguments], operations, results]

    def region(self, op: Any, region: Any, numbers: dict[Any, int], level: int) -> list[Any]:
        blocks = list(region.blocks)
        if len(blocks) != 1:
            raise ModuleError(f"{self.place(op)}: a region of {op.name} has {len(blocks)} blocks, where one is read")
        return self.block(blocks[0], numbers, level + 1)

    def place(self, op: Any) -> str:
        return _once(self.locations, op.location, _place)

    def type(self, type_: Any) -> str:
        """Our own text of an array's type; of others MLIR's."""
        return _once(self.types, type_, self._type)

    def attribute(self, attribute: Any) -> Any:
        """An attribute as numbers, texts, lists and dicts; arrays as {type, data}, or {type, splat} of one element repeated."""
        return _once(self.attributes, attribute, self._attribute)

    def _type(self, type_: Any) -> str:
        if isinstance(type_, self.ir.RankedTensorType) and type_.has_static_shape:
            dtype = DTYPES.get(str(type_.element_type))
            if dtype is not None:
                return f"{dtype}[{','.join(map(str, type_.shape))}]"
        return str(type_)

    def _attribute(self, a: Any) -> Any:
        for kind, read in self.readers.items():
            if isinstance(a, kind):
                return read(self, a)
        return self._dialect(a)

    def _elements(self, a: Any) -> dict[str, Any]:
        import numpy as np

        type_ = self.type(a.type)
        try:
            array = np.asarray(a)  # strides of 0 where one element is repeated, so that this takes no memory
        except TypeError:
            return dense(str(a), type_)
        return {"type": type_, "splat": array.flat[0].tobytes()} if a.is_splat else {"type": type_, "data": array.tobytes()}

    def _constant(self, op: Any) -> dict[str, Any]:
        """The attributes of an operation that has an array of complex numbers, which the bindings have no class for."""
        text = op.get_asm(print_generic_op_form=True)
        return {"value": dense(text[text.index("dense<") :], self.type(op.results[0].type))}

    def _dialect(self, a: Any) -> Any:
        from jaxlib.mlir.dialects import stablehlo

        for kind, names in NUMBERS.items():
            if getattr(stablehlo, kind).isinstance(a):
                attribute = getattr(stablehlo, kind)(a)
                return {name: _number(getattr(attribute, name)) for name in names}
        text = str(a)
        if text.startswith(("#stablehlo<", "#chlo<", "#mhlo<")):
            return text.partition("<")[2][:-1].split(" ")[-1]
        return text


def _number(value: Any) -> Any:
    return list(value) if isinstance(value, Sequence) else value


def dense(text: str, type_: str) -> dict[str, Any]:
    """An array of numbers that NumPy has none of, from MLIR's text of it: dense<[(1.0, 2.0)]> : tensor<1xcomplex<f64>>."""
    import ml_dtypes
    import numpy as np

    real: Any = {"bf16": ml_dtypes.bfloat16, "c64": np.float32, "c128": np.float64}.get(type_.partition("[")[0])
    if real is None:
        return {"type": type_, "text": text[:80]}
    content = text.removeprefix("dense<").partition("> : ")[0]
    if content.startswith('"0x'):
        return {"type": type_, "data": bytes.fromhex(content[3:-1])}
    part = np.dtype(f"u{np.dtype(real).itemsize}")
    numbers = [
        np.array(int(word, 16), part).view(real) if word.startswith("0x") else np.array(float(word)).astype(real)
        for word in re.findall(r"0x[0-9A-Fa-f]+|[-+.0-9eE]+", content)
    ]
    return {"type": type_, "data" if content.startswith("[") or not content else "splat": b"".join(n.tobytes() for n in numbers)}


NUMBERS: Mapping[str, Sequence[str]] = {
    "DotDimensionNumbers": (
        "lhs_batching_dimensions", "rhs_batching_dimensions", "lhs_contracting_dimensions", "rhs_contracting_dimensions"),
    "GatherDimensionNumbers": (
        "offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims", "start_index_map",
        "index_vector_dim"),
    "ScatterDimensionNumbers": (
        "update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims",
        "scattered_dims_to_operand_dims", "index_vector_dim"),
    "ConvDimensionNumbers": (
        "input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions",
        "kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions",
        "output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"),
}  # fmt: skip
"""The fields of attributes that say which axes are which."""


def main(kind: str) -> None:
    """Read stdin and write what it holds to stdout: the module, or {"error": message}."""
    import msgpack

    try:
        answer = plain(sys.stdin.buffer.read(), kind)
    except ImportError as error:
        answer = {"missing": str(error)}
    except ModuleError as error:
        answer = {"error": str(error)}
    sys.stdout.buffer.write(msgpack.packb(answer))


if __name__ == "__main__":
    main(sys.argv[1])
