"""Names in C: identifiers of keys and graphs, which may be any text, and arguments and variables for open sizes.

What a user's names hold never becomes code. Open sizes are arguments for their names, and variables for what is computed of these.
A size that code needs is a variable of the function that needs it: `n_N` for a name, `s_3` for what is not a name alone. Sizes are
admitted first, by the bounds of names and by how large whatever is computed of them is, so that no sum or product overflows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tidu_cli.adapters.c.text import block, unused
from tidu_cli.adapters.c.views import PASSED
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.sizes.algebra import Name, names_of, terms_of
from tidu_cli.graph.sizes.names import name_to_file
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.sizes.polynomials import SPELLING

_MOST = 48
"""As much of a name is kept: compilers may take 63 letters as all of a name."""

_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const consteval constexpr
constinit const_cast continue co_await co_return co_yield decltype default delete do double dynamic_cast else enum explicit
export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or
or_eq private protected public register reinterpret_cast requires restrict return short signed sizeof static static_assert
static_cast struct switch template this thread_local throw true try typedef typeid typename typeof union unsigned using
virtual void volatile wchar_t while xor xor_eq main linux unix errno
acos asin atan cos sin tan acosh asinh atanh cosh sinh tanh exp exp2 expm1 frexp ilogb ldexp log log10 log1p log2 logb modf
scalb scalbn scalbln cbrt fabs hypot pow pow10 exp10 sqrt erf erfc lgamma tgamma gamma ceil floor nearbyint rint lrint llrint
round lround llround trunc fmod remainder remquo drem copysign nan nextafter nexttoward nextup nextdown fdim fmax fmin fma
finite significand sincos fpclassify signbit j0 j1 jn y0 y1 yn float_t double_t signgam index rindex bcmp bcopy bzero ffs
size_t work text abs div labs atan2 abort exit free malloc calloc realloc system read write open close time
clock rand srand random assert offsetof complex cabs carg conj cproj creal cimag cexp clog cpow csqrt csin ccos ctan
casin cacos catan csinh ccosh ctanh casinh cacosh catanh atexit atof atoi atol atoll bsearch qsort getenv ldiv llabs
lldiv mblen mbtowc wctomb imaxabs imaxdiv clearerr fclose feof ferror fflush fgetc fgetpos fgets fopen fputc fputs
fread freopen fseek fsetpos ftell fwrite getc getchar gets perror putc putchar puts remove rename rewind setbuf
setvbuf stderr stdin stdout tmpfile tmpnam ungetc asctime ctime difftime gmtime localtime mktime tm signal raise
setjmp longjmp setlocale localeconv access alarm dup fork kill link nice pause pipe pread pwrite select sleep sync
unlink usleep wait"""
_RESERVED = frozenset(_WORDS.split())
_OTHERS = re.compile(
    r"(str|mem|wcs|wmem|is|to|u?int\d|in_|out_|w_|k_|c_|g_|fe(clear|get|hold|raise|set|test|update))\w*"
    r"|v?[fs]?n?w?(printf|scanf)|[vi]\d+|\w*_t|(?P<other>\w+?)[fl]"
)
"""Names that C keeps for itself, those of functions of floats, and those within the file."""


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", text, flags=re.ASCII)[:_MOST].strip("_")


def identifier(name: str) -> str:
    """The name of a function for a graph: its own, where that is an identifier that means nothing else."""
    plain = _plain(name) or "graph"
    taken = plain in _RESERVED or (plain[-1:] in "fl" and plain[:-1] in _RESERVED)
    special = (match := _OTHERS.fullmatch(plain)) is not None and not match["other"]
    return f"tidu_{plain}" if taken or special or not plain[0].isalpha() or plain.upper() == plain else plain


def unique(prefix: str, texts: Sequence[str]) -> list[str]:
    """Names of parameters for keys: each with the prefix, none twice."""
    names: dict[str, None] = {}
    for text in texts:
        base = name = prefix + (_plain(text) or "value")
        k = 1
        while name in names:
            k += 1
            name = f"{base}_{k}"
        names[name] = None
    return list(names)


UNFIT = 2
"""What a function gives for sizes that are not admitted."""

_FUNCTIONS = {
    "//": "static long k_quotient(long a, long b) { return a / b - (a % b < 0); }",
    "%": "static long k_rest(long a, long b) { return a % b < 0 ? a % b + b : a % b; }",
    "max": "static long k_larger(long a, long b) { return a > b ? a : b; }",
    "min": "static long k_smaller(long a, long b) { return a < b ? a : b; }",
}
"""What computes of two sizes. Divisors are positive."""

