"""Likelihoods, regressions, kernels and tests."""

import math

import numpy as np
import scipy.linalg
from scipy.special import betaln, expit, gammaln, logsumexp, xlogy


def gaussian_log_likelihood(x, mu, sigma):
    n = len(x)
    return -n / 2 * math.log(2 * math.pi) - n * np.log(sigma) - ((x - mu) ** 2).sum() / (2 * sigma**2)


def multivariate_normal_logpdf(x, mean, cov):
    d = len(mean)
    L = np.linalg.cholesky(cov)
    z = scipy.linalg.solve_triangular(L, x - mean, lower=True)
    return -0.5 * d * np.log(2 * np.pi) - np.sum(np.log(np.diag(L))) - 0.5 * z @ z


def mixture_log_likelihood(x, weights, means, sigmas):
    components = []
    for w, m, s in zip(weights, means, sigmas):
        components.append(np.log(w) - 0.5 * ((x - m) / s) ** 2 - np.log(s) - 0.5 * np.log(2 * np.pi))
    return logsumexp(np.array(components), axis=0).sum()


def logistic_regression_loss(w, b, X, y):
    p = expit(X @ w + b)
    return -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))


def softmax_regression(W, X, labels):
    scores = X @ W
    scores -= scores.max(axis=1, keepdims=True)
    log_probs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return -log_probs[np.arange(len(labels)), labels].mean()


def linear_regression(X, y):
    beta = np.linalg.inv(X.T @ X) @ X.T @ y
    residuals = y - X @ beta
    return residuals @ residuals / (X.shape[0] - X.shape[1])


def ridge_loss(beta, X, y, lam):
    r = y - X @ beta
    return r @ r + lam * beta @ beta


def weighted_least_squares(X, y, w):
    XtW = X.T * w
    return np.linalg.solve(XtW @ X, XtW @ y)


def poisson_deviance(beta, X, counts):
    mu = np.exp(X @ beta)
    return 2 * np.sum(xlogy(counts, counts / mu) - (counts - mu))


def beta_binomial(alpha, beta, k, n):
    return np.sum(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + betaln(k + alpha, n - k + beta) - betaln(alpha, beta))


def student_t(x, nu, mu, sigma):
    z = (x - mu) / sigma
    return np.sum(gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * np.pi) - np.log(sigma) - (nu + 1) / 2 * np.log1p(z**2 / nu))


def rbf_kernel(X, Y, length, variance=1.0):
    d2 = np.sum(X**2, 1)[:, None] + np.sum(Y**2, 1)[None, :] - 2 * X @ Y.T
    return variance * np.exp(-0.5 * d2 / length**2)


def gp_marginal_likelihood(X, y, length, noise):
    n = len(X)
    K = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            K[i, j] = np.exp(-0.5 * np.sum((X[i] - X[j]) ** 2) / length**2)
    K[np.diag_indices(n)] += noise**2
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
    return -0.5 * y @ alpha - np.log(np.diag(L)).sum() - n / 2 * np.log(2 * np.pi)


def matern_32(r, length):
    s = math.sqrt(3) * r / length
    return (1 + s) * np.exp(-s)


def kernel_density(x, data, bandwidth):
    total = 0
    for d in data:
        total += np.exp(-0.5 * ((x - d) / bandwidth) ** 2)
    return total / (len(data) * bandwidth * np.sqrt(2 * np.pi))


def correlation(x, y):
    xm, ym = x - np.mean(x), y - np.mean(y)
    return np.sum(xm * ym) / np.sqrt(np.sum(xm**2) * np.sum(ym**2))


def kl_divergence(p, q):
    p = np.asarray(p) / np.sum(p)
    q = np.asarray(q) / np.sum(q)
    return np.sum(np.where(p != 0, p * np.log(p / q), 0))


def huber_loss(residuals, delta):
    a = np.abs(residuals)
    return np.where(a <= delta, 0.5 * a**2, delta * (a - 0.5 * delta)).sum()


def t_statistic(a, b):
    na, nb = len(a), len(b)
    pooled = ((na - 1) * a.var(ddof=1) + (nb - 1) * b.var(ddof=1)) / (na + nb - 2)
    return (a.mean() - b.mean()) / np.sqrt(pooled * (1 / na + 1 / nb))


def hmm_forward(obs, A, B, pi):
    alpha = pi * B[:, obs[0]]
    log_likelihood = 0.0
    for o in obs[1:]:
        c = alpha.sum()
        log_likelihood += np.log(c)
        alpha = (alpha / c) @ A * B[:, o]
    return log_likelihood + np.log(alpha.sum())


def ar_process(y, phi, sigma2):
    p = len(phi)
    ll = 0.0
    for t in range(p, len(y)):
        prediction = 0.0
        for k in range(p):
            prediction += phi[k] * y[t - 1 - k]
        ll -= 0.5 * (np.log(2 * np.pi * sigma2) + (y[t] - prediction) ** 2 / sigma2)
    return ll


