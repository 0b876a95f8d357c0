"""Functions of complex numbers in C, each written into a file that calls it, with those that it calls.

There is no <complex.h>: compilers may leave it out, and its products have branches that NumPy's do not have. Products and
quotients are NumPy's, quotients after R. L. Smith, "Algorithm 116: Complex division" (1962). Elementary functions have the edges
and branch cuts of C99's annex G; inverse ones are those of W. Kahan, "Branch cuts for complex elementary functions, or: Much ado
about nothing's sign bit" (1987). $D is the dtype, $T its type, $R that of its parts, $S the suffix of their functions in math.h.
"""

from __future__ import annotations

import re
from string import Template

from tidu_cli.adapters.c.functions import FOURIER

PARTS = {"c64": "f32", "c128": "f64"}
"""The dtypes of the parts of complex numbers."""

TYPES = {d: f"typedef struct {{ {r} re, im; }} k_{d};" for d, r in (("c64", "float"), ("c128", "double"))}
"""The declarations of their types."""

_WORDS = {
    "c64": {"R": "float", "S": "f", "HUGE": "1e38f", "TINY": "1e-30f", "UP": "1152921504606846976.0f", "MOST": "80", "FAR": "9"},
    "c128": {"R": "double", "S": "", "HUGE": "1e308", "TINY": "1e-290", "UP": "1152921504606846976.0", "MOST": "700", "FAR": "22"},
}
"""Beyond HUGE and TINY numbers are scaled, tiny ones by UP, 2⁶⁰; beyond MOST exponentials are made of two; beyond FAR tanh is 1."""

_ONE = "static $T $N($T z) "
_TWO = "static $T $N($T a, $T b) "

