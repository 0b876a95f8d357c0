"""Right-hand sides of differential equations, and ways to solve them."""


import numpy as np
from numpy import cos, exp, sin, sqrt


def lotka_volterra(t, y, alpha=1.1, beta=0.4, delta=0.1, gamma=0.4):
    prey, predator = y
    return np.array([alpha * prey - beta * prey * predator, delta * prey * predator - gamma * predator])


def lorenz(y, sigma, rho, beta):
    dydt = np.zeros(3)
    dydt[0] = sigma * (y[1] - y[0])
    dydt[1] = y[0] * (rho - y[2]) - y[1]
    dydt[2] = y[0] * y[1] - beta * y[2]
    return dydt


def double_pendulum(state, m1=1.0, m2=1.0, l1=1.0, l2=0.8, g=9.81):
    th1, w1, th2, w2 = state
    d = th2 - th1
    den1 = (m1 + m2) * l1 - m2 * l1 * cos(d) * cos(d)
    den2 = (l2 / l1) * den1
    out = np.empty_like(state)
    out[0] = w1
    out[1] = (m2 * l1 * w1 * w1 * sin(d) * cos(d) + m2 * g * sin(th2) * cos(d) + m2 * l2 * w2 * w2 * sin(d) - (m1 + m2) * g * sin(th1)) / den1
    out[2] = w2
    out[3] = (-m2 * l2 * w2 * w2 * sin(d) * cos(d) + (m1 + m2) * (g * sin(th1) * cos(d) - l1 * w1 * w1 * sin(d) - g * sin(th2))) / den2
    return out


def van_der_pol_euler(x0, v0, mu, dt, steps):
    x, v = x0, v0
    for _ in range(steps):
        x, v = x + dt * v, v + dt * (mu * (1 - x**2) * v - x)
    return np.array([x, v])


def sir_trajectory(beta, gamma, i0, n_days):
    S = np.zeros(n_days)
    I = np.zeros(n_days)
    R = np.zeros(n_days)
    S[0], I[0], R[0] = 1 - i0, i0, 0
    for t in range(1, n_days):
        infections = beta * S[t - 1] * I[t - 1]
        recoveries = gamma * I[t - 1]
        S[t] = S[t - 1] - infections
        I[t] = I[t - 1] + infections - recoveries
        R[t] = R[t - 1] + recoveries
    return I


def runge_kutta_4(y0, k, h, n):
    def f(y):
        return np.array([y[1], -k * y[0]])

    y = y0.copy()
    for _ in range(n):
        k1 = f(y)
        k2 = f(y + h / 2 * k1)
        k3 = f(y + h / 2 * k2)
        k4 = f(y + h * k3)
        y += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def rk_with_tableau(y0, h, method="rk4"):
    tableaus = {
        "rk4": ([[], [0.5], [0, 0.5], [0, 0, 1]], [1 / 6, 1 / 3, 1 / 3, 1 / 6]),
        "heun": ([[], [1.0]], [0.5, 0.5]),
    }
    a, b = tableaus[method]
    ks = []
    for row in a:
        y = y0
        for coefficient, k in zip(row, ks):
            y = y + h * coefficient * k
        ks.append(-y * np.abs(y) + sin(y))
    return y0 + h * sum(bi * ki for bi, ki in zip(b, ks))


def leapfrog_harmonic(q, p, omega, dt, n):
    energy = []
    p = p - 0.5 * dt * omega**2 * q
    for _ in range(n):
        q = q + dt * p
        p = p - dt * omega**2 * q
        energy.append(0.5 * (p**2 + omega**2 * q**2))
    return np.array(energy)


def heat_equation_explicit(u0, kappa, dx, dt, n):
    u = u0.copy()
    for _ in range(n):
        un = u.copy()
        u[1:-1] = un[1:-1] + kappa * dt / dx**2 * (un[2:] - 2 * un[1:-1] + un[:-2])
        u[0] = 0
        u[-1] = 0
    return u


def heat_2d_in_place(u, alpha, steps):
    u = u.copy()
    for _ in range(steps):
        u[1:-1, 1:-1] += alpha * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return u


def wave_equation(f0, c, dx, dt, n):
    nx = len(f0)
    u = np.zeros((n, nx))
    u[0, :] = f0
    u[1, :] = f0
    r = (c * dt / dx) ** 2
    for t in range(1, n - 1):
        for i in range(1, nx - 1):
            u[t + 1, i] = 2 * u[t, i] - u[t - 1, i] + r * (u[t, i + 1] - 2 * u[t, i] + u[t, i - 1])
    return u[-1]


