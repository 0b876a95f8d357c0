"""Linear algebra by hand, quadrature, interpolation, optimization and test functions."""

import math

import numpy as np


def rosenbrock(x):
    return sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0)


def ackley(x, a=20, b=0.2, c=2 * math.pi):
    d = len(x)
    return -a * np.exp(-b * np.sqrt(np.sum(x**2) / d)) - np.exp(np.sum(np.cos(c * x)) / d) + a + math.e


def rastrigin(x):
    return 10 * len(x) + sum([xi**2 - 10 * np.cos(2 * np.pi * xi) for xi in x])


def himmelblau(p):
    x, y = p
    return (x**2 + y - 11) ** 2 + (x + y**2 - 7) ** 2


def styblinski_tang(x):
    total = 0
    for xi in x:
        total += xi**4 - 16 * xi**2 + 5 * xi
    return total / 2


def beale(x, y):
    return (1.5 - x + x * y) ** 2 + (2.25 - x + x * y**2) ** 2 + (2.625 - x + x * y**3) ** 2


def cholesky(A):
    n = A.shape[0]
    L = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = 0.0
            for k in range(j):
                s += L[i, k] * L[j, k]
            if i == j:
                L[i, j] = np.sqrt(A[i, i] - s)
            else:
                L[i, j] = (A[i, j] - s) / L[j, j]
    return L


def gauss_elimination(A, b):
    A, b = A.copy(), b.copy()
    n = len(b)
    for k in range(n - 1):
        for i in range(k + 1, n):
            factor = A[i, k] / A[k, k]
            A[i, k:] -= factor * A[k, k:]
            b[i] -= factor * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x


def lu_doolittle(A):
    n = len(A)
    L, U = np.eye(n), np.array(A)
    for k in range(n):
        L[k + 1 :, k] = U[k + 1 :, k] / U[k, k]
        U[k + 1 :] -= np.outer(L[k + 1 :, k], U[k])
    return L @ np.triu(U), np.prod(np.diag(U))


def gram_schmidt(A):
    Q = []
    for a in A.T:
        for q in Q:
            a = a - (q @ a) * q
        Q.append(a / np.linalg.norm(a))
    return np.array(Q).T


def householder_qr(A):
    R = A.copy()
    m, n = A.shape
    for k in range(n):
        x = R[k:, k]
        e = np.zeros(len(x))
        e[0] = 1
        v = x + np.sign(x[0]) * np.linalg.norm(x) * e
        v = v / np.linalg.norm(v)
        R[k:, k:] -= 2 * np.outer(v, v @ R[k:, k:])
    return np.abs(np.diag(R))


def power_iteration(A, v, n=20):
    for _ in range(n):
        v = A @ v
        v /= np.linalg.norm(v)
    return v @ A @ v


def conjugate_gradient(A, b, n=3):
    x = np.zeros_like(b)
    r = b - A @ x
    p = r.copy()
    rs = r @ r
    for _ in range(n):
        Ap = A @ p
        alpha = rs / (p @ Ap)
        x += alpha * p
        r -= alpha * Ap
        new = r @ r
        p = r + new / rs * p
        rs = new
    return x


def jacobi_iteration(A, b, n=10):
    D = np.diag(A)
    R = A - np.diagflat(D)
    x = np.zeros(len(b))
    for _ in range(n):
        x = (b - R @ x) / D
    return x


