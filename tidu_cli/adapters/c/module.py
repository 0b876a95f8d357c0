"""A document as a file of C, and its header: one function, with macros and a text that say what it takes and gives."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from string import Template
from typing import Any

from tidu_cli.adapters.c.complexes import PARTS, TYPES, functions_called
from tidu_cli.adapters.c.elements import function, literal, template
from tidu_cli.adapters.c.kernels import KERNELS, LAID, SCRATCH
from tidu_cli.adapters.c.libraries.blas import BLAS, REALS, Library, joined
from tidu_cli.adapters.c.libraries.lapack import LAPACK
from tidu_cli.adapters.c.lowering import Unit, require_plain
from tidu_cli.adapters.c.moves import VIEWS, nothing
from tidu_cli.adapters.c.names import Sizes, identifier, unique
from tidu_cli.adapters.c.text import STEPS, block, unused
from tidu_cli.adapters.c.views import HALVES, PASSED, STORED, bits
from tidu_cli.adapters.source_code import UnwrittenError, alone
from tidu_cli.checking.numeric.trials import one_node_document
from tidu_cli.errors import MissingRuleError, Remedy, TypeRuleError
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import named_graphs
from tidu_cli.graph.graph import Case, Document, Graph
from tidu_cli.graph.open_sizes import names_in
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.limits import DRAWN_STEPS, allowed_steps
from tidu_cli.rules.recording.trace import expanded
from tidu_cli.rules.vocabulary import PrimitiveSet

MARK = "/* Written by tidu"
"""How files begin that tidu wrote."""

_REALS = {
    "double": {"f16": "f64", "bf16": "f64", "f32": "f64", "c64": "c128"},
    "float": {"f16": "f32", "bf16": "f32", "f64": "f32", "c128": "c64"},
}
"""The dtypes that --real takes others for."""


class Module:
    """A file in the making: functions, each after those that it calls, and constants."""

    def __init__(self, document: Document, real: str | None, *, blas: bool = False, lapack: bool = False) -> None:
        self.library = joined(Library(KERNELS, SCRATCH, LAID), *([BLAS] if blas else []), *([LAPACK] if lapack else []))
        self.external: dict[str, str] = {}
        self.primitives = vocabulary(document.cases)
        self.reals = _REALS.get(real or "", {})
        self.graph = alone(document)
        self.functions: list[str] = []
        self.constants: dict[str, str] = {}
        self.helpers: dict[str, str] = {}
        self.sizes: Sizes | None = None
        if open_names := names_in(self.graph):
            self.sizes = Sizes(self.graph, open_names)
        self._children: dict[Case, list[Unit]] = {}
        self._n_units = 0
        require = [*[i.type for i in self.graph.inputs], *[o.type for o in self.graph.outputs]]
        try:
            require_plain(require)
            self.name = identifier(self.graph.name)
            if self.sizes and self.name[:2] in ("n_", "s_"):
                self.name = f"tidu_{self.name}"
            names = unique("in_", [str(i.key) for i in self.graph.inputs]), unique("out_", [str(o.key) for o in self.graph.outputs])
            self.unit = Unit(self, self.graph, f"{self.name}_part", *names)
        except (UnwrittenError, TypeRuleError) as error:
            raise self._refused(error) from None
        wide = not {"i64", "u64", "f64", "c128"}.isdisjoint(self.unit.pools)
        self.room = "float" if real == "float" and not wide else "double"
        """The type of the workspace's elements, as which all that is in it is aligned."""

    def _refused(self, error: object) -> UnwrittenError:
        return UnwrittenError(f"graph '{self.graph.name}': {error}; or write it with ", Remedy("format", "msgpack"))

    # What units ask for.

    def dtype(self, type_: Any) -> str:
        """The dtype in which values of a type are computed with."""
        name: str = type_.dtype
        return self.reals.get(name, name)

    def use(self, name: str, dtype: str, other: str = "") -> str:
        """The name of a helper, which the file then has."""
        called = f"k_{name}_{dtype}{f'_{other}' if other else ''}"
        if called not in self.helpers:
            text = function(name, called, dtype, other)
            for needed in functions_called(text) if dtype in PARTS or dtype in HALVES else ():
                if needed != (name, dtype):
                    self.use(*needed)
            self.helpers[called] = text
        return called

    def loaded(self, dtype: str, element: str) -> str:
        """The number that an element in memory is, of a half."""
        return f"{self.use('load', dtype)}({element})"

    def saved(self, dtype: str, number: str) -> str:
        """What a number is in memory, of a half."""
        return f"{self.use('save', dtype)}({number})"

    def convert(self, old: str, new: str) -> str:
        """The template of a conversion."""
        return str(template("convert_element_type", None, (old,), new, self.use))

    def constant(self, dtype: str, values: Any) -> str:
        """The name of an array of constants."""
        if dtype in HALVES:
            numbers = [str(x) for x in values.view("uint16").tolist()]
        else:
            numbers = [literal(dtype, x) for x in values.tolist()]
        if dtype in PARTS:
            numbers = [number.removeprefix(f"((k_{dtype})").removesuffix(")") for number in numbers]
        text = f"{STORED[dtype]} NAME[{len(values)}] = {{{', '.join(numbers)}}};"
        return self.constants.setdefault(text, f"c_{len(self.constants)}")

    def fold(self, op: str, dtype: str) -> str:
        """The template of an operation on two numbers of a dtype."""
        return str(template(op, None, (dtype, dtype), dtype, self.use))

    def how(self, case: Case) -> Any:
        """How a case is written: a template with the shape and dtype of its result, or a function of views.

        Raises UnwrittenError.
        """
        if case.op in VIEWS:
            require_plain((*case.operands, *case.results))
            return VIEWS[case.op]
        require_plain((*case.results, *case.operands))
        if all(0 in t.shape for t in case.results) or (case.op == "scan" and case.attrs.length == 0):  # type: ignore
            return nothing
        result: Any = case.results[0]
        dtypes = [self.dtype(t) for t in case.operands]
        if case.op == "bitcast_convert_type" and self.reals:
            raise UnwrittenError("its bits are those of the types in the document; leave out --real")
        if text := template(case.op, case.attrs, dtypes, self.dtype(result), self.use):
            ignored = [n for n in range(len(dtypes)) if f"{{{n}}}" not in text]
            return text, result.shape, self.dtype(result), ignored
        if case.op == "qr" and case.attrs.pivoting:  # type: ignore[attr-defined]
            raise UnwrittenError("C has no qr with pivoting; leave out pivoting")
        if self._has_kernel(case) or self.children(case):
            return self.library.laid.get(case.op, Unit.kernel)
        raise UnwrittenError(self._reason(case))

    def _has_kernel(self, case: Case) -> bool:
        """Whether an operation is computed by a kernel. Those that LAPACK alone has are of real numbers."""
        return case.op in self.library.kernels and (case.op in KERNELS or self.dtype(case.operands[0]) in REALS)

    def children(self, case: Case) -> list[Unit]:
        """The functions of the graphs that a case holds, or of what it is defined as."""
        case = replace(case, mask=None)
        if case in self._children:
            return self._children[case]
        graphs: list[tuple[str, Graph]] = []
        if self._has_kernel(case):
            graphs = [(f"{name}: ", closed.graph) for name, closed in named_graphs(case.attrs)]
        else:
            if self.primitives[case.op].in_terms_of_others is None:
                return []
            try:
                graphs = [("its definition: ", expanded(self.primitives, case))]
            except MissingRuleError as error:
                raise UnwrittenError(str(error)) from None
        self._children[case] = [self._child(place, graph) for place, graph in graphs]
        return self._children[case]

    def _child(self, place: str, graph: Graph) -> Unit:
        self._n_units += 1
        ports = [f"in_{k}" for k in range(len(graph.inputs))], [f"out_{k}" for k in range(len(graph.outputs))]
        try:
            unit = Unit(self, graph, f"g_{self._n_units}", *ports)
            parameters, lines = unit.parameters(), unit.body(self._part)
        except UnwrittenError as error:
            raise UnwrittenError(f"{place}{error}") from None
        given = [text for name, text in self.sizes.parameters().items() if name in unit.names] if self.sizes else []
        self._function(unit.name, [*given, *parameters.values()] or ["void"], [*unused(parameters, lines), *lines])
        return unit

    def _function(self, name: str, parameters: Sequence[str], lines: Sequence[str]) -> None:
        declared = self.sizes.declared(lines) if self.sizes else []
        self.functions.append(block(f"static void {name}({', '.join(parameters)})", [*declared, *lines]))

    def _part(self, name: str, parameters: Sequence[str], lines: Sequence[str]) -> None:
        self._function(name, parameters, lines)
        self.functions[-1] = f"K_APART {self.functions[-1]}"

    def _reason(self, case: Case) -> str:
        if case.op in LAPACK.kernels:
            if (dtype := self.dtype(case.operands[0])) not in REALS:
                return f"C has no {case.op} of {dtype}, and LAPACK is called of real matrices alone"
            return f"C has no {case.op} of its own: write it with {Remedy('lapack', True, 'convert', python='lapack=True')}"
        opaque = self.primitives[case.op].evaluation.opaque
        return f"C has no {case.op}" + (f", which {opaque}" if opaque else "")

    # The texts.

    def source(self) -> Iterator[str]:
        """The text of the file, complete in itself."""
        unit, sizes = self.unit, self.sizes
        try:
            lines = unit.body(self._part)
        except UnwrittenError as error:
            raise self._refused(error) from None
        head = ["unsigned char *const w = (unsigned char *)work;"] if unit.pools else ["(void)work;"]
        for dtype, begin in self._offsets():
            place = sizes.spelled(begin) if sizes else begin
            head.append(f"{STORED[dtype]} *const w_{dtype} = ({STORED[dtype]} *)(void *)(w + {place});")
        if unit.has_while:
            head.append(f"int64_t left = TIDU_MAX_STEPS, *const {STEPS} = &left;")
        own = {name: text for name, text in unit.parameters().items() if not name.startswith("w_")}
        parameters = dict(own)
        for name, dtype, constant in self.ports():
            if dtype in PARTS:  # pairs where callers see them
                head.append(f"{constant}k_{dtype} *const {name} = ({constant}k_{dtype} *)({constant}void *)k_{name};")
                parameters[name] = f"{constant}{PASSED[dtype]} *restrict k_{name}"
        given = [sizes.arguments("k_")] if sizes else []
        opening = f"int {self.name}({', '.join([*given, *parameters.values(), f'{self.room} *restrict work'])})"
        body = [
            *head,
            *unused({**own, **{f"w_{d}": "" for d in unit.pools}}, lines),
            *lines,
            "return left < 0;" if unit.has_while else "return 0;",
        ]
        yield self._top("")
        if any("for (" in line for line in (*lines, *self.functions)):
            yield _LOOPS
        yield "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n\n"
        yield from self._declared()
        yield "\n"
        of_sizes = sizes.functions(self, body) if sizes else []
        yield from (f"{prototype}\n" for prototype in self.external.values())
        yield "\n" * bool(self.external)
        if unit.has_while:
            yield _LIMIT.substitute(steps=allowed_steps() or DRAWN_STEPS)
        if any(text.startswith("K_APART") for text in self.functions):
            yield _APART
        texts = (*self.helpers.values(), *self.constants, *self.functions, *head)
        for dtype in TYPES:
            if any(f"k_{dtype} " in text for text in texts):
                yield TYPES[dtype] + "\n\n"
        for text, name in self.constants.items():
            yield f"static const {text.replace('NAME', name, 1)}\n\n"
        for text in (*self.helpers.values(), *of_sizes, *self.functions):
            yield text + "\n\n"
        yield block(opening, sizes.entered(body) if sizes else body) + "\n\n"
        yield block(
            f"const char *{self.name}_describe(void)", [f"static const char text[] = {_quoted(self._described())};", "return text;"]
        )
        yield "\n"

    def header(self, name: str) -> str:
        """The text of the header of that name."""
        guard = f"TIDU_{re.sub(r'[^A-Za-z0-9]', '_', name).upper()}"
        sizes = "#include <stddef.h>\n" * bool(self.sizes)
        opening = f'#ifndef {guard}\n#define {guard}\n\n{sizes}#include <stdint.h>\n\n#ifdef __cplusplus\nextern "C" {{\n#endif\n\n'
        closing = "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n"
        return self._top(" The header.") + opening + "".join(self._declared()) + closing

    def _offsets(self) -> list[tuple[str, int]]:
        """Where in the workspace each dtype begins, in bytes: those of wide numbers first, so that all are aligned."""
        begin, places = 0, []
        for dtype in sorted(self.unit.pools, key=lambda d: (-bits(d), d)):
            places.append((dtype, begin))
            begin += self.unit.pools[dtype].size * bits(dtype) // 8
        self.n_bytes = begin
        return places

    def _top(self, more: str) -> str:
        return f"{MARK}.{more} {self.name}: see its declaration, and docs/howto/c.md of tidu. */\n\n"

    def _declared(self) -> Iterator[str]:
        self._offsets()
        ports: list[Any] = [*self.graph.inputs, *self.graph.outputs]
        if self.sizes:
            yield from self.sizes.prototypes(self)
            return
        yield f"#define {self.name}_WORK_BYTES {self.n_bytes}L\n"
        yield f"#define {self.name}_WORK ((({self.name}_WORK_BYTES) + sizeof({self.room})) / sizeof({self.room}))\n"
        for (name, dtype, _), port in zip(self.ports(), ports, strict=True):
            yield f"#define {self.name}_SIZE_{name} {port.type.size * (1 + (dtype in PARTS))}L\n"
        types = [f"{constant}{PASSED[dtype]} *{name}" for name, dtype, constant in self.ports()]
        yield "\n/* Computes outputs from inputs, arrays row by row. No two may overlap.\n"
        gives = "Gives 0; 1 where its loops run more steps than TIDU_MAX_STEPS" if self.unit.has_while else "Gives 0"
        yield f"   `work` has {self.name}_WORK {self.room}s, which mean nothing before and after. {gives}. */\n"
        yield f"int {self.name}({', '.join([*types, f'{self.room} *work'])});\n\n"
        yield "/* JSON: the keys, types and names of the parameters, in order, and the bytes of the workspace. */\n"
        yield f"const char *{self.name}_describe(void);\n"

    def ports(self) -> list[tuple[str, str, str]]:
        """The names and dtypes of parameters, and what their declarations begin with."""
        inputs = [(name, self.dtype(i.type), "const ") for name, i in zip(self.unit.inputs, self.graph.inputs, strict=True)]
        return inputs + [(name, self.dtype(o.type), "") for name, o in zip(self.unit.outputs, self.graph.outputs, strict=True)]

    def _described(self) -> str:
        def described(name: str, port: Any) -> dict[str, object]:
            shape = [n if isinstance(n, int) else str(n) for n in port.type.shape]
            return {"name": name, "key": str(port.key), "dtype": self.dtype(port.type), "shape": shape}

        unit, graph = self.unit, self.graph
        ports = {
            "inputs": list(map(described, unit.inputs, graph.inputs)),
            "outputs": list(map(described, unit.outputs, graph.outputs)),
        }
        if self.sizes:
            return json.dumps({"function": self.name, "sizes": self.sizes.described(), **ports})
        return json.dumps({"function": self.name, **ports, "work_bytes": self.n_bytes})


