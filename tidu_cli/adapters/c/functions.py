"""Functions in C, each written into a file that calls it: of real numbers, of halves, and discrete Fourier transforms.

Of real numbers, $N is the name, $T the type, $S the suffix of functions in math.h, $R another type that it takes.
`elements.function` has the other words.

Halves, f16 and bf16, are numbers in memory in 16 bits, computed with as floats that each operation rounds, to nearest, ties to
even. A float has more than twice the digits of a half, so that a sum, product, quotient or square root of halves, rounded to a
float first, rounds to the same half as the exact value. A double is rounded at once to f16, and by way of a float to bf16, as NumPy
does it.

Fourier transforms are of any length: of small factors one after the other, of others as a convolution. The first are those of
T. G. Stockham, which leave elements in order (C. Van Loan, "Computational frameworks for the fast Fourier transform", 1992, section
1.7): a pass a factor, from one array to another. Lengths with a large prime factor are a convolution with exp(πi j² / n)
(L. I. Bluestein, 1970) of a length that is a power of 2. Roots of unity are computed from angles up to π/4, so that errors grow as
the logarithm of the length does. Words are those of `complexes`.
"""

from __future__ import annotations

import cmath
import math

REALS = {
    "max": "static $T $N($T a, $T b) { return a >= b$NAN_A ? a : b; }",
    "min": "static $T $N($T a, $T b) { return a <= b$NAN_A ? a : b; }",
    "sign": "static $T $N($T a) { return ($T)(a > 0 ? 1 : $NEGATIVE a); }",
    "less": "static int $N($T a, $T b) { return a < b$NAN_B; }",
    "strong": "static $T $N($T zero, $T a) { return zero == 0 && a != a ? 0 : a; }",
    "logaddexp": "static $T $N($T a, $T b) { const $T d = a - b; return a == b ? a + log$S(($T)2) : d > 0 ? "
    "a + log1p$S(exp$S(-d)) : d <= 0 ? b + log1p$S(exp$S(d)) : d; }",
    "divide": "static $T $N($T a, $T b) { return b == 0 ? ($T)-1 : $BY_MINUS_ONE($T)(a / b); }",
    "remainder": "static $T $N($T a, $T b) { return b == 0 ? a : $NONE_LEFT($T)(a % b); }",
    "power": "static $T $N($T a, long n) { $W r = 1, s = ($W)a; "
    "for (; n > 0; n /= 2) { if (n % 2) r *= s; s *= s; } return ($T)r; }",
    "shift_left": "static $T $N($T a, $T b) { return ($U)b < $B ? ($T)(($W)($U)a << ($U)b) : ($T)0; }",
    "shift_right_logical": "static $T $N($T a, $T b) { return ($U)b < $B ? ($T)(($U)a >> ($U)b) : ($T)0; }",
    "shift_right_arithmetic": "static $T $N($T a, $T b) { return ($T)(($I)a >> (($U)b < $B ? ($U)b : $B - 1)); }",
    "population_count": "static $T $N($T a) { $U x = ($U)a; int n = 0; "
    "for (; x; x = ($U)(x >> 1)) n += (int)(x & 1); return ($T)n; }",
    "clz": "static $T $N($T a) { $U x = ($U)a; int n = $B; for (; x; x = ($U)(x >> 1)) --n; return ($T)n; }",
    "to": "static $T $N($R a) { return a != a ? 0 : a <= ($R)$LOW ? $LOW : a >= ($R)$HIGH ? $HIGH : ($T)a; }",
    "bits": "static $T $N($R a) { $T r; memcpy(&r, &a, sizeof r); return r; }",
    "reduce": """static $T $N($T a, int exponent, int mantissa) {
    const $U ones = (($U)1 << $EB) - 1, bias = ones >> 1, drop = $MB - ($U)mantissa;
    $U w, e;
    if (a != a) return a;
    memcpy(&w, &a, sizeof w);
    if (drop > 0) w = (w + ((w >> drop) & 1) + ((($U)1 << (drop - 1)) - 1)) & ~((($U)1 << drop) - 1);
    e = (w >> $MB) & ones;
    if (exponent < $EB) {
        const $U reach = (($U)1 << (exponent - 1)) - 1, sign = w & (($U)1 << ($B - 1));
        if ((w & (ones << $MB)) > ((bias + reach) << $MB)) w = sign | (ones << $MB);
        else if (e < bias - reach || (w & (ones << $MB)) <= ((bias - reach) << $MB)) w = sign;
    }
    memcpy(&a, &w, sizeof w);
    return a;
}""",
}

