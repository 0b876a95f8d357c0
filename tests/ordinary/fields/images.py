"""Images, signals, splines and optimisation, in the idioms of many hands."""

import collections
import copy
import functools
import itertools
import math
import operator
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, replace
from enum import Enum
from types import SimpleNamespace

import numpy as np
import numpy.linalg as la
from numpy.fft import fft, ifft, rfft
from numpy.lib.stride_tricks import sliding_window_view
from scipy import linalg, signal, stats


class Boundary(Enum):
    PERIODIC = "periodic"
    REFLECT = "reflect"


def gaussian_blur(img, sigma, radius=2, boundary=Boundary.REFLECT):
    k = np.array([math.exp(-(i**2) / (2 * 0.8**2)) for i in range(-radius, radius + 1)]) + 0 * sigma
    k /= k.sum()
    mode = "wrap" if boundary is Boundary.PERIODIC else "reflect"
    padded = np.pad(img, radius, mode=mode)
    rows = np.apply_along_axis(lambda r: np.convolve(r, k, mode="valid"), 1, padded)
    return np.apply_along_axis(lambda c: np.convolve(c, k, mode="valid"), 0, rows)


def perona_malik(img, kappa, steps=2, gamma=0.1):
    u = img.astype(float)
    deltaS = np.zeros_like(u)
    deltaE = deltaS.copy()
    for _ in range(steps):
        deltaS[:-1, :] = np.diff(u, axis=0)
        deltaE[:, :-1] = np.diff(u, axis=1)
        S = np.exp(-((deltaS / kappa) ** 2)) * deltaS
        E = np.exp(-((deltaE / kappa) ** 2)) * deltaE
        NS, EW = S.copy(), E.copy()
        NS[1:, :] -= S[:-1, :]
        EW[:, 1:] -= E[:, :-1]
        u += gamma * (NS + EW)
    return u


def integral_image_box(img, size=2):
    ii = np.zeros((img.shape[0] + 1, img.shape[1] + 1))
    ii[1:, 1:] = img.cumsum(0).cumsum(1)
    out = ii[size:, size:] - ii[:-size, size:] - ii[size:, :-size] + ii[:-size, :-size]
    return out / size**2


def harris(img, k=0.05):
    gy, gx = np.gradient(img)
    A, B, C = gx * gx, gx * gy, gy * gy
    w = [sliding_window_view(m, (3, 3)).sum(axis=(-1, -2)) for m in (A, B, C)]
    return w[0] * w[2] - w[1] ** 2 - k * (w[0] + w[2]) ** 2


def affine_warp(img, M):
    h, w = img.shape
    yy, xx = np.mgrid[0:h, 0:w]
    coords = np.stack([xx.ravel(), yy.ravel(), np.ones(h * w)])
    sx, sy = np.clip((M @ coords)[:2], 0.001, [[w - 1.001], [h - 1.001]])
    x0, y0 = np.floor(sx).astype(int), np.floor(sy).astype(int)
    fx, fy = sx - x0, sy - y0
    out = img[y0, x0] * (1 - fx) * (1 - fy) + img[y0, x0 + 1] * fx * (1 - fy) + img[y0 + 1, x0] * (1 - fx) * fy + img[y0 + 1, x0 + 1] * fx * fy
    return out.reshape(img.shape)


def rgb_to_hsv_value(rgb):
    r, g, b = np.moveaxis(rgb, -1, 0)
    v = np.max(rgb, axis=-1)
    c = v - np.min(rgb, axis=-1)
    s = np.divide(c, v, out=np.zeros_like(v), where=v > 0)
    return np.dstack([v, s, 0.5 * (r + g + b)])


def median_filter_1d(x, k=3):
    half = k // 2
    return np.array([np.median(x[max(0, i - half) : i + half + 1]) for i in range(len(x))])


def convolution_theorem(x, h):
    n = len(x) + len(h) - 1
    return np.real(ifft(fft(x, n) * fft(h, n)))


def power_spectral_density(x, fs, window="hann"):
    w = signal.get_window(window, len(x))
    X = rfft((x - x.mean()) * w)
    psd = np.abs(X) ** 2 / (fs * (w**2).sum())
    psd[1:-1] *= 2
    return psd


def goertzel(x, k):
    w = 2 * math.pi * k / len(x)
    s1 = s2 = 0.0
    for v in x:
        s1, s2 = v + 2 * math.cos(w) * s1 - s2, s1
    return s1 * s1 + s2 * s2 - 2 * math.cos(w) * s1 * s2