_CALLED = {op: text.split("(")[0].split()[-1] for op, text in _FUNCTIONS.items()}


class Sizes:
    """The open sizes of a file: their names in the order in which inputs, then outputs, have them first; others follow."""

    def __init__(self, graph: Graph, names: Mapping[str, Name]) -> None:
        ports: list[Any] = [*graph.inputs, *graph.outputs]
        self.ports = [port.type for port in ports]
        sizes = [n for type_ in self.ports for n in getattr(type_, "shape", ())]
        order = dict.fromkeys([*(name.text for n in sizes for name in names_of(n)), *sorted(names)])
        self.names = dict(zip([names[text] for text in order], unique("n_", list(order)), strict=True))
        """Each by its name in C."""
        self.narrow: dict[Any, None] = {}
        """Those that libraries are given as integers of 32 bits."""
        self._spelled: dict[Any, str] = {}
        self._texts: dict[str, str] = {}

    # Names and texts.

    @contextmanager
    def spelling(self) -> Iterator[None]:
        """Within it, f-strings write sizes as variables."""
        token = SPELLING.set(self.spelled)
        try:
            yield
        finally:
            SPELLING.reset(token)

    def spelled(self, size: Any) -> str:
        """The variable that is a size, or the number."""
        if not isinstance(size, OpenSize):
            return str(size)
        if size not in self._spelled:
            text = self._text(size)
            self._spelled[size] = text if text in self.names.values() else f"s_{len(self._texts)}"
            if text not in self.names.values():
                self._texts[self._spelled[size]] = text
        return self._spelled[size]

    def _text(self, size: Any) -> str:
        text = ""
        for monomial, coefficient in terms_of(size):
            factors, count = [], abs(coefficient)
            for atom in (atom for atom, power in monomial for _ in range(power)):
                factor, count = self._factor(atom, count)
                factors.append(factor)
            body = " * ".join([*([str(count)] if count != 1 or not factors else []), *factors])
            text += ("-" if coefficient < 0 else "") + body if not text else f" {'-' if coefficient < 0 else '+'} {body}"
        return text

    def _factor(self, atom: Any, count: int) -> tuple[str, int]:
        """An atom beside so many, and how many are left."""
        if not isinstance(atom, Name):
            return f"{_CALLED[atom.op]}({self._text(atom.a)}, {self._text(atom.b)})", count
        name = self.names[atom]
        if count % atom.multiple == 0:
            return name, count // atom.multiple
        return f"({name} / {atom.multiple})", count

    def parameters(self) -> dict[str, str]:
        """The declarations of the parameters of functions within the file, by name."""
        return {name: f"const long {name}" for name in self.names.values()}

    def names_in(self, lines: Iterable[str]) -> list[str]:
        """The names that these lines need, also for variables in them."""
        words = _words([*lines, *(text for _, text in self._variables(lines))])
        return [name for name in self.names.values() if name in words]

    def declared(self, lines: Iterable[str]) -> list[str]:
        """The statements that declare the variables in these lines."""
        return [f"const long {name} = {text};" for name, text in self._variables(lines)]

    def _variables(self, lines: Iterable[str]) -> list[tuple[str, str]]:
        words = _words(lines)
        return [(name, text) for name, text in self._texts.items() if name in words]

    # What callers see.

    def arguments(self, prefix: str = "") -> str:
        """The declarations of the parameters that callers give."""
        return ", ".join(f"size_t {prefix}{name}" for name in self.names.values())

    def functions(self, module: Any, body: Sequence[str]) -> Iterator[str]:
        """The functions that say of sizes whether they are admitted, and what follows from them; and those that compute of sizes.

        `body` is that of the function that is called, whose text comes after these.
        """
        given = self.arguments("k_")
        room = f"return ((size_t){self.spelled(module.n_bytes)} + sizeof({module.room})) / sizeof({module.room});"
        axes = [n for type_ in self.ports for n in type_.shape]
        shapes = [f"shapes[{k}] = (size_t){self.spelled(n)};" for k, n in enumerate(axes)] or ["(void)shapes;"]
        public = [
            block(f"size_t {module.name}_work({given})", self.entered([room], 0)),
            block(f"int {module.name}_shapes({given}, size_t *shapes)", self.entered([*shapes, "return 0;"])),
        ]
        texts = "\n".join([*public, *module.functions, *self.declared(body)])
        yield from (text for op, text in _FUNCTIONS.items() if f"{_CALLED[op]}(" in texts)
        yield self._admitted()
        yield from public

    def prototypes(self, module: Any) -> Iterator[str]:
        """What callers see."""
        name, given = module.name, self.arguments()
        types = [f"{constant}{PASSED[dtype]} *{port}" for port, dtype, constant in module.ports()]
        loops = "; 1 where its loops run more steps than TIDU_MAX_STEPS" if module.unit.has_while else ""
        yield f"#define {name}_AXES {sum(len(type_.shape) for type_ in self.ports)}\n\n"
        yield f"/* How many {module.room}s `work` has; 0 for sizes that are not admitted. {self._told()}. */\n"
        yield f"size_t {name}_work({given});\n\n"
        yield f"/* Puts the sizes of the {name}_AXES axes of inputs, then of outputs, into `shapes`.\n"
        yield f"   Gives 0; {UNFIT} for sizes that are not admitted. */\n"
        yield f"int {name}_shapes({given}, size_t *shapes);\n\n"
        yield "/* Computes outputs from inputs, arrays row by row. No two may overlap. `work` means nothing before and after.\n"
        yield f"   Gives 0; {UNFIT} for sizes that are not admitted{loops}. */\n"
        yield f"int {name}({', '.join([given, *types, f'{module.room} *work'])});\n\n"
        yield "/* JSON: the names and bounds of sizes, and the keys, types and names of the other parameters, in order. */\n"
        yield f"const char *{name}_describe(void);\n"

    def _admitted(self) -> str:
        """The text of the function that says whether sizes are admitted. It looks at all that was spelled before."""
        tests = []
        for name, called in self.names.items():
            own = f"(uint64_t)k_{called}"
            tests += [f"{own} >= {name.least}"] if name.least > 0 else []
            tests += [f"{own} <= {name.most}"] if name.most is not None else []
            tests += [f"{own} % {name.multiple} == 0"] if name.multiple > 1 else []
        doubles = ", ".join(f"{called} = (double)k_{called}" for called in self.names.values())
        tests += [f"{self._most(self.narrow)} <= 2147483647"] if self.narrow else []
        tests += ["most <= (double)((unsigned long)-1 / 8)", "most <= (double)((size_t)-1 / 2)"]
        return "\n".join([
            f"static int k_admitted({self.arguments('k_')})",
            "{",
            f"    const double {doubles};",
            f"    const double most = {self._most([*self._spelled, *(type_.nbytes for type_ in self.ports)])};",
            f"    return {' && '.join(tests)};",
            "}",
        ])  # fmt: skip

    def entered(self, lines: Sequence[str], unfit: int = UNFIT) -> list[str]:
        """The statements of a function that callers give sizes: what it gives for some, variables, and these lines."""
        given = ", ".join(f"k_{name}" for name in self.names.values())
        declared = self.declared(lines)
        return [
            f"if (!k_admitted({given})) return {unfit};",
            *(f"const long {name} = (long)k_{name};" for name in self.names.values()),
            *declared,
            *unused(self.names.values(), [*declared, *lines]),
            *lines,
        ]

    def _most(self, sizes: Iterable[Any]) -> str:
        """A number of type double that no term of these sizes, nor any sum or product on the way to them, is greater than."""
        largest: dict[Any, int] = {}
        for size in sizes:
            for monomial, coefficient in terms_of(size):
                largest[monomial] = max(largest.get(monomial, 0), abs(coefficient))
        terms = [" * ".join([f"{c}.0", *(self._reach(a) for a, power in m for _ in range(power))]) for m, c in largest.items()]
        return " + ".join(terms) or "0"

    def _reach(self, atom: Any) -> str:
        if isinstance(atom, Name):
            unit = f" / {atom.multiple}" if atom.multiple > 1 else ""
            return f"({self.names[atom]}{unit} + 1)"
        return f"({self._most([atom.a])} + {self._most([atom.b])} + 1)"

    def _told(self) -> str:
        """The bounds of all names, in words."""
        texts = []
        for name in self.names:
            most = f", at most {name.most}" * (name.most is not None)
            steps = f", a multiple of {name.multiple}" * (name.multiple > 1)
            texts.append(f"{name.text} is at least {name.least}{most}{steps}")
        return "; ".join(texts)

    def described(self) -> list[dict[str, object]]:
        """What the description of a file says of them."""
        return [{"name": called, "key": name.text, **name_to_file(name)} for name, called in self.names.items()]


def _words(lines: Iterable[str]) -> set[str]:
    return set(re.findall(r"\b[ns]_\w+", "\n".join(lines)))