HALVES = {
    "load_f16": """static float $N(uint16_t bits) {
    const uint32_t sign = (uint32_t)(bits & 0x8000) << 16, rest = bits & 0x7fff;
    uint32_t w;
    float a;
    if (rest < 0x400) {
        a = (float)rest / 16777216.0f;
        return sign ? -a : a;
    }
    w = sign | (rest < 0x7c00 ? (rest << 13) + 0x38000000 : 0x7f800000 | rest << 13);
    memcpy(&a, &w, sizeof a);
    return a;
}""",
    "save_f16": """static uint16_t $N(float a) {
    uint32_t w, sign;
    memcpy(&w, &a, sizeof w);
    sign = (w >> 16) & 0x8000;
    w &= 0x7fffffff;
    if (w > 0x7f800000) return (uint16_t)(sign | 0x7e00 | ((w >> 13) & 0x3ff));
    if (w >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
    if (w < 0x33000000) return (uint16_t)sign;
    if (w < 0x38800000) {
        const uint32_t drop = 126 - (w >> 23), m = (w & 0x7fffff) | 0x800000;
        return (uint16_t)(sign | ((m + ((m >> drop) & 1) + (((uint32_t)1 << (drop - 1)) - 1)) >> drop));
    }
    return (uint16_t)(sign | ((w + ((w >> 13) & 1) + 0xfff - 0x38000000) >> 13));
}""",
    "narrow_f16": """static float $N(double a) {
    float b = (float)a;
    if ((double)b != a && a == a && !isinf(a)) {
        uint32_t w;
        memcpy(&w, &b, sizeof w);
        if (fabs((double)b) > fabs(a)) w -= 1;
        w |= 1;
        memcpy(&b, &w, sizeof b);
    }
    return k_round_f16(b);
}""",
    "load_bf16": """static float $N(uint16_t bits) {
    const uint32_t w = (uint32_t)bits << 16;
    float a;
    memcpy(&a, &w, sizeof a);
    return a;
}""",
    "save_bf16": """static uint16_t $N(float a) {
    uint32_t w;
    memcpy(&w, &a, sizeof w);
    if (a != a) return (uint16_t)(((w >> 16) & 0x8000) | 0x7fc0);
    return (uint16_t)((w + ((w >> 16) & 1) + 0x7fff) >> 16);
}""",
    "narrow_bf16": "static float $N(double a) { return k_round_bf16((float)a); }",
    "round": "static float $N(float a) { return k_load_$D(k_save_$D(a)); }",
    "nextafter": """static float $N(float a, float b) {
    uint16_t w = k_save_$D(a);
    if (a != a || b != b) return a + b;
    if (a == b) return b;
    if (a == 0) w = (uint16_t)(b < 0 ? 0x8001 : 1);
    else w = (uint16_t)((a < b) == (a > 0) ? w + 1 : w - 1);
    return k_load_$D(w);
}""",
    "reduce": """static float $N(float a, int exponent, int mantissa) {
    const uint32_t ones = ((uint32_t)1 << $E) - 1, bias = ones >> 1, drop = $M - (uint32_t)mantissa;
    uint32_t w = k_save_$D(a), e;
    if (a != a) return a;
    if (drop > 0) w = (w + ((w >> drop) & 1) + (((uint32_t)1 << (drop - 1)) - 1)) & 0xffff & ~(((uint32_t)1 << drop) - 1);
    e = (w >> $M) & ones;
    if (exponent < $E) {
        const uint32_t reach = ((uint32_t)1 << (exponent - 1)) - 1, sign = w & 0x8000;
        if (e > bias + reach) w = sign | (ones << $M);
        else if (e <= bias - reach) w = sign;
    }
    return k_load_$D((uint16_t)w);
}""",
}


def of_halves(name: str, dtype: str) -> str | None:
    """The template of a function for f16 or bf16; None of what floats have for them."""
    text = HALVES.get(f"{name}_{dtype}") or HALVES.get(name)
    if text is None:
        return None
    exponent, mantissa = (5, 10) if dtype == "f16" else (8, 7)
    return text.replace("$D", dtype).replace("$E", str(exponent)).replace("$M", str(mantissa))


MOST_FACTOR = 50
"""Lengths with greater prime factors are convolutions."""