def em_step(x, params):
    r = []
    for w, m, s in zip(params["weights"], params["means"], params["sds"]):
        r.append(w * np.exp(-0.5 * ((x - m) / s) ** 2) / s)
    r = np.array(r)
    r /= r.sum(axis=0)
    n = r.sum(axis=1)
    return {"weights": n / len(x), "means": (r @ x) / n}


def pca_variance(X):
    X = X - X.mean(axis=0)
    C = X.T @ X / (len(X) - 1)
    return np.linalg.eigvalsh(C)[::-1]


def standardize(X):
    Z = X.copy()
    for j in range(X.shape[1]):
        Z[:, j] = (Z[:, j] - Z[:, j].mean()) / Z[:, j].std()
    return Z


def cox_partial_likelihood(beta, X, order):
    eta = (X @ beta)[order]
    total = 0.0
    for i in range(len(eta)):
        total += eta[i] - np.log(np.sum(np.exp(eta[i:])))
    return total


def weibull_survival(t, events, k, lam):
    hazard = np.log(k / lam) + (k - 1) * np.log(t / lam)
    return np.sum(hazard[events]) - np.sum((t / lam) ** k)


rng = np.random.default_rng(5)
X53 = rng.normal(size=(5, 3))
SPD = np.cov(rng.normal(size=(3, 9)))
EXAMPLES = [
    (gaussian_log_likelihood, {"x": rng.normal(size=6), "mu": 0.1, "sigma": 1.2}),
    (multivariate_normal_logpdf, {"x": rng.normal(size=3), "mean": rng.normal(size=3), "cov": SPD}),
    (
        mixture_log_likelihood,
        {"x": rng.normal(size=5), "weights": np.array([0.3, 0.7]), "means": np.array([-1.0, 1.0]), "sigmas": np.array([0.5, 1.5])},
    ),
    (logistic_regression_loss, {"w": rng.normal(size=3), "b": 0.1, "X": X53, "y": np.array([0.0, 1.0, 1.0, 0.0, 1.0])}),
    (softmax_regression, {"W": rng.normal(size=(3, 4)), "X": X53, "labels": np.array([0, 3, 1, 2, 2])}),
    (linear_regression, {"X": X53, "y": rng.normal(size=5)}),
    (ridge_loss, {"beta": rng.normal(size=3), "X": X53, "y": rng.normal(size=5), "lam": 0.1}),
    (weighted_least_squares, {"X": X53, "y": rng.normal(size=5), "w": rng.uniform(1, 2, 5)}),
    (poisson_deviance, {"beta": rng.normal(size=3), "X": X53, "counts": np.array([1.0, 2.0, 1.0, 3.0, 2.0])}),
    (beta_binomial, {"alpha": 1.5, "beta": 2.5, "k": np.array([1, 4, 2]), "n": np.array([5, 6, 7])}),
    (student_t, {"x": rng.normal(size=4), "nu": 4.5, "mu": 0.1, "sigma": 1.3}),
    (rbf_kernel, {"X": X53, "Y": rng.normal(size=(2, 3)), "length": 1.2}),
    (gp_marginal_likelihood, {"X": X53, "y": rng.normal(size=5), "length": 1.2, "noise": 0.3}),
    (matern_32, {"r": rng.uniform(0.5, 2, 4), "length": 1.1}),
    (kernel_density, {"x": np.array([0.1, 0.4]), "data": rng.normal(size=5), "bandwidth": 0.4}),
    (correlation, {"x": rng.normal(size=5), "y": rng.normal(size=5)}),
    (kl_divergence, {"p": rng.uniform(0.5, 1, 4), "q": rng.uniform(0.5, 1, 4)}),
    (huber_loss, {"residuals": np.array([0.1, -2.0, 0.5, 3.0]), "delta": 1.0}),
    (t_statistic, {"a": rng.normal(size=5), "b": rng.normal(size=6)}),
    (
        hmm_forward,
        {
            "obs": [0, 1, 1, 2],
            "A": np.array([[0.7, 0.3], [0.4, 0.6]]),
            "B": np.array([[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]]),
            "pi": np.array([0.6, 0.4]),
        },
    ),
    (ar_process, {"y": rng.normal(size=7), "phi": np.array([0.5, -0.2]), "sigma2": 0.8}),
    (
        em_step,
        {"x": rng.normal(size=5), "params": {"weights": np.array([0.3, 0.7]), "means": np.array([-1.0, 1.0]), "sds": np.array([0.5, 1.5])}},
    ),
    (pca_variance, {"X": X53}),
    (standardize, {"X": X53}),
    (cox_partial_likelihood, {"beta": rng.normal(size=3), "X": X53, "order": np.array([3, 1, 0, 4, 2])}),
    (weibull_survival, {"t": rng.uniform(1, 2, 5), "events": np.array([True, False, True, True, False]), "k": 1.5, "lam": 1.2}),
]
