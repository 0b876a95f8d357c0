"""Gaussian mixture model: the log-likelihood of its parameters, with a Wishart prior on the inverse covariances.

K components in d dimensions, n points. The inverse covariance of component k is Qᵀ Q, Q lower triangular and its diagonal given by
logarithms. The formula is ADBench's (arXiv:1807.10129); README.md has it in full.
"""

import math

import numpy as np


def objective(alphas, means, icf, x, wishart_gamma=1.0, wishart_m=0):
    """The log-posterior, a scalar.

    alphas [K]: logarithms of the weights, up to a common summand. means [K,d]. icf [K,d(d+1)/2]: of each Q the logarithms of the
    diagonal, then the entries below it, column by column. x [n,d]: the points.
    """
    n, d = x.shape
    log_diagonal = icf[:, :d]
    log_determinants = np.sum(log_diagonal, axis=1)
    diagonal, below = np.exp(log_diagonal), icf[:, d:]

    q = lower_triangular(diagonal, below)
    # Q (x - mean) by linearity: no array of n × K × d differences is needed.
    standardised = np.einsum("kij,nj->nki", q, x) - np.einsum("kij,kj->ki", q, means)
    inner = alphas + log_determinants - 0.5 * np.sum(standardised**2, axis=2)
    log_likelihood = np.sum(logsumexp(inner)) - n * logsumexp(alphas) - n * d / 2 * math.log(2 * math.pi)

    frobenius = np.sum(diagonal**2) + np.sum(below**2)
    log_prior = 0.5 * wishart_gamma**2 * frobenius - wishart_m * np.sum(log_determinants)
    return log_likelihood + log_prior - len(means) * log_wishart_constant(d, wishart_gamma, wishart_m)


def lower_triangular(diagonal, below):
    """The matrices [K,d,d] with these diagonals [K,d], and `below` [K,d(d-1)/2] under them, column by column."""
    k, d = diagonal.shape
    entries = np.concatenate([np.zeros((k, 1)), diagonal, below], axis=1)
    # Where each element of the matrix is among the entries; the zero comes first.
    place = np.diag(np.arange(1, d + 1))
    column, row = np.triu_indices(d, 1)
    place[row, column] = np.arange(d + 1, entries.shape[1])
    return entries[:, place]


def logsumexp(a):
    """log Σ exp a along the last axis, shifted by the maximum so that nothing overflows."""
    top = np.max(a, axis=-1, keepdims=True)
    return np.log(np.sum(np.exp(a - top), axis=-1)) + top[..., 0]


def log_wishart_constant(d, gamma, m):
    """The logarithm of the prior's normalisation, with Γ_d the multivariate gamma function, up to terms of 2 and π that cancel."""
    p = d + m + 1
    log_gamma_d = d * (d - 1) / 4 * math.log(math.pi) + sum(math.lgamma((p - j) / 2) for j in range(d))
    return p * d * math.log(gamma / math.sqrt(2)) - log_gamma_d
