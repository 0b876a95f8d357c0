"""Discrete Fourier transforms in C, of any length: of small factors one after the other, of others as a convolution.

The first are those of T. G. Stockham, which leave elements in order (C. Van Loan, "Computational frameworks for the fast Fourier
transform", 1992, section 1.7): a pass a factor, from one array to another. Lengths with a large prime factor are a convolution with
exp(πi j² / n) (L. I. Bluestein, 1970) of a length that is a power of 2. Roots of unity are computed from angles up to π/4, so that
errors grow as the logarithm of the length does. Words are those of `complexes`.
"""

from __future__ import annotations

import cmath
import math

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