def gauss_seidel(A, b, sweeps=5):
    x = np.zeros(len(b))
    for _ in range(sweeps):
        for i in range(len(b)):
            x[i] = (b[i] - A[i, :i] @ x[:i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x


def determinant(A):
    if A.shape == (1, 1):
        return A[0, 0]
    total = 0
    for j in range(A.shape[1]):
        minor = np.delete(A[1:], j, axis=1)
        total += (-1) ** j * A[0, j] * determinant(minor)
    return total


def matrix_power_by_squaring(A, n):
    result = np.eye(len(A))
    while n > 0:
        if n % 2:
            result = result @ A
        A = A @ A
        n //= 2
    return result


def expm_taylor(A, terms=12):
    result = np.eye(A.shape[0])
    term = np.eye(A.shape[0])
    for k in range(1, terms):
        term = term @ A / k
        result += term
    return result


def trapezoid(y, x):
    return np.sum((y[1:] + y[:-1]) / 2 * np.diff(x))


def simpson(f, a, b, n=10):
    h = (b - a) / n
    x = [a + i * h for i in range(n + 1)]
    return h / 3 * (f(x[0]) + 4 * sum(f(xi) for xi in x[1:-1:2]) + 2 * sum(f(xi) for xi in x[2:-1:2]) + f(x[-1]))


def gauss_legendre_area(a, b, c):
    nodes, weights = np.polynomial.legendre.leggauss(5)
    x = 0.5 * (b - a) * nodes + 0.5 * (b + a)
    return 0.5 * (b - a) * np.sum(weights * np.exp(-c * x**2))


def romberg(a, b):
    def f(x):
        return np.exp(np.sin(x))

    levels = 4
    R = np.zeros((levels, levels))
    h = b - a
    R[0, 0] = h / 2 * (f(a) + f(b))
    for i in range(1, levels):
        h /= 2
        R[i, 0] = 0.5 * R[i - 1, 0] + h * sum(f(a + k * h) for k in range(1, 2**i, 2))
        for j in range(1, i + 1):
            R[i, j] = R[i, j - 1] + (R[i, j - 1] - R[i - 1, j - 1]) / (4**j - 1)
    return R[-1, -1]


def newton_sqrt(a, n=6):
    x = a
    for _ in range(n):
        x = 0.5 * (x + a / x)
    return x


def secant(c, x0, x1, n=5):
    f = lambda x: x**3 + x - c  # noqa: E731
    for _ in range(n):
        x0, x1 = x1, x1 - f(x1) * (x1 - x0) / (f(x1) - f(x0))
    return x1


def gradient_descent(A, b, lr, steps=5):
    x = np.zeros(b.shape)
    velocity = np.zeros(b.shape)
    for _ in range(steps):
        gradient = A @ x - b
        velocity *= 0.9
        velocity -= lr * gradient
        x += velocity
    return 0.5 * x @ A @ x - b @ x


def lagrange_interpolation(xs, ys, x):
    total = 0
    for i in range(len(xs)):
        term = ys[i]
        for j in range(len(xs)):
            if j != i:
                term = term * (x - xs[j]) / (xs[i] - xs[j])
        total += term
    return total


def newton_divided_differences(xs, ys, x):
    n = len(xs)
    coefficients = ys.copy()
    for j in range(1, n):
        coefficients[j:] = (coefficients[j:] - coefficients[j - 1 : -1]) / (xs[j:] - xs[: n - j])
    value = coefficients[-1]
    for k in range(n - 2, -1, -1):
        value = value * (x - xs[k]) + coefficients[k]
    return value


def natural_cubic_spline(x, y):
    n = len(x) - 1
    h = np.diff(x)
    A = np.zeros((n + 1, n + 1))
    rhs = np.zeros(n + 1)
    A[0, 0] = A[n, n] = 1
    for i in range(1, n):
        A[i, i - 1] = h[i - 1]
        A[i, i] = 2 * (h[i - 1] + h[i])
        A[i, i + 1] = h[i]
        rhs[i] = 6 * ((y[i + 1] - y[i]) / h[i] - (y[i] - y[i - 1]) / h[i - 1])
    return np.linalg.solve(A, rhs)


def horner(coefficients, x):
    value = 0
    for c in reversed(coefficients):
        value = value * x + c
    return value


def chebyshev(coefficients, x):
    t0, t1 = 1, x
    total = coefficients[0] + coefficients[1] * x
    for c in coefficients[2:]:
        t0, t1 = t1, 2 * x * t1 - t0
        total += c * t1
    return total


def legendre_table(x, n=5):
    P = np.ones((n + 1, len(x)))
    P[1] = x
    for k in range(1, n):
        P[k + 1] = ((2 * k + 1) * x * P[k] - k * P[k - 1]) / (k + 1)
    return P


def finite_difference_gradient(u, dx):
    g = np.empty_like(u)
    g[1:-1] = (u[2:] - u[:-2]) / (2 * dx)
    g[0] = (u[1] - u[0]) / dx
    g[-1] = (u[-1] - u[-2]) / dx
    return g


def upsample(x, factor=2):
    out = np.zeros(len(x) * factor)
    out[::factor] = x
    out[1::factor] = 0.5 * (x + np.append(x[1:], x[-1]))
    return out


def histogram_soft(x, centers, width):
    counts = np.zeros(len(centers))
    for value in x:
        for k, c in enumerate(centers):
            counts[k] += np.exp(-(((value - c) / width) ** 2))
    return counts / counts.sum()


def floyd_warshall_soft(W):
    D = W.copy()
    n = D.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                D[i, j] = -np.logaddexp(-D[i, j], -(D[i, k] + D[k, j]))
    return D


def edit_distance_soft(a, b, gap):
    n, m = len(a), len(b)
    D = np.zeros((n + 1, m + 1))
    D[:, 0] = gap * np.arange(n + 1)
    D[0, :] = gap * np.arange(m + 1)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            options = [D[i - 1, j] + gap, D[i, j - 1] + gap, D[i - 1, j - 1] + (a[i - 1] - b[j - 1]) ** 2]
            D[i, j] = -np.log(sum(np.exp(-o) for o in options))
    return D[n, m]


def page_rank(W, damping=0.85, n=8):
    P = W / W.sum(axis=0)
    r = np.ones(len(W)) / len(W)
    for _ in range(n):
        r = (1 - damping) / len(W) + damping * P @ r
    return r


def leslie_population(fecundity, survival, n0, years=4):
    k = len(fecundity)
    L = np.zeros((k, k))
    L[0] = fecundity
    L[np.arange(1, k), np.arange(k - 1)] = survival
    history = [n0]
    while len(history) <= years:
        history.append(L @ history[-1])
    return np.array(history)


def fibonacci_growth(a, b, n=6, memo=None):
    memo = {0: a, 1: b} if memo is None else memo
    if n not in memo:
        memo[n] = fibonacci_growth(a, b, n - 1, memo) + 0.5 * fibonacci_growth(a, b, n - 2, memo)
    return memo[n]


rng = np.random.default_rng(8)
N, U = rng.normal, rng.uniform
M = N(size=(3, 3)) + 4 * np.eye(3)
SPD = M @ M.T
EXAMPLES = [
    (rosenbrock, {"x": N(size=4)}),
    (ackley, {"x": N(size=3)}),
    (rastrigin, {"x": N(size=3)}),
    (himmelblau, {"p": N(size=2)}),
    (styblinski_tang, {"x": N(size=3)}),
    (beale, {"x": 0.7, "y": 0.3}),
    (cholesky, {"A": SPD}),
    (gauss_elimination, {"A": M, "b": N(size=3)}),
    (lu_doolittle, {"A": M}),
    (gram_schmidt, {"A": M}),
    (householder_qr, {"A": N(size=(4, 3))}),
    (power_iteration, {"A": SPD, "v": N(size=3)}),
    (conjugate_gradient, {"A": SPD, "b": N(size=3), "n": 2}),
    (jacobi_iteration, {"A": M, "b": N(size=3), "n": 5}),
    (gauss_seidel, {"A": M, "b": N(size=3)}),
    (determinant, {"A": M}),
    (matrix_power_by_squaring, {"A": 0.3 * M, "n": 5}),
    (expm_taylor, {"A": 0.3 * M}),
    (trapezoid, {"y": N(size=5), "x": np.linspace(0, 2, 5)}),
    (simpson, {"f": np.tanh, "a": 0.1, "b": 1.3}),
    (gauss_legendre_area, {"a": 0.1, "b": 1.2, "c": 0.8}),
    (romberg, {"a": 0.1, "b": 1.1}),
    (newton_sqrt, {"a": 2.3}),
    (secant, {"c": 3.0, "x0": 1.0, "x1": 1.4}),
    (gradient_descent, {"A": SPD / 10, "b": N(size=3), "lr": 0.1}),
    (lagrange_interpolation, {"xs": np.array([0.0, 1.0, 2.5]), "ys": N(size=3), "x": 1.3}),
    (newton_divided_differences, {"xs": np.array([0.0, 1.0, 2.5, 3.0]), "ys": N(size=4), "x": 1.3}),
    (natural_cubic_spline, {"x": np.array([0.0, 1.0, 2.5, 3.0]), "y": N(size=4)}),
    (horner, {"coefficients": N(size=4), "x": 0.7}),
    (chebyshev, {"coefficients": N(size=5), "x": 0.4}),
    (legendre_table, {"x": U(-1, 1, 3)}),
    (finite_difference_gradient, {"u": N(size=6), "dx": 0.2}),
    (upsample, {"x": N(size=4)}),
    (histogram_soft, {"x": N(size=4), "centers": np.array([-1.0, 0.0, 1.0]), "width": 0.8}),
    (floyd_warshall_soft, {"W": U(1, 3, (3, 3))}),
    (edit_distance_soft, {"a": N(size=3), "b": N(size=3), "gap": 0.7}),
    (page_rank, {"W": U(0.1, 1, (4, 4))}),
    (leslie_population, {"fecundity": U(0.5, 1, 3), "survival": U(0.3, 0.9, 2), "n0": U(1, 2, 3)}),
    (fibonacci_growth, {"a": 1.0, "b": 1.5}),
]
