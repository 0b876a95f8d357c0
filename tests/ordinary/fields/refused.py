"""Functions that do other things for other values: each as people write it, and as the message says to write it."""

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq


def newton_until_converged(a, tol=1e-12):
    x = a
    while abs(x * x - a) > tol:
        x = 0.5 * (x + a / x)
    return x


def newton_until_converged_rewritten(a, tol=1e-12):
    x = a
    for _ in range(20):
        x = np.where(abs(x * x - a) > tol, 0.5 * (x + a / x), x)
    return x


def progressive_tax(income, brackets=((0, 0.1), (10, 0.2), (40, 0.3))):
    tax = 0.0
    for (lower, rate), (upper, _) in zip(brackets, [*brackets[1:], (float("inf"), 0)]):
        if income > lower:
            tax += rate * (min(income, upper) - lower)
    return tax


def progressive_tax_rewritten(income, brackets=((0, 0.1), (10, 0.2), (40, 0.3))):
    tax = 0.0
    for (lower, rate), (upper, _) in zip(brackets, [*brackets[1:], (float("inf"), 0)]):
        tax += np.where(income > lower, rate * (np.minimum(income, upper) - lower), 0)
    return tax


def gauss_with_pivoting(A, b):
    A, b = A.copy(), b.copy()
    n = len(b)
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[p, k]):
                p = i
        A[[k, p]] = A[[p, k]]
        b[[k, p]] = b[[p, k]]
        for i in range(k + 1, n):
            m = A[i, k] / A[k, k]
            A[i, k:] -= m * A[k, k:]
            b[i] -= m * b[k]
    x = np.zeros(n)
    for i in reversed(range(n)):
        x[i] = (b[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x


def gauss_with_pivoting_rewritten(A, b):
    A, b = A.copy(), b.copy()
    n = len(b)
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            p = np.where(abs(A[i, k]) > abs(A[p, k]), i, p)
        A[np.stack([k, p])] = A[np.stack([p, k])]
        b[np.stack([k, p])] = b[np.stack([p, k])]
        for i in range(k + 1, n):
            m = A[i, k] / A[k, k]
            A[i, k:] -= m * A[k, k:]
            b[i] -= m * b[k]
    x = np.zeros(n)
    for i in reversed(range(n)):
        x[i] = (b[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x


def semivariogram(coords, values, lag=1.0, tol=0.6):
    gamma, count = 0.0, 0
    for i in range(len(values)):
        for j in range(i):
            d = np.linalg.norm(coords[i] - coords[j])
            if abs(d - lag) < tol:
                gamma += 0.5 * (values[i] - values[j]) ** 2
                count += 1
    return gamma / count


def semivariogram_rewritten(coords, values, lag=1.0, tol=0.6):
    gamma, count = 0.0, 0
    for i in range(len(values)):
        for j in range(i):
            d = np.linalg.norm(coords[i] - coords[j])
            near = abs(d - lag) < tol
            gamma += np.where(near, 0.5 * (values[i] - values[j]) ** 2, 0)
            count += np.where(near, 1, 0)
    return gamma / count


def positive_mean(x):
    return np.mean([v for v in x if v > 0])


def positive_mean_rewritten(x):
    return np.sum(np.where(x > 0, x, 0)) / np.sum(np.where(x > 0, 1.0, 0.0))


@dataclass
class Spring:
    mass: float
    stiffness: float
    damping: float

    def acceleration(self, x, v):
        return -(self.stiffness * x + self.damping * v) / self.mass


def damped_spring(spring, x, v, dt, n=10):
    path = [x]
    for _ in range(n):
        v += spring.acceleration(x, v) * dt
        x += v * dt
        path.append(x)
    return np.array(path)


def damped_spring_rewritten(spring, x, v, dt, n=10):
    path = [x]
    for _ in range(n):
        v = v + spring.acceleration(x, v) * dt
        x = x + v * dt
        path.append(x)
    return np.array(path)


def decay_by_solve_ivp(y0, rate):
    return solve_ivp(lambda t, y: -rate * y, (0, 1), y0, rtol=1e-12, atol=1e-13, max_step=0.05).y[:, -1]


def decay_by_solve_ivp_rewritten(y0, rate, n=400):
    y, h = y0, 1 / n
    for _ in range(n):
        k1 = -rate * y
        k2 = -rate * (y + h / 2 * k1)
        k3 = -rate * (y + h / 2 * k2)
        k4 = -rate * (y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def yield_by_brentq(price, coupon, years=5):
    return brentq(lambda y: sum(coupon / (1 + y) ** t for t in range(1, years + 1)) + 100 / (1 + y) ** years - price, 0, 1, xtol=1e-15)


def yield_by_brentq_rewritten(price, coupon, years=5):
    y = 0.05
    for _ in range(12):
        value = sum(coupon / (1 + y) ** t for t in range(1, years + 1)) + 100 / (1 + y) ** years
        slope = -sum(t * coupon / (1 + y) ** (t + 1) for t in range(1, years + 1)) - years * 100 / (1 + y) ** (years + 1)
        y = y - (value - price) / slope
    return y


def rounded_steps(T, dt=0.1):
    y = 1.0
    for _ in range(int(T / dt)):
        y = y * (1 - 0.3 * T)
    return y


def rounded_steps_rewritten(T, dt=0.1, most=20):
    y = 1.0
    for step in range(most):
        y = np.where(step < (T / dt).astype(int), y * (1 - 0.3 * T), y)
    return y


rng = np.random.default_rng(5)
EXAMPLES = [
    (newton_until_converged, newton_until_converged_rewritten, {"a": 2.0}, "np.where(condition, a, b)"),
    (progressive_tax, progressive_tax_rewritten, {"income": 25.0}, "np.where"),
    (gauss_with_pivoting, gauss_with_pivoting_rewritten, {"A": rng.normal(size=(3, 3)), "b": rng.normal(size=3)}, "np.where"),
    (semivariogram, semivariogram_rewritten, {"coords": rng.normal(size=(4, 2)), "values": rng.normal(size=4)}, "np.where"),
    (positive_mean, positive_mean_rewritten, {"x": rng.normal(size=6)}, "np.where"),
    (damped_spring, damped_spring_rewritten, {"spring": Spring(1.5, 3.0, 0.2), "x": 1.0, "v": 0.2, "dt": 0.1}, "write x = x + y"),
    (decay_by_solve_ivp, decay_by_solve_ivp_rewritten, {"y0": np.array([1.0, 0.4]), "rate": 0.7}, "a fixed number of steps"),
    (yield_by_brentq, yield_by_brentq_rewritten, {"price": 95.0, "coupon": 5.0}, "a fixed number of steps, such as Newton's"),
    (rounded_steps, rounded_steps_rewritten, {"T": 0.55}, "write x.astype(int)"),
]