def cooley_tukey(x):
    n = len(x)
    if n == 1:
        return x + 0j
    even, odd = cooley_tukey(x[::2]), cooley_tukey(x[1::2])
    t = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
    return np.concatenate((even + t, even - t))


def spectrum_by_recursion(x):
    return np.abs(cooley_tukey(x)) ** 2


def lattice_filter(x, ks):
    b = [0.0] * (len(ks) + 1)
    y = []
    for sample in x:
        f = sample
        new_b = b[:]
        for i, k in reversed(list(enumerate(ks))):
            f = f - k * b[i]
            new_b[i + 1] = b[i] + k * f
        new_b[0] = f
        b = new_b
        y.append(f)
    return np.hstack(y)


class Wave(ABC):
    def __init__(self, **params):
        self.__dict__.update(params)

    @abstractmethod
    def __call__(self, t): ...

    def __add__(self, other):
        return Sum(parts=[self, other])


class Sine(Wave):
    def __call__(self, t):
        return self.amp * np.sin(2 * np.pi * self.freq * t)


class Decay(Wave):
    @property
    def rate(self):
        return 1.0 / self.tau

    def __call__(self, t):
        return np.exp(-t * self.rate)


class Sum(Wave):
    def __call__(self, t):
        return sum(p(t) for p in self.parts)


def synthesised(t, amp, freq, tau):
    wave = Sine(amp=amp, freq=freq) + Decay(tau=tau)
    return wave(t)


def b_spline_basis(i, p, u, knots):
    if p == 0:
        return np.where((knots[i] <= u) & (u < knots[i + 1]), 1.0, 0.0)
    left = right = 0.0
    if knots[i + p] != knots[i]:
        left = (u - knots[i]) / (knots[i + p] - knots[i]) * b_spline_basis(i, p - 1, u, knots)
    if knots[i + p + 1] != knots[i + 1]:
        right = (knots[i + p + 1] - u) / (knots[i + p + 1] - knots[i + 1]) * b_spline_basis(i + 1, p - 1, u, knots)
    return left + right


def b_spline_curve(u, control, degree=3, knots=(0, 0, 0, 0, 1, 2, 2, 2, 2)):
    return sum(b_spline_basis(i, degree, u, knots)[:, None] * c for i, c in enumerate(control))


def cubic_spline_by_banded_solve(x, y, xq):
    n = len(x)
    h = np.diff(x)
    A = np.eye(n)
    rhs = np.zeros(n)
    for i in range(1, n - 1):
        A[i, i - 1 : i + 2] = h[i - 1], 2 * (h[i - 1] + h[i]), h[i]
        rhs[i] = 6 * ((y[i + 1] - y[i]) / h[i] - (y[i] - y[i - 1]) / h[i - 1])
    m = la.solve(A, rhs)
    j = np.clip(np.searchsorted(x, xq) - 1, 0, n - 2)
    a, b = x[j + 1] - xq, xq - x[j]
    hj = h[j]
    return (m[j] * a**3 + m[j + 1] * b**3) / (6 * hj) + (y[j] / hj - m[j] * hj / 6) * a + (y[j + 1] / hj - m[j + 1] * hj / 6) * b


def rational_barycentric(xq, nodes, values):
    n = len(nodes)
    w = [functools.reduce(operator.mul, (nodes[i] - nodes[j] for j in range(n) if j != i)) ** -1 for i in range(n)]
    num = den = 0
    for wi, xi, fi in zip(w, nodes, values):
        num += wi * fi / (xq - xi)
        den += wi / (xq - xi)
    return num / den


@dataclass
class State:
    x: np.ndarray
    v: np.ndarray
    step: int = 0


def momentum_descent(x0, lr, beta, n=5):
    def gradient(x):
        g = np.zeros_like(x)
        g[:-1] += -400 * x[:-1] * (x[1:] - x[:-1] ** 2) - 2 * (1 - x[:-1])
        g[1:] += 200 * (x[1:] - x[:-1] ** 2)
        return g

    s = State(x0.copy(), np.zeros_like(x0))
    while s.step < n:
        s.v *= beta
        s.v -= lr * gradient(s.x)
        s.x += s.v
        s.step += 1
    return s.x


def nelder_centroid(simplex, alpha=1.0):
    best, *others, worst = simplex
    centroid = sum([best, *others]) / len(simplex[:-1])
    return centroid + alpha * (centroid - worst)


