"""Epidemiology, ecology, pharmacology, genetics, neurons; chemistry and thermodynamics."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from itertools import accumulate, combinations, product
from typing import NamedTuple

import numpy as np
from scipy import special
from scipy.integrate import simpson
from scipy.linalg import cho_factor, cho_solve, expm
from scipy.special import expit, gammaln, xlogy

R_GAS = 8.314462618


class Rates(NamedTuple):
    beta: float
    sigma: float
    gamma: float


def seir(state, rates, contact):
    S, E, I, R = state
    N = S.sum() + E.sum() + I.sum() + R.sum()
    force = rates.beta * contact @ I / N
    return np.stack([-S * force, S * force - rates.sigma * E, rates.sigma * E - rates.gamma * I, rates.gamma * I])


def seir_peak(rates, contact, n=8, dt=0.5):
    groups = contact.shape[0]
    state = np.zeros((4, groups))
    state[0] = 0.99
    state[2, :] = 0.01
    infected = []
    for _ in range(n):
        state = state + dt * seir(state, rates, contact)
        infected.append(state[2].sum())
    return np.array(infected)


def next_generation_r0(beta, gamma, contact):
    K = beta / gamma * contact
    v = np.ones(len(contact))
    for _ in range(60):
        v = K @ v
        v /= np.linalg.norm(v)
    return v @ K @ v


def renewal_equation(R, w, seed=1.0):
    I = np.zeros(len(R) + 1)
    I[0] = seed
    for t in range(1, len(I)):
        for s in range(min(t, len(w))):
            I[t] += R[t - 1] * w[s] * I[t - 1 - s]
    return I


def one_compartment(t, dose, ka, CL, V):
    ke = CL / V
    return dose * ka / (V * (ka - ke)) * (np.exp(-ke * t) - np.exp(-ka * t))


def repeated_doses(times, doses, ke, V):
    conc = np.zeros_like(times)
    for t_dose, amount in doses:
        after = times >= t_dose
        conc += np.where(after, amount / V * np.exp(-ke * (times - t_dose)), 0)
    return conc


def auc_trapezoid(t, c, *, log_down=False):
    total = 0
    for i in range(len(t) - 1):
        if log_down and i > 1:
            total += (c[i] - c[i + 1]) / np.log(c[i] / c[i + 1]) * (t[i + 1] - t[i])
        else:
            total += 0.5 * (c[i] + c[i + 1]) * (t[i + 1] - t[i])
    return total


def hill(c, emax, ec50, n, e0=0.0):
    return e0 + emax * c**n / (ec50**n + c**n)


def two_compartment_matrix(cl, q, v1, v2, t):
    K = np.array([[-(cl + q) / v1, q / v2], [q / v1, -q / v2]])
    return expm(K * t) @ np.array([1.0, 0.0])


def hardy_weinberg(p):
    freqs = {"AA": p**2, "Aa": 2 * p * (1 - p), "aa": (1 - p) ** 2}
    assert set(freqs) == {"AA", "Aa", "aa"}
    return sum(-f * np.log(f) for f in freqs.values())


def wright_fisher_selection(p, s, h, generations):
    history = [p]
    for _ in range(generations):
        q = 1 - p
        w = p**2 * (1 + s) + 2 * p * q * (1 + h * s) + q**2
        p = (p**2 * (1 + s) + p * q * (1 + h * s)) / w
        history.append(p)
    return np.asarray(history)


def jukes_cantor_likelihood(t, seq1="ACGTAC", seq2="ACGAAC"):
    same = 0.25 + 0.75 * np.exp(-4 / 3 * t)
    diff = 0.25 - 0.25 * np.exp(-4 / 3 * t)
    return np.sum([np.log(0.25 * (same if a == b else diff)) for a, b in zip(seq1, seq2)])


def felsenstein_pruning(lengths, tree=(("A", "C"), "G")):
    states = "ACGT"

    def transition(t):
        e = np.exp(-4 / 3 * t)
        P = np.full((4, 4), 0.25 * (1 - e))
        np.fill_diagonal(P, 0.25 + 0.75 * e)
        return P

    it = iter(lengths)

    def partial_likelihood(node):
        if isinstance(node, str):
            vec = np.zeros(4)
            vec[states.index(node)] = 1
            return vec
        left, right = node
        l = transition(next(it)) @ partial_likelihood(left)
        r = transition(next(it)) @ partial_likelihood(right)
        return l * r

    return np.log(0.25 * partial_likelihood(tree).sum())


def smith_waterman_score(similarity, gap):
    n, m = similarity.shape
    H = np.zeros((n + 1, m + 1))
    for i, j in product(range(1, n + 1), range(1, m + 1)):
        H[i, j] = max_smooth(H[i - 1, j - 1] + similarity[i - 1, j - 1], H[i - 1, j] - gap, H[i, j - 1] - gap)
    return H[-1, -1]


def max_smooth(*args, t=0.3):
    return t * special.logsumexp(np.array(args) / t)


def shannon_diversity(counts):
    p = counts / counts.sum()
    return -xlogy(p, p).sum(), 1 / np.sum(p**2)


def ricker_stock(N0, r, K, years=6):
    return np.array(list(accumulate(range(years), lambda N, _: N * np.exp(r * (1 - N / K)), initial=N0)))


def food_web(N, A, r, h=0.1):
    dN = r * N
    for (i, j), a in np.ndenumerate(A):
        if i != j:
            flow = a * N[i] * N[j] / (1 + h * N[j])
            dN[i] += 0.3 * flow
            dN[j] -= flow
    return dN


def integrate_and_fire_rate(I, tau=10.0, v_th=1.0):
    return 1 / (2.0 + tau * np.log(I / (I - v_th)))


def alpha_synapses(t, spikes, g, tau):
    g_total = np.zeros(t.shape)
    for s, w in zip(spikes, g):
        x = np.clip(t - s, 0, None) / tau
        g_total += w * x * np.exp(1 - x)
    return g_total


def fitzhugh_nagumo(v, w, I, params=None):
    p = {"a": 0.7, "b": 0.8, "tau": 12.5}
    if params:
        p.update(params)
    return v - v**3 / 3 - w + I, (v + p["a"] - p["b"] * w) / p["tau"]


@dataclass(frozen=True)
class Species:
    name: str
    coeffs: tuple

    def cp(self, T):
        return R_GAS * reduce(lambda acc, c: acc * T + c, reversed(self.coeffs), 0.0)


def adiabatic_flame(T0, dH, n=6):
    mix = [Species("N2", (3.5, 2e-4)), Species("CO2", (2.4, 8.7e-3, -6e-6))]
    T = T0
    for _ in range(n):
        T = T0 + dH / sum(s.cp(T) for s in mix)
    return T


def antoine(T, A=8.07131, B=1730.63, C=233.426):
    return 10 ** (A - B / (C + T))


def raoult_bubble_point(x, T, species=("benzene", "toluene")):
    table = {"benzene": (6.90565, 1211.033, 220.79), "toluene": (6.95464, 1344.8, 219.482)}
    p = [xi * antoine(T, *table[s]) for xi, s in zip(x, species)]
    P = sum(p)
    y = np.array(p) / P
    return P, y


def peng_robinson(T, V, Tc, Pc, omega):
    a = 0.45724 * R_GAS**2 * Tc**2 / Pc
    b = 0.0778 * R_GAS * Tc / Pc
    kappa = 0.37464 + 1.54226 * omega - 0.26992 * omega**2
    alpha = (1 + kappa * (1 - np.sqrt(T / Tc))) ** 2
    return R_GAS * T / (V - b) - a * alpha / (V * (V + b) + b * (V - b))


def rachford_rice(z, K, beta0=0.5, iterations=12):
    beta = beta0
    for _ in range(iterations):
        f = np.sum(z * (K - 1) / (1 + beta * (K - 1)))
        df = -np.sum(z * (K - 1) ** 2 / (1 + beta * (K - 1)) ** 2)
        beta -= f / df
    x = z / (1 + beta * (K - 1))
    return beta, x


def titration_ph(Ca, pKa, ratio):
    return pKa + np.log10(ratio / (1 - ratio)) + 0 * Ca


def nernst(E0, n, **concentrations):
    Q = concentrations["ox"] / concentrations["red"]
    return E0 - R_GAS * 298.15 / (n * 96485.0) * np.log(Q)


def debye_huckel(charges, molalities, A=0.509):
    I = 0.5 * sum(m * z**2 for m, z in zip(molalities, charges))
    return {f"ion{k}": -A * z**2 * np.sqrt(I) / (1 + np.sqrt(I)) for k, z in enumerate(charges)}


def batch_reactor(c0, k, stoich, orders, dt=0.05, n=6):
    c = np.array(c0)
    for _ in range(n):
        rates = np.empty(len(k))
        for r in range(len(k)):
            rates[r] = k[r] * np.prod(c ** orders[r])
        c += dt * stoich @ rates
    return c


def gillespie_mean_field(x, k_on, k_off):
    dx = np.zeros(2)
    dx[0] += k_off * x[1]
    dx[0] -= k_on * x[0]
    dx[1] = -dx[0]
    return dx


def morse_chain(r, D=1.0, a=1.5, re=1.0):
    E = 0
    for i, j in combinations(range(len(r)), 2):
        d = np.linalg.norm(r[i] - r[j])
        E += D * (1 - np.exp(-a * (d - re))) ** 2
    return E


def dihedral(p):
    b1, b2, b3 = p[1] - p[0], p[2] - p[1], p[3] - p[2]
    n1, n2 = np.cross(b1, b2), np.cross(b2, b3)
    m = np.cross(n1, b2 / np.linalg.norm(b2))
    return np.arctan2(m @ n2, n1 @ n2)


def huckel_energies(beta, edges, n):
    H = np.zeros((n, n))
    for i, j in edges:
        H[i, j] = H[j, i] = beta
    w, _ = np.linalg.eigh(H + np.diag(0.1 * np.arange(n)))
    return w[: n // 2].sum() * 2


def hartree_energy(coeffs, exponents):
    n = len(coeffs)
    S = np.array([[(np.pi / (exponents[i] + exponents[j])) ** 1.5 for j in range(n)] for i in range(n)])
    T = np.array(
        [
            [3 * exponents[i] * exponents[j] * np.pi**1.5 / (exponents[i] + exponents[j]) ** 2.5 for j in range(n)]
            for i in range(n)
        ]
    )
    V = np.array([[-2 * np.pi / (exponents[i] + exponents[j]) for j in range(n)] for i in range(n)])
    return coeffs @ (T + V) @ coeffs / (coeffs @ S @ coeffs)


def langmuir_fit_residuals(params, pressures, loadings):
    model = partial(lambda p, q, b: q * b * p / (1 + b * p), q=params["qmax"], b=params["b"])
    return np.fromiter((model(p) - n for p, n in zip(pressures, loadings)), dtype=float)


def diffusion_column(c, D, v, dz):
    dc = np.zeros_like(c)
    for i, ci in enumerate(c):
        left = c[i - 1] if i > 0 else 1.0
        right = c[i + 1] if i < len(c) - 1 else ci
        dc[i] = D * (left - 2 * ci + right) / dz**2 - v * (ci - left) / dz
    return dc


def dose_response_log_likelihood(theta, doses, n, k):
    p = expit(theta[0] + theta[1] * np.log(doses))
    logp = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.sum(logp + k * np.log(p) + (n - k) * np.log1p(-p))


def phylogenetic_gls(y, X, C):
    c = cho_factor(C)
    beta = np.linalg.solve(X.T @ cho_solve(c, X), X.T @ cho_solve(c, y))
    r = y - X @ beta
    return r @ cho_solve(c, r), beta


def degree_days(tmin, tmax, base=10.0):
    out = []
    for lo, hi in zip(tmin, tmax):
        mean = (lo + hi) / 2
        out.append(np.clip(mean - base, 0, 20))
    return np.cumsum(out)


def spectrum_area(x, centers, widths, heights):
    y = np.zeros(x.shape)
    for c, w, h in zip(centers, widths, heights):
        y += h * np.exp(-0.5 * ((x - c) / w) ** 2)
    return simpson(y, x=x)


def count_by_class(labels, weights):
    totals = defaultdict(float)
    for label, w in zip(labels, weights):
        totals[label] += w
    return {k: totals[k] for k in sorted(totals)}


def stirling_entropy(n, k=3):
    @lru_cache(maxsize=None)
    def ways(i, j):
        if j == 0:
            return 1.0
        if i < j:
            return 0.0
        return ways(i - 1, j) + ways(i - 1, j - 1)

    return np.log(ways(5, k)) * n


rng = np.random.default_rng(12)
N, U = rng.normal, rng.uniform
CONTACT = np.array([[2.0, 0.5], [0.6, 1.5]])
EXAMPLES = [
    (seir, {"state": U(0.1, 1, (4, 2)), "rates": Rates(0.5, 0.2, 0.1), "contact": CONTACT}),
    (seir_peak, {"rates": Rates(0.5, 0.2, 0.1), "contact": CONTACT}),
    (next_generation_r0, {"beta": 0.3, "gamma": 0.2, "contact": CONTACT}),
    (renewal_equation, {"R": U(0.8, 1.5, 5), "w": np.array([0.2, 0.5, 0.3])}),
    (one_compartment, {"t": np.array([0.5, 1.0, 4.0]), "dose": 100.0, "ka": 1.1, "CL": 2.0, "V": 20.0}),
    (repeated_doses, {"times": np.array([0.5, 3.0, 7.0]), "doses": [(0.0, 100.0), (2.0, 50.0)], "ke": 0.2, "V": 10.0}),
    (auc_trapezoid, {"t": np.array([0.0, 1.0, 2.0, 4.0, 8.0]), "c": np.array([0.1, 3.0, 2.5, 1.2, 0.3])}),
    (auc_trapezoid, {"t": np.array([0.0, 1.0, 2.0, 4.0, 8.0]), "c": np.array([0.1, 3.0, 2.5, 1.2, 0.3]), "log_down": True}),
    (hill, {"c": np.array([0.1, 1.0, 5.0]), "emax": 100.0, "ec50": 1.5, "n": 2.2}),
    (two_compartment_matrix, {"cl": 1.0, "q": 0.5, "v1": 10.0, "v2": 20.0, "t": 2.0}),
    (hardy_weinberg, {"p": 0.3}),
    (wright_fisher_selection, {"p": 0.2, "s": 0.1, "h": 0.4, "generations": 5}),
    (jukes_cantor_likelihood, {"t": 0.2}),
    (felsenstein_pruning, {"lengths": U(0.1, 0.5, 4)}),
    (smith_waterman_score, {"similarity": N(size=(3, 4)), "gap": 0.5}),
    (shannon_diversity, {"counts": U(1, 9, 5)}),
    (ricker_stock, {"N0": 0.4, "r": 1.2, "K": 1.5}),
    (food_web, {"N": U(0.5, 1, 3), "A": U(0, 1, (3, 3)), "r": U(0.1, 0.5, 3)}),
    (integrate_and_fire_rate, {"I": np.array([1.5, 2.0])}),
    (alpha_synapses, {"t": np.linspace(0, 5, 6), "spikes": np.array([0.55, 2.3]), "g": np.array([1.0, 0.6]), "tau": 1.2}),
    (fitzhugh_nagumo, {"v": 0.5, "w": 0.2, "I": 0.4, "params": {"a": 0.6}}),
    (adiabatic_flame, {"T0": 300.0, "dH": 40000.0}),
    (antoine, {"T": 85.0}),
    (raoult_bubble_point, {"x": np.array([0.4, 0.6]), "T": 95.0}),
    (peng_robinson, {"T": 350.0, "V": 2e-3, "Tc": 304.0, "Pc": 7.38e6, "omega": 0.22}),
    (rachford_rice, {"z": np.array([0.3, 0.4, 0.3]), "K": np.array([2.5, 1.1, 0.4])}),
    (titration_ph, {"Ca": 0.1, "pKa": 4.76, "ratio": 0.4}),
    (nernst, {"E0": 0.34, "n": 2, "ox": 0.2, "red": 1.5}),
    (debye_huckel, {"charges": [1, -1, 2], "molalities": np.array([0.1, 0.3, 0.1])}),
    (
        batch_reactor,
        {
            "c0": np.array([1.0, 0.8, 0.1]),
            "k": np.array([1.2, 0.3]),
            "stoich": np.array([[-1, 1], [-1, 1], [1, -1]]),
            "orders": np.array([[1, 1, 0], [0, 0, 1]]),
        },
    ),
    (gillespie_mean_field, {"x": np.array([0.7, 0.3]), "k_on": 0.5, "k_off": 0.2}),
    (morse_chain, {"r": N(size=(4, 3))}),
    (dihedral, {"p": N(size=(4, 3))}),
    (huckel_energies, {"beta": -1.2, "edges": [(0, 1), (1, 2), (2, 3)], "n": 4}),
    (hartree_energy, {"coeffs": np.array([0.5, 0.6, 0.3]), "exponents": np.array([0.3, 1.2, 4.0])}),
    (langmuir_fit_residuals, {"params": {"qmax": 3.0, "b": 0.4}, "pressures": np.array([0.5, 1.0, 2.0]), "loadings": np.array([0.5, 0.8, 1.3])}),
    (diffusion_column, {"c": U(0, 1, 5), "D": 0.1, "v": 0.3, "dz": 0.2}),
    (dose_response_log_likelihood, {"theta": np.array([-0.5, 1.1]), "doses": np.array([0.5, 1.0, 3.0]), "n": np.array([10, 10, 12]), "k": np.array([2, 4, 10])}),
    (phylogenetic_gls, {"y": N(size=4), "X": N(size=(4, 2)), "C": np.eye(4) + 0.3}),
    (degree_days, {"tmin": np.array([5.0, 9.0, 12.0]), "tmax": np.array([12.0, 19.0, 25.0])}),
    (spectrum_area, {"x": np.linspace(0, 4, 9), "centers": [1.0, 2.5], "widths": [0.4, 0.6], "heights": [1.0, 0.5]}),
    (count_by_class, {"labels": ["a", "b", "a", "c"], "weights": np.array([0.1, 0.5, 0.7, 0.2])}),
    (stirling_entropy, {"n": 2.0}),
]
