"""Prices, rates, portfolios and risks."""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr
from scipy.stats import norm


def black_scholes_call(S, K, T, r, sigma):
    d1 = (np.log(S / K) + (r + 0.5 * sigma**2) * T) / (sigma * np.sqrt(T))
    d2 = d1 - sigma * np.sqrt(T)
    return S * norm.cdf(d1) - K * np.exp(-r * T) * norm.cdf(d2)


def black_scholes(S, K, T, r, sigma, kind="call"):
    d1 = (np.log(S / K) + (r + sigma**2 / 2) * T) / (sigma * np.sqrt(T))
    d2 = d1 - sigma * np.sqrt(T)
    if kind == "call":
        return S * ndtr(d1) - K * np.exp(-r * T) * ndtr(d2)
    elif kind == "put":
        return K * np.exp(-r * T) * ndtr(-d2) - S * ndtr(-d1)
    raise ValueError(kind)


def binomial_tree(S, K, T, r, sigma, N=6, american=False):
    dt = T / N
    u = np.exp(sigma * np.sqrt(dt))
    d = 1 / u
    p = (np.exp(r * dt) - d) / (u - d)
    disc = np.exp(-r * dt)
    prices = np.zeros(N + 1)
    for i in range(N + 1):
        prices[i] = S * u ** (N - i) * d**i
    values = np.maximum(K - prices, 0)
    for step in range(N - 1, -1, -1):
        values = disc * (p * values[:-1] + (1 - p) * values[1:])
        if american:
            prices = prices[:-1] * d
            values = np.maximum(values, K - prices)
    return values[0]


def monte_carlo_call(S0, K, T, r, sigma, z):
    ST = S0 * np.exp((r - 0.5 * sigma**2) * T + sigma * np.sqrt(T) * z)
    payoff = np.where(ST > K, ST - K, 0.0)
    return np.exp(-r * T) * payoff.mean()


def asian_option(S0, K, r, sigma, dt, normals):
    paths, steps = normals.shape
    S = np.full(paths, S0)
    total = np.zeros(paths)
    for t in range(steps):
        S = S * np.exp((r - sigma**2 / 2) * dt + sigma * np.sqrt(dt) * normals[:, t])
        total += S
    return np.exp(-r * dt * steps) * np.mean(np.maximum(total / steps - K, 0))


def heston_path(s0, v0, kappa, theta, xi, rho, dws, dt):
    s, v = s0, v0
    for dw1, dw2 in dws:
        dz = rho * dw1 + math.sqrt(1 - 0.3**2) * dw2
        s = s * np.exp(-0.5 * v * dt + np.sqrt(v * dt) * dw1)
        v = np.abs(v + kappa * (theta - v) * dt + xi * np.sqrt(v * dt) * dz)
    return s


def bond_price(face, coupon, y, years, frequency=2):
    price = 0
    for k in range(1, years * frequency + 1):
        price += face * coupon / frequency / (1 + y / frequency) ** k
    return price + face / (1 + y / frequency) ** (years * frequency)


def macaulay_duration(cash_flows, times, y):
    discounted = cash_flows * np.exp(-y * times)
    return np.sum(times * discounted) / discounted.sum()


def nelson_siegel(tau, b0, b1, b2, lam):
    x = tau / lam
    loading = (1 - np.exp(-x)) / x
    return b0 + b1 * loading + b2 * (loading - np.exp(-x))


def bootstrap_curve(par_rates):
    n = len(par_rates)
    discount = np.zeros(n)
    for i in range(n):
        discount[i] = (1 - par_rates[i] * np.sum(discount[:i])) / (1 + par_rates[i])
    return discount


def portfolio_variance(weights, cov):
    return weights.T @ cov @ weights


def sharpe_ratio(weights, returns, risk_free=0.01):
    portfolio = returns @ weights
    return (portfolio.mean() - risk_free) / portfolio.std(ddof=1)