def levenberg_step(p, t, data, lam):
    def model(p):
        return p[0] * np.exp(-p[1] * t) + p[2]

    J = np.column_stack([np.exp(-p[1] * t), -p[0] * t * np.exp(-p[1] * t), np.ones_like(t)])
    r = data - model(p)
    H = J.T @ J
    H[np.diag_indices_from(H)] *= 1 + lam
    return p + linalg.solve(H, J.T @ r, assume_a="pos")


def augmented_lagrangian(x, lam, mu):
    h = [x[0] ** 2 + x[1] ** 2 - 1, x[0] - x[1]]
    f = -math.prod(x)
    return f + sum(l * c for l, c in zip(lam, h)) + mu / 2 * sum(c**2 for c in h)


def simulated_annealing_fixed(x0, moves, temperatures):
    x = x0
    for dx, T in zip(moves, temperatures):
        new = x + dx
        accept = 1 / (1 + np.exp((np.sum(new**2) - np.sum(x**2)) / T))
        x = accept * new + (1 - accept) * x
    return x


CONFIG = {"damping": 0.5, "mode": "soft", "window": [0.25, 0.5, 0.25]}


def configured(x, gain, config=None):
    cfg = SimpleNamespace(**{**CONFIG, **(config or {})})
    w = np.asarray(cfg.window)
    y = np.zeros_like(x)
    for i in range(1, len(x) - 1):
        y[i] = w @ x[i - 1 : i + 2]
    if cfg.mode == "soft":
        y = np.tanh(gain * y)
    elif cfg.mode == "hard":
        y = np.clip(gain * y, -1, 1)
    else:
        raise ValueError(f"unknown mode {cfg.mode!r}")
    return cfg.damping * y + (1 - cfg.damping) * x


class RunningStats:
    """Welford's algorithm."""

    def __init__(self):
        self.n, self.mean, self.m2 = 0, 0.0, 0.0

    def push(self, x):
        self.n += 1
        delta = x - self.mean
        self.mean += delta / self.n
        self.m2 += delta * (x - self.mean)
        return self

    @property
    def variance(self):
        return self.m2 / (self.n - 1) if self.n > 1 else 0.0


def welford(xs):
    s = functools.reduce(RunningStats.push, xs, RunningStats())
    return s.mean, s.variance


def ring_buffer_delay(x, feedback, delay=3):
    buffer = collections.deque([0.0] * delay, maxlen=delay)
    out = []
    for v in x:
        y = v + feedback * buffer[0]
        buffer.append(y)
        out.append(y)
    return np.array(out)


def game_of_life_soft(grid):
    n = sum(np.roll(grid, s, axis=(0, 1)) for s in itertools.product((-1, 0, 1), repeat=2) if s != (0, 0))
    return 1 / (1 + np.exp(-(4 * grid - (n - 2.5) ** 2)))


def trimmed(x, cut=1):
    s = np.sort(x)
    inner = s[cut:-cut]
    return inner.mean(), inner.std(ddof=1), np.ptp(x), np.percentile(x, 30)


def ranked_score(x, weights):
    order = np.argsort(-x)
    return np.sum(x[order] * weights), x[order[0]]


def toeplitz_prediction(r, order=3):
    return linalg.solve_toeplitz(r[:order], r[1 : order + 1]) if False else la.solve(linalg.toeplitz(r[:order]), r[1 : order + 1])


def levinson_durbin(r, order=3):
    a = np.zeros(order + 1)
    a[0] = 1.0
    e = r[0]
    for m in range(1, order + 1):
        k = -np.dot(a[:m], r[m:0:-1]) / e
        a[1 : m + 1] += k * a[m - 1 :: -1] if m > 1 else k * a[:1]
        e *= 1 - k**2
    return a, e


def quantile_pinball(theta, x, y, tau=0.9):
    r = y - x @ theta
    return np.mean(np.maximum(tau * r, (tau - 1) * r))


def updated_parameters(p, scale):
    @dataclass(frozen=True)
    class Params:
        a: float
        b: float

    base = Params(**p)
    doubled = replace(base, a=base.a * scale)
    snapshot = copy.copy(doubled)
    return {k: v * 2 for k, v in asdict(snapshot).items()} if False else {"a": snapshot.a * 2, "b": snapshot.b}


