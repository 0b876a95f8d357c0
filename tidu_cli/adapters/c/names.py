"""Names in C: identifiers of keys and graphs, which may be any text. What a user's names hold never becomes code."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