def minimum_variance_weights(cov):
    ones = np.ones(len(cov))
    x = np.linalg.solve(cov, ones)
    return x / x.sum()


def max_drawdown_smooth(prices, tau=0.05):
    running = prices[0]
    worst = []
    for p in prices:
        running = tau * np.logaddexp(running / tau, p / tau)
        worst.append((running - p) / running)
    return np.max(worst)


def garch_log_likelihood(returns, omega, alpha, beta):
    n = len(returns)
    sigma2 = np.zeros(n)
    sigma2[0] = np.var(returns)
    for t in range(1, n):
        sigma2[t] = omega + alpha * returns[t - 1] ** 2 + beta * sigma2[t - 1]
    return -0.5 * np.sum(np.log(2 * np.pi) + np.log(sigma2) + returns**2 / sigma2)


def npv(rate, cash_flows):
    return sum(cf / (1 + rate) ** t for t, cf in enumerate(cash_flows))


def irr_newton(cash_flows, guess=0.1):
    r = guess
    t = np.arange(len(cash_flows))
    for _ in range(8):
        f = np.sum(cash_flows / (1 + r) ** t)
        df = np.sum(-t * cash_flows / (1 + r) ** (t + 1))
        r = r - f / df
    return r


def implied_volatility(price, S, K, T, r):
    sigma = 0.3
    for _ in range(6):
        d1 = (np.log(S / K) + (r + 0.5 * sigma**2) * T) / (sigma * np.sqrt(T))
        value = S * norm.cdf(d1) - K * np.exp(-r * T) * norm.cdf(d1 - sigma * np.sqrt(T))
        vega = S * norm.pdf(d1) * np.sqrt(T)
        sigma = sigma - (value - price) / vega
    return sigma


def amortization(principal, rate, n=12):
    payment = principal * rate / (1 - (1 + rate) ** -n)
    balance = principal
    schedule = np.zeros((n, 3))
    for i in range(n):
        interest = balance * rate
        repaid = payment - interest
        balance -= repaid
        schedule[i] = [interest, repaid, balance]
    return schedule


def vasicek_bond(r0, kappa, theta, sigma, T):
    B = (1 - np.exp(-kappa * T)) / kappa
    A = np.exp((theta - sigma**2 / (2 * kappa**2)) * (B - T) - sigma**2 * B**2 / (4 * kappa))
    return A * np.exp(-B * r0)


def sabr_volatility(F, K, T, alpha, beta, rho, nu):
    fk = (F * K) ** ((1 - beta) / 2)
    logfk = np.log(F / K)
    z = nu / alpha * fk * logfk
    x = np.log((np.sqrt(1 - 2 * rho * z + z * z) + z - rho) / (1 - rho))
    a = alpha / (fk * (1 + (1 - beta) ** 2 / 24 * logfk**2))
    b = 1 + T * ((1 - beta) ** 2 / 24 * alpha**2 / fk**2 + rho * beta * nu * alpha / (4 * fk) + (2 - 3 * rho**2) / 24 * nu**2)
    return a * z / x * b


@dataclass
class Swap:
    notional: float
    fixed_rate: float
    times: list = field(default_factory=list)


def swap_value(swap, zero_rates):
    discount = np.exp(-zero_rates * np.array(swap.times))
    annuity = 0.0
    last = 0.0
    for t, df in zip(swap.times, discount):
        annuity += (t - last) * df
        last = t
    return swap.notional * (1 - discount[-1] - swap.fixed_rate * annuity)


def utility(wealth, gamma, kind="crra"):
    utilities = {"crra": lambda w: w ** (1 - gamma) / (1 - gamma), "cara": lambda w: -np.exp(-gamma * w) / gamma, "log": np.log}
    return utilities[kind](wealth).mean()


def credit_hazard(spread, recovery, maturities):
    hazard = spread / (1 - recovery)
    survival = [1.0]
    for i in range(1, len(maturities)):
        survival.append(survival[-1] * np.exp(-hazard * (maturities[i] - maturities[i - 1])))
    return np.asarray(survival)