_LIMIT = Template("""#ifndef TIDU_MAX_STEPS
#define TIDU_MAX_STEPS $steps
#endif

""")
"""How many steps loops may run that end by a condition, all together."""

_APART = """#ifdef __GNUC__
#define K_APART __attribute__((noinline))
#else
#define K_APART
#endif

"""
"""What keeps parts of a long function apart: compilers take more than proportional time for one of all."""

# Before all else, as functions of headers could not be inlined into those that are compiled otherwise.
_LOOPS = """#if defined __GNUC__ && defined __OPTIMIZE__ && !defined __OPTIMIZE_SIZE__ && !defined __clang__
#pragma GCC optimize ("O3") /* for loops, as clang does from -O2 on */
#endif

"""

_LONGEST = 4000
"""C99 has no longer strings."""


def _quoted(text: str) -> str:
    """ASCII text as a string of C. Question marks are escaped, too: two of them begin a trigraph."""
    if len(text) > _LONGEST:
        return "{" + ", ".join(map(str, text.encode())) + ", 0}"
    return '"' + re.sub(r'["\\?]', r"\\\g<0>", text) + '"'


def written_as(case: Case, primitives: PrimitiveSet) -> str:
    """What a case is written as, in a few words. Raises UnwrittenError."""
    module = Module(one_node_document(case, primitives), None)
    if case.op in VIEWS:
        return "another view"
    if case.op in module.library.kernels:
        return "loops"
    return "its definition" if module.functions else "an expression"