FOURIER = {
    "root": """static $T $N(long k, long n) {
    const long q = (4 * k + n / 2) / n;
    const $R t = ($R)1.57079632679489661923 * ($R)(4 * k - q * n) / ($R)n, c = cos$S(t), s = sin$S(t);
    const $T root = q % 2 ? k_complex_$D(s, c) : k_complex_$D(-c, s);
    return q % 4 == 0 || q % 4 == 1 ? k_complex_$D(-root.re, -root.im) : root;
}""",
    "fft": """static void $N($T *x, $T *y, const $T *roots, long n) {
    $T *a = x, *b = y;
    for (long l = 1, m = n; m > 1;) {
        long r = m % 4 ? 2 : 4;
        while (m % r) ++r;
        m /= r;
        for (long p = 0; p < m; ++p) for (long q = 0; q < l; ++q) {
            const $T *const f = a + p * l + q;
            $T *const g = b + p * r * l + q;
            if (r == 4) {
                const $T s = k_add_$D(f[0], f[2 * m * l]), d = k_sub_$D(f[0], f[2 * m * l]);
                const $T t = k_add_$D(f[m * l], f[3 * m * l]), e = k_sub_$D(f[m * l], f[3 * m * l]);
                g[0] = k_add_$D(s, t);
                g[l] = k_mul_$D(roots[p * l], k_complex_$D(d.re + e.im, d.im - e.re));
                g[2 * l] = k_mul_$D(roots[2 * p * l], k_sub_$D(s, t));
                g[3 * l] = k_mul_$D(roots[3 * p * l], k_complex_$D(d.re - e.im, d.im + e.re));
            } else if (r == 2) {
                g[0] = k_add_$D(f[0], f[m * l]);
                g[l] = k_mul_$D(roots[p * l], k_sub_$D(f[0], f[m * l]));
            } else for (long k = 0; k < r; ++k) {
                $T s = f[0];
                for (long j = 1, e = k; j < r; ++j, e = e + k < r ? e + k : e + k - r)
                    s = k_add_$D(s, k_mul_$D(roots[e * (n / r)], f[j * m * l]));
                g[k * l] = k_mul_$D(roots[p * k * l], s);
            }
        }
        l *= r;
        {
            $T *const done = b;
            b = a;
            a = done;
        }
    }
    if (a != x) memcpy(x, a, (size_t)n * sizeof *x);
}""",
    "chirp": """static void $N($T *f, $T *c, $T *spare, const $T *roots, long n, long m) {
    for (long j = 0; j < n; ++j) c[j] = k_root_$D((long)((uint64_t)j * (uint64_t)j % (uint64_t)(2 * n)), 2 * n);
    for (long j = 0; j < m; ++j) f[j] = k_complex_$D(0, 0);
    for (long j = 0; j < n; ++j) f[j] = f[j > 0 ? m - j : 0] = k_conj_$D(c[j]);
    k_fft_$D(f, spare, roots, m);
}""",
    "convolved": """static void $N($T *x, $T *spare, const $T *roots, const $T *f, const $T *c, long n, long m) {
    for (long j = 0; j < n; ++j) x[j] = k_mul_$D(x[j], c[j]);
    for (long j = n; j < m; ++j) x[j] = k_complex_$D(0, 0);
    k_fft_$D(x, spare, roots, m);
    for (long j = 0; j < m; ++j) x[j] = k_conj_$D(k_mul_$D(x[j], f[j]));
    k_fft_$D(x, spare, roots, m);
    for (long j = 0; j < n; ++j) x[j] = k_mul_$D(k_scaled_$D(1 / ($R)m, k_conj_$D(x[j])), c[j]);
}""",
}


def convolution_length(n: int) -> int:
    """The length of the convolution that a transform of n elements is; 0 if its factors are small."""
    left = n
    for factor in range(2, MOST_FACTOR + 1):
        while left % factor == 0:
            left //= factor
    return 0 if left == 1 else 1 << (2 * n - 2).bit_length()


def room(n: int) -> int:
    """How many complex numbers a transform of n elements needs besides: two arrays and roots, or those of a convolution."""
    m = convolution_length(n)
    return 2 * (m or n) + (0 if is_written_out(m or n) else m or n) + (m + n if m else 0)


def is_written_out(n: int) -> bool:
    """Whether the roots of this order are constants of the file: to compute them takes as long as short transforms do."""
    return n <= 256


def roots_of_unity(n: int) -> list[complex]:
    """exp(-2πi k / n) for each k, as the function of C computes them."""
    roots = []
    for k in range(n):
        quarter = (4 * k + n // 2) // n
        roots.append(cmath.rect(1, -math.pi / 2 * (4 * k - quarter * n) / n) * (1, -1j, -1, 1j)[quarter % 4])
    return roots