rng = np.random.default_rng(4)
COV = np.cov(rng.normal(size=(3, 20)))
EXAMPLES = [
    (black_scholes_call, {"S": 100.0, "K": 95.0, "T": 0.5, "r": 0.03, "sigma": 0.2}),
    (black_scholes, {"S": 100.0, "K": 95.0, "T": 0.5, "r": 0.03, "sigma": 0.2, "kind": "put"}),
    (binomial_tree, {"S": 100.0, "K": 103.0, "T": 0.5, "r": 0.03, "sigma": 0.25}),
    (binomial_tree, {"S": 100.0, "K": 103.0, "T": 0.5, "r": 0.03, "sigma": 0.25, "N": 5, "american": True}),
    (monte_carlo_call, {"S0": 100.0, "K": 95.0, "T": 0.5, "r": 0.03, "sigma": 0.2, "z": rng.normal(size=10)}),
    (asian_option, {"S0": 100.0, "K": 95.0, "r": 0.03, "sigma": 0.2, "dt": 0.1, "normals": rng.normal(size=(4, 5))}),
    (
        heston_path,
        {"s0": 100.0, "v0": 0.04, "kappa": 1.5, "theta": 0.05, "xi": 0.3, "rho": -0.6, "dws": rng.normal(size=(5, 2)), "dt": 0.05},
    ),
    (bond_price, {"face": 100.0, "coupon": 0.05, "y": 0.04, "years": 5}),
    (macaulay_duration, {"cash_flows": np.array([5.0, 5.0, 105.0]), "times": np.array([1.0, 2.0, 3.0]), "y": 0.04}),
    (nelson_siegel, {"tau": np.array([0.5, 1.0, 5.0, 10.0]), "b0": 0.04, "b1": -0.02, "b2": 0.01, "lam": 1.5}),
    (bootstrap_curve, {"par_rates": np.array([0.02, 0.025, 0.03, 0.032])}),
    (portfolio_variance, {"weights": np.array([0.2, 0.5, 0.3]), "cov": COV}),
    (sharpe_ratio, {"weights": np.array([0.2, 0.5, 0.3]), "returns": rng.normal(0.05, 0.1, (8, 3))}),
    (minimum_variance_weights, {"cov": COV}),
    (max_drawdown_smooth, {"prices": np.array([1.0, 1.2, 1.1, 0.9, 1.3])}),
    (garch_log_likelihood, {"returns": rng.normal(0, 0.1, 8), "omega": 0.01, "alpha": 0.1, "beta": 0.8}),
    (npv, {"rate": 0.05, "cash_flows": np.array([-100.0, 30.0, 40.0, 60.0])}),
    (irr_newton, {"cash_flows": np.array([-100.0, 30.0, 40.0, 60.0])}),
    (implied_volatility, {"price": 9.0, "S": 100.0, "K": 97.0, "T": 0.5, "r": 0.02}),
    (amortization, {"principal": 1000.0, "rate": 0.01}),
    (vasicek_bond, {"r0": 0.03, "kappa": 0.5, "theta": 0.05, "sigma": 0.02, "T": 3.0}),
    (sabr_volatility, {"F": 0.03, "K": 0.035, "T": 1.0, "alpha": 0.04, "beta": 0.5, "rho": -0.3, "nu": 0.4}),
    (swap_value, {"swap": Swap(1e4, 0.03, [1.0, 2.0, 3.0]), "zero_rates": np.array([0.02, 0.025, 0.03])}),
    (utility, {"wealth": rng.uniform(1, 2, 5), "gamma": 2.5}),
    (utility, {"wealth": rng.uniform(1, 2, 5), "gamma": 2.5, "kind": "cara"}),
    (credit_hazard, {"spread": 0.02, "recovery": 0.4, "maturities": np.array([0.0, 1.0, 2.5, 5.0])}),
]