COMPLEXES = {
    "complex": "static $T $N($R re, $R im) { $T z; z.re = re; z.im = im; return z; }",
    "add": _TWO + "{ a.re += b.re; a.im += b.im; return a; }",
    "sub": _TWO + "{ a.re -= b.re; a.im -= b.im; return a; }",
    "mul": _TWO + "{ return k_complex_$D(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re); }",
    "neg": _ONE + "{ return k_complex_$D(-z.re, -z.im); }",
    "conj": _ONE + "{ z.im = -z.im; return z; }",
    "scaled": "static $T $N($R s, $T z) { z.re *= s; z.im *= s; return z; }",
    "div": _TWO
    + """{
    if (b.re == 0 && b.im == 0) return k_complex_$D(a.re / fabs$S(b.re), a.im / fabs$S(b.re));
    if (fabs$S(b.re) >= fabs$S(b.im)) {
        const $R q = b.im / b.re, s = 1 / (b.re + b.im * q);
        return k_complex_$D((a.re + a.im * q) * s, (a.im - a.re * q) * s);
    } else {
        const $R q = b.re / b.im, s = 1 / (b.im + b.re * q);
        return k_complex_$D((a.re * q + a.im) * s, (a.im * q - a.re) * s);
    }
}""",
    "reciprocal": _ONE
    + """{
    if (fabs$S(z.im) <= fabs$S(z.re)) {
        const $R q = z.im / z.re, d = z.re + z.im * q;
        return k_complex_$D(1 / d, -q / d);
    } else {
        const $R q = z.re / z.im, d = z.re * q + z.im;
        return k_complex_$D(q / d, -1 / d);
    }
}""",
    "narrow": "static $T $N(k_c128 z) { return k_complex_$D(($R)z.re, ($R)z.im); }",
    "strong": "static $T $N($T zero, $T a) "
    "{ return zero.re == 0 && zero.im == 0 && (a.re != a.re || a.im != a.im) ? k_complex_$D(0, 0) : a; }",
    "square": _ONE + "{ return k_complex_$D((z.re - z.im) * (z.re + z.im), 2 * (z.re * z.im)); }",
    "power": """static $T $N($T z, long n) {
    $T r = k_complex_$D(1, 0), s = z;
    unsigned long m = n < 0 ? 0UL - (unsigned long)n : (unsigned long)n;
    if (n == 1) return z;
    if (n == 2 || n == 3) return n == 2 ? k_mul_$D(z, z) : k_mul_$D(z, k_mul_$D(z, z)); /* 1 times an infinity is NaN */
    for (;;) {
        if (m % 2) r = k_mul_$D(r, s);
        if ((m /= 2) == 0) break;
        s = k_mul_$D(s, s);
    }
    return n < 0 ? k_reciprocal_$D(r) : r;
}""",
    "pow": _TWO
    + """{
    if (b.re == 0 && b.im == 0) return k_complex_$D(1, 0);
    if (a.re == 0 && a.im == 0) return b.re > 0 ? k_complex_$D(0, 0) : k_complex_$D(NAN, NAN);
    if (b.im == 0 && fabs$S(b.re) < 100 && b.re == floor$S(b.re)) return k_power_$D(a, (long)b.re);
    return k_exp_$D(k_mul_$D(b, k_log_$D(a)));
}""",
    "sign": _ONE
    + """{
    const $R size = hypot$S(z.re, z.im);
    if (size != size || (isinf(z.re) && isinf(z.im))) return k_complex_$D(NAN, NAN);
    if (isinf(z.re)) return k_complex_$D(z.re > 0 ? 1 : -1, 0);
    if (isinf(z.im)) return k_complex_$D(0, z.im > 0 ? 1 : -1);
    if (isinf(size)) return k_sign_$D(k_scaled_$D(($R)0.25, z));
    return size == 0 ? k_complex_$D(0, 0) : k_complex_$D(z.re / size, z.im / size);
}""",
    "exp": _ONE
    + """{
    if (z.im == 0) return k_complex_$D(exp$S(z.re), z.im);
    if (!isfinite(z.im)) {
        if (isinf(z.re)) return z.re < 0 ? k_complex_$D(0, copysign$S(0, z.im)) : k_complex_$D(z.re, NAN);
        return k_complex_$D(NAN, NAN);
    } else {
        const int far = fabs$S(z.re) > $MOST;
        const $R e = exp$S(far ? z.re / 2 : z.re), c = e * cos$S(z.im), s = e * sin$S(z.im);
        return far ? k_complex_$D(c * e, s * e) : k_complex_$D(c, s);
    }
}""",
    "exp2": _ONE
    + """{
    const $R e = exp2$S(z.re), t = z.im * ($R)0.693147180559945309417;
    return k_complex_$D(e * cos$S(t), t == 0 ? z.im : e * sin$S(t));
}""",
    "expm1": _ONE
    + """{
    if (!isfinite(z.re) || !isfinite(z.im) || z.re > $MOST) {
        z = k_exp_$D(z);
        z.re -= 1;
        return z;
    } else {
        const $R e = expm1$S(z.re), h = sin$S(z.im / 2);
        return k_complex_$D(e * cos$S(z.im) - 2 * h * h, (z.re > -1 ? e + 1 : exp$S(z.re)) * sin$S(z.im));
    }
}""",
    "log": _ONE
    + """{
    $R a = fabs$S(z.re), b = fabs$S(z.im), more = 0;
    const $R angle = atan2$S(z.im, z.re);
    if (a < b) { const $R t = a; a = b; b = t; }
    if (a > $HUGE / 8 && !isinf(a) && b == b) { a /= 8; b /= 8; more = ($R)2.07944154167983592825; }
    if (a < $TINY && a > 0) { a *= $UP; b *= $UP; more = ($R)-41.5888308335967185650; }
    if (more == 0 && a > ($R)0.5 && a < 2) return k_complex_$D(log1p$S((a - 1) * (a + 1) + b * b) / 2, angle);
    return k_complex_$D(log$S(hypot$S(a, b)) + more, angle);
}""",
    "log1p": _ONE
    + """{
    const $R angle = atan2$S(z.im, 1 + z.re);
    if (!(hypot$S(z.re, z.im) < ($R)0.7)) return k_complex_$D(k_log_$D(k_complex_$D(1 + z.re, z.im)).re, angle);
    return k_complex_$D(log1p$S(z.re * (2 + z.re) + z.im * z.im) / 2, angle);
}""",
    "logistic": _ONE
    + """{
    const int right = z.re >= 0;
    const $T e = k_exp_$D(right ? k_neg_$D(z) : z), one = k_complex_$D(1, 0);
    return k_div_$D(right ? one : e, k_add_$D(one, e));
}""",
    "logaddexp": _TWO
    + """{
    const $T great = a.re >= b.re ? a : b, small = a.re >= b.re ? b : a;
    $T t = k_add_$D(great, k_log1p_$D(k_exp_$D(k_sub_$D(small, great))));
    if (isinf(great.re) && small.re == small.re && small.im == small.im) t = great;
    if (isfinite(t.im)) t.im -= ($R)6.28318530717958647693 * rint$S(t.im / ($R)6.28318530717958647693);
    return t;
}""",
    "sqrt": _ONE
    + """{
    $R a = z.re, b = z.im, back = 1;
    if (a == 0 && b == 0) return k_complex_$D(0, b);
    if (isinf(b)) return k_complex_$D(INFINITY, b);
    if (a != a) return k_complex_$D(a, NAN);
    if (isinf(a)) return a > 0 ? k_complex_$D(a, copysign$S(b - b, b)) : k_complex_$D(fabs$S(b - b), copysign$S(a, b));
    if (fabs$S(a) > $HUGE / 8 || fabs$S(b) > $HUGE / 8) { a /= 16; b /= 16; back = 4; }
    else if (fabs$S(a) < $TINY && fabs$S(b) < $TINY) { a *= $UP; b *= $UP; back = ($R)9.31322574615478515625e-10; }
    {
        const $R t = sqrt$S((fabs$S(a) + hypot$S(a, b)) / 2);
        if (a >= 0) return k_complex_$D(t * back, b / (2 * t) * back);
        return k_complex_$D(fabs$S(b) / (2 * t) * back, copysign$S(t, b) * back);
    }
}""",
    "rsqrt": _ONE
    + """{
    if (z.re == 0 && z.im == 0) return k_complex_$D(INFINITY, NAN);
    if (isinf(z.re) || isinf(z.im)) return k_complex_$D(0, 0);
    return k_div_$D(k_complex_$D(1, 0), k_sqrt_$D(z));
}""",
    "sinh": _ONE
    + """{
    const $R x = z.re, y = z.im;
    if (y == 0) return k_complex_$D(sinh$S(x), y);
    if (!isfinite(y)) return k_complex_$D(x == 0 ? x : isinf(x) ? fabs$S(x) : NAN, NAN);
    if (fabs$S(x) > $MOST && isfinite(x)) {
        const $R e = exp$S(fabs$S(x) / 2), h = e / 2;
        return k_complex_$D(copysign$S(h, x) * cos$S(y) * e, h * sin$S(y) * e);
    }
    return k_complex_$D(sinh$S(x) * cos$S(y), cosh$S(x) * sin$S(y));
}""",
    "cosh": _ONE
    + """{
    const $R x = z.re, y = z.im;
    if (y == 0) return k_complex_$D(cosh$S(x), copysign$S(1, x) * y);
    if (!isfinite(y)) return k_complex_$D(isinf(x) ? fabs$S(x) : NAN, x == 0 ? 0 : NAN);
    if (fabs$S(x) > $MOST && isfinite(x)) {
        const $R e = exp$S(fabs$S(x) / 2), h = e / 2;
        return k_complex_$D(h * cos$S(y) * e, copysign$S(h, x) * sin$S(y) * e);
    }
    return k_complex_$D(cosh$S(x) * cos$S(y), sinh$S(x) * sin$S(y));
}""",
    "tanh": _ONE
    + """{
    const $R x = z.re, y = z.im;
    if (x != x) return k_complex_$D(x, y == 0 ? y : NAN);
    if (isinf(x)) return k_complex_$D(copysign$S(1, x), copysign$S(0, isfinite(y) ? sin$S(2 * y) : y));
    if (!isfinite(y)) return k_complex_$D(x == 0 ? x : NAN, NAN);
    if (fabs$S(x) >= $FAR) {
        const $R e = exp$S(-fabs$S(x));
        return k_complex_$D(copysign$S(1, x), 4 * sin$S(y) * cos$S(y) * e * e);
    } else {
        const $R t = tan$S(y), s = sinh$S(x), b = 1 + t * t, c = sqrt$S(1 + s * s), d = 1 + b * s * s;
        return isinf(b) ? k_complex_$D(c / s, 1 / t) : k_complex_$D(b * c * s / d, t / d);
    }
}""",
    "sin": _ONE + "{ z = k_sinh_$D(k_complex_$D(z.im, z.re)); return k_complex_$D(z.im, z.re); }",
    "cos": _ONE + "{ return k_cosh_$D(k_complex_$D(-z.im, z.re)); }",
    "tan": _ONE + "{ z = k_tanh_$D(k_complex_$D(z.im, z.re)); return k_complex_$D(z.im, z.re); }",
    "asinh": _ONE
    + """{
    const $T b = k_complex_$D(z.im, z.re);
    if (isinf(z.re) || isinf(z.im))
        return k_complex_$D(copysign$S(INFINITY, z.re), copysign$S(atan2$S(fabs$S(z.im), fabs$S(z.re)), z.im));
    if (z.re != z.re || z.im != z.im) return k_complex_$D(NAN, z.im == 0 ? z.im : NAN);
    {
        const $T p = k_sqrt_$D(k_complex_$D(1 + b.re, b.im)), m = k_sqrt_$D(k_complex_$D(1 - b.re, -b.im));
        return k_complex_$D(asinh$S(m.re * p.im - m.im * p.re), atan2$S(b.re, m.re * p.re - m.im * p.im));
    }
}""",
    "asin": _ONE + "{ z = k_asinh_$D(k_complex_$D(z.im, z.re)); return k_complex_$D(z.im, z.re); }",
    "acos": _ONE
    + """{
    if (isinf(z.re) || isinf(z.im)) return k_complex_$D(atan2$S(fabs$S(z.im), z.re), copysign$S(INFINITY, -z.im));
    if (z.re != z.re || z.im != z.im) return k_complex_$D(z.re == 0 ? ($R)1.57079632679489661923 : NAN, NAN);
    {
        const $T p = k_sqrt_$D(k_complex_$D(1 + z.re, z.im)), m = k_sqrt_$D(k_complex_$D(1 - z.re, -z.im));
        return k_complex_$D(2 * atan2$S(m.re, p.re), asinh$S(p.re * m.im - p.im * m.re));
    }
}""",
    "acosh": _ONE
    + """{
    if (isinf(z.re) || isinf(z.im)) return k_complex_$D(INFINITY, copysign$S(atan2$S(fabs$S(z.im), z.re), z.im));
    if (z.re != z.re || z.im != z.im) return k_complex_$D(NAN, z.re == 0 ? ($R)1.57079632679489661923 : NAN);
    {
        const $T p = k_sqrt_$D(k_complex_$D(z.re + 1, z.im)), m = k_sqrt_$D(k_complex_$D(z.re - 1, z.im));
        return k_complex_$D(asinh$S(m.re * p.re + m.im * p.im), 2 * atan2$S(m.im, p.re));
    }
}""",
    "atanh": _ONE
    + """{
    const $R x = fabs$S(z.re), y = fabs$S(z.im), great = sqrt$S($HUGE) / 4;
    $R re, im;
    if (z.re != z.re) return k_complex_$D(isinf(y) ? 0 : z.re, isinf(y) ? copysign$S(($R)1.57079632679489661923, z.im) : NAN);
    if (y != y) return k_complex_$D(z.re == 0 || isinf(x) ? copysign$S(0, z.re) : NAN, z.im);
    if (x > great || y > great) {
        re = isinf(x) || isinf(y) ? 0 : x > y ? 1 / (x + y / x * y) : x / y / (y + x / y * x);
        im = ($R)1.57079632679489661923;
    } else {
        const $R d = 1 - x;
        re = d == 0 && y < ($R)1e-8 ? (log$S(2) - log$S(y)) / 2 : log1p$S(4 * x / (d * d + y * y)) / 4;
        im = atan2$S(2 * y, d * (1 + x) - y * y) / 2;
    }
    return k_complex_$D(copysign$S(re, z.re), copysign$S(im, z.im));
}""",
    "atan": _ONE + "{ z = k_atanh_$D(k_complex_$D(z.im, z.re)); return k_complex_$D(z.im, z.re); }",
    "atan2": """static $T $N($T y, $T x) {
    const $R a = hypot$S(x.re, x.im), b = hypot$S(y.re, y.im), size = a > b ? a : b;
    $T r;
    x = k_div_$D(x, k_complex_$D(size, 0)); /* zeros have NumPy's signs, which choose at branch cuts */
    y = k_div_$D(y, k_complex_$D(size, 0));
    r = k_sqrt_$D(k_add_$D(k_square_$D(x), k_square_$D(y)));
    if (k_div_$D(x, r).re > 0) return k_scaled_$D(2, k_atan_$D(k_div_$D(y, k_add_$D(r, x))));
    x = k_log_$D(k_div_$D(k_add_$D(x, k_mul_$D(k_complex_$D(0, 1), y)), r));
    return k_complex_$D(x.im, -x.re);
}""",
    "less": "static int $N($T a, $T b) { return k_less_$P(a.re, b.re) || (!k_less_$P(b.re, a.re) && k_less_$P(a.im, b.im)); }",
}


def complex_function(name: str, called: str, dtype: str) -> str:
    """The text of a function for a dtype."""
    text = COMPLEXES.get(name) or FOURIER[name]
    return Template(text).substitute(_WORDS[dtype], N=called, D=dtype, T=f"k_{dtype}", P=PARTS[dtype])


def functions_called(text: str) -> list[tuple[str, str]]:
    """The functions that a function calls, by name and dtype."""
    return re.findall(r"\bk_([a-z0-9_]+?)_(c64|c128|f16|bf16|f32|f64)\(", text)
