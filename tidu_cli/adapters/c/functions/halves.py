"""Functions of halves, f16 and bf16: numbers in memory in 16 bits, computed with as floats that each operation rounds.

Rounding is to nearest, ties to even. A float has more than twice the digits of a half, so that a sum, product, quotient or square
root of halves, rounded to a float first, rounds to the same half as the exact value. A double is rounded at once to f16, and by
way of a float to bf16, as NumPy does it.
"""

from __future__ import annotations

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
