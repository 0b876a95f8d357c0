"""Functions of real numbers in C, each written into a file that calls it.

$N is the name, $T the type, $S the suffix of functions in math.h, $R another type that it takes. `elements.function` has the other
words.
"""

from __future__ import annotations

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