def burgers_upwind(u, nu, dt, dx):
    un = np.zeros_like(u)
    un[1:-1] = u[1:-1] - dt / dx * u[1:-1] * (u[1:-1] - u[:-2]) + nu * dt / dx**2 * (u[2:] - 2 * u[1:-1] + u[:-2])
    un[0], un[-1] = u[0], u[-1]
    return un


def crank_nicolson_step(u, r):
    n = u.shape[0]
    A = np.diag((1 + r) * np.ones(n)) + np.diag(-r / 2 * np.ones(n - 1), 1) + np.diag(-r / 2 * np.ones(n - 1), -1)
    b = (1 - r) * u
    b[1:] += r / 2 * u[:-1]
    b[:-1] += r / 2 * u[1:]
    return np.linalg.solve(A, b)


def thomas_algorithm(a, b, c, d):
    n = len(d)
    cp = np.zeros(n)
    dp = np.zeros(n)
    cp[0] = c[0] / b[0]
    dp[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        if i < n - 1:
            cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x = np.zeros(n)
    x[-1] = dp[-1]
    for i in reversed(range(n - 1)):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


class Rocket:
    def __init__(self, thrust, burn_rate, mass):
        self.thrust, self.burn_rate, self.mass = thrust, burn_rate, mass
        self.height = 0.0
        self.speed = 0.0

    def advance(self, dt):
        drag = 0.01 * self.speed**2
        self.speed += dt * ((self.thrust - drag) / self.mass - 9.81)
        self.height += dt * self.speed
        self.mass -= self.burn_rate * dt


def rocket_height(thrust, burn_rate, mass, dt):
    rocket = Rocket(thrust, burn_rate, mass)
    for _ in range(12):
        rocket.advance(dt)
    return rocket.height


def n_body_accelerations(positions, masses, G=1.0, eps=0.05):
    n = len(masses)
    acc = np.zeros((n, 3))
    for i in range(n):
        for j in range(n):
            if i == j:
                continue
            r = positions[j] - positions[i]
            acc[i] += G * masses[j] * r / (r @ r + eps**2) ** 1.5
    return acc


def kuramoto(theta, omega, K):
    n = theta.size
    return omega + K / n * np.sum(np.sin(theta[None, :] - theta[:, None]), axis=1)


def hodgkin_huxley(y, I_ext):
    V, m, h, n = y
    alpha_m = 0.1 * (V + 40) / (1 - exp(-(V + 40) / 10))
    beta_m = 4 * exp(-(V + 65) / 18)
    alpha_h = 0.07 * exp(-(V + 65) / 20)
    beta_h = 1 / (1 + exp(-(V + 35) / 10))
    alpha_n = 0.01 * (V + 55) / (1 - exp(-(V + 55) / 10))
    beta_n = 0.125 * exp(-(V + 65) / 80)
    dV = I_ext - 120 * m**3 * h * (V - 50) - 36 * n**4 * (V + 77) - 0.3 * (V + 54.4)
    return np.array([dV, alpha_m * (1 - m) - beta_m * m, alpha_h * (1 - h) - beta_h * h, alpha_n * (1 - n) - beta_n * n])


def brusselator_implicit(y0, A, B, h, iterations=6):
    """One backward Euler step by Newton's method."""
    y = y0
    for _ in range(iterations):
        u, v = y[0], y[1]
        f = np.array([A + u**2 * v - (B + 1) * u, B * u - u**2 * v])
        J = np.array([[2 * u * v - B - 1, u**2], [B - 2 * u * v, -(u**2)]])
        y = y - np.linalg.solve(np.eye(2) - h * J, y - y0 - h * f)
    return y


def orbital_energy(r, v, mu):
    return 0.5 * np.dot(v, v) - mu / np.linalg.norm(r)


def projectile_with_drag(v0, angle, c, dt=0.02, steps=40):
    pos = np.array([0.0, 0.0])
    vel = np.array([v0 * cos(angle), v0 * sin(angle)])
    g = np.array([0, -9.81])
    for _ in range(steps):
        speed = sqrt(vel[0] ** 2 + vel[1] ** 2)
        vel = vel + dt * (g - c * speed * vel)
        pos = pos + dt * vel
    return pos


def adams_bashforth(y0, lam, h, n):
    ys = [y0, y0 * (1 + lam * h)]
    for k in range(1, n):
        ys.append(ys[k] + h * (1.5 * lam * ys[k] - 0.5 * lam * ys[k - 1]))
    return ys[-1]


def henon_map(x, y, a, b, n):
    history = np.empty((n, 2))
    for k in range(n):
        x, y = 1 - a * x * x + y, b * x
        history[k] = x, y
    return history


def advection_periodic(u, c):
    flux = c * u
    return u - (flux - np.roll(flux, 1))


def reaction_diffusion(u, v, Du, Dv, F, k, steps):
    def laplacian(a):
        return np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a

    for _ in range(steps):
        uvv = u * v * v
        u += Du * laplacian(u) - uvv + F * (1 - u)
        v += Dv * laplacian(v) + uvv - (F + k) * v
    return u + 2 * v


rng = np.random.default_rng(1)
EXAMPLES = [
    (lotka_volterra, {"t": 0.0, "y": np.array([10.0, 5.0]), "alpha": 1.1}),
    (lorenz, {"y": np.array([1.0, 2.0, 3.0]), "sigma": 10.0, "rho": 28.0, "beta": 8 / 3}),
    (double_pendulum, {"state": np.array([0.3, 0.1, -0.4, 0.2])}),
    (van_der_pol_euler, {"x0": 1.0, "v0": 0.1, "mu": 1.5, "dt": 0.02, "steps": 20}),
    (sir_trajectory, {"beta": 0.4, "gamma": 0.1, "i0": 0.01, "n_days": 15}),
    (runge_kutta_4, {"y0": np.array([1.0, 0.3]), "k": 2.0, "h": 0.1, "n": 5}),
    (rk_with_tableau, {"y0": 0.7, "h": 0.1}),
    (rk_with_tableau, {"y0": np.array([0.7, -0.2]), "h": 0.1, "method": "heun"}),
    (leapfrog_harmonic, {"q": 1.0, "p": 0.2, "omega": 1.3, "dt": 0.1, "n": 8}),
    (heat_equation_explicit, {"u0": rng.uniform(0.5, 1, 8), "kappa": 0.1, "dx": 0.1, "dt": 0.01, "n": 5}),
    (heat_2d_in_place, {"u": rng.uniform(0, 1, (5, 6)), "alpha": 0.1, "steps": 3}),
    (wave_equation, {"f0": rng.uniform(0, 1, 6), "c": 1.0, "dx": 0.1, "dt": 0.05, "n": 5}),
    (burgers_upwind, {"u": rng.uniform(0.5, 1, 7), "nu": 0.05, "dt": 0.01, "dx": 0.1}),
    (crank_nicolson_step, {"u": rng.uniform(0, 1, 5), "r": 0.4}),
    (thomas_algorithm, {"a": rng.uniform(0, 1, 5), "b": rng.uniform(3, 4, 5), "c": rng.uniform(0, 1, 5), "d": rng.uniform(0, 1, 5)}),
    (rocket_height, {"thrust": 40.0, "burn_rate": 0.1, "mass": 2.0, "dt": 0.1}),
    (n_body_accelerations, {"positions": rng.normal(size=(3, 3)), "masses": rng.uniform(1, 2, 3)}),
    (kuramoto, {"theta": rng.uniform(0, 3, 4), "omega": rng.uniform(0, 1, 4), "K": 0.7}),
    (hodgkin_huxley, {"y": np.array([-62.0, 0.06, 0.6, 0.33]), "I_ext": 10.0}),
    (brusselator_implicit, {"y0": np.array([1.2, 2.0]), "A": 1.0, "B": 1.7, "h": 0.1}),
    (orbital_energy, {"r": rng.normal(size=3), "v": rng.normal(size=3), "mu": 1.3}),
    (projectile_with_drag, {"v0": 20.0, "angle": 0.7, "c": 0.02}),
    (adams_bashforth, {"y0": 1.0, "lam": -0.5, "h": 0.1, "n": 6}),
    (henon_map, {"x": 0.1, "y": 0.2, "a": 1.2, "b": 0.3, "n": 4}),
    (advection_periodic, {"u": rng.uniform(0, 1, 6), "c": 0.5}),
    (
        reaction_diffusion,
        {"u": rng.uniform(0, 1, (3, 4)), "v": rng.uniform(0, 1, (3, 4)), "Du": 0.16, "Dv": 0.08, "F": 0.035, "k": 0.06, "steps": 2},
    ),
]