def normal_tail(x, mu, sigma):
    z = (x - mu) / sigma
    return stats.norm.sf(z), stats.norm.logpdf(x, loc=mu, scale=sigma)


def triangular_updates(A):
    L = np.tril(A)
    U = np.triu(A, 1)
    i, j = np.tril_indices(len(A), -1)
    L[i, j] *= 0.5
    d = np.diag(L).copy()
    np.fill_diagonal(L, 0)
    L[np.arange(len(A)), np.arange(len(A))] = d**2
    return L @ L.T + U.T


def polynomial_regression(x, y, deg=2):
    V = np.vander(x, deg + 1)
    c, *_ = la.lstsq(V, y, rcond=None)
    return np.poly1d([1.0, 2.0])(x).sum() + np.polyval(c, 0.5)


rng = np.random.default_rng(21)
N, U = rng.normal, rng.uniform
IMAGE = U(0.2, 1, (5, 6))
EXAMPLES = [
    (gaussian_blur, {"img": IMAGE, "sigma": 0.8}),
    (perona_malik, {"img": IMAGE, "kappa": 0.4}),
    (integral_image_box, {"img": IMAGE}),
    (harris, {"img": IMAGE}),
    (affine_warp, {"img": IMAGE, "M": np.array([[0.9, 0.11, 0.23], [-0.12, 0.95, 0.345], [0, 0, 1.0]])}),
    (rgb_to_hsv_value, {"rgb": U(0.1, 1, (2, 3, 3))}),
    (median_filter_1d, {"x": N(size=6)}),
    (convolution_theorem, {"x": N(size=5), "h": N(size=3)}),
    (power_spectral_density, {"x": N(size=8), "fs": 10.0}),
    (goertzel, {"x": N(size=8), "k": 3}),
    (spectrum_by_recursion, {"x": N(size=8)}),
    (lattice_filter, {"x": N(size=5), "ks": np.array([0.4, -0.2])}),
    (synthesised, {"t": np.linspace(0, 1, 5), "amp": 1.2, "freq": 0.7, "tau": 0.6}),
    (b_spline_curve, {"u": np.array([0.3, 0.8, 1.6]), "control": N(size=(5, 2))}),
    (cubic_spline_by_banded_solve, {"x": np.array([0.0, 1.0, 1.8, 3.0]), "y": N(size=4), "xq": np.array([0.4, 1.2, 2.5])}),
    (rational_barycentric, {"xq": np.array([0.4, 1.3]), "nodes": np.array([0.0, 1.0, 2.0]), "values": N(size=3)}),
    (momentum_descent, {"x0": np.array([-0.5, 0.4, 0.2]), "lr": 1e-3, "beta": 0.9}),
    (nelder_centroid, {"simplex": N(size=(3, 2))}),
    (levenberg_step, {"p": np.array([1.0, 0.5, 0.1]), "t": np.linspace(0, 3, 5), "data": U(0, 1, 5), "lam": 0.1}),
    (augmented_lagrangian, {"x": np.array([0.5, 0.8]), "lam": [0.1, 0.2], "mu": 2.0}),
    (simulated_annealing_fixed, {"x0": N(size=2), "moves": N(size=(3, 2)), "temperatures": [1.0, 0.5, 0.25]}),
    (configured, {"x": N(size=5), "gain": 1.3}),
    (configured, {"x": N(size=5), "gain": 0.4, "config": {"mode": "hard", "damping": 0.3}}),
    (welford, {"xs": N(size=5)}),
    (ring_buffer_delay, {"x": N(size=7), "feedback": 0.6}),
    (game_of_life_soft, {"grid": U(0, 1, (4, 4))}),
    (trimmed, {"x": N(size=6)}),
    (ranked_score, {"x": N(size=4), "weights": U(0, 1, 4)}),
    (toeplitz_prediction, {"r": np.array([1.0, 0.5, 0.2, 0.1])}),
    (levinson_durbin, {"r": np.array([1.0, 0.5, 0.2, 0.1])}),
    (quantile_pinball, {"theta": N(size=2), "x": N(size=(5, 2)), "y": N(size=5)}),
    (updated_parameters, {"p": {"a": 1.0, "b": 2.0}, "scale": 3.0}),
    (normal_tail, {"x": N(size=3), "mu": 0.1, "sigma": 1.3}),
    (triangular_updates, {"A": N(size=(3, 3))}),
    (polynomial_regression, {"x": np.array([0.1, 0.5, 1.0, 1.7]), "y": N(size=4)}),
]
