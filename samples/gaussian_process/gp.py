"""The log marginal likelihood of a Gaussian process with a squared exponential kernel, as one writes it in NumPy."""

import math

import numpy as np


def covariance(theta, x):
    """The covariance of noisy observations at places x [n]; theta [3] holds the logarithms of amplitude, length scale and noise."""
    amplitude, scale, noise = np.exp(theta)
    distance = (x[:, None] - x) / scale
    return amplitude**2 * np.exp(-(distance**2) / 2) + noise**2 * np.eye(len(x))


def log_likelihood(theta, x, y):
    """ln p(y | x, theta), by the Cholesky factor of the covariance."""
    factor = np.linalg.cholesky(covariance(theta, x))
    whitened = np.linalg.solve(factor, y)
    return -whitened @ whitened / 2 - np.sum(np.log(np.diagonal(factor))) - len(x) / 2 * math.log(2 * math.pi)


def by_determinant(theta, x, y):
    """The same, by LU factors: slower, and without a square root."""
    k = covariance(theta, x)
    return -y @ np.linalg.solve(k, y) / 2 - np.linalg.slogdet(k).logabsdet / 2 - len(x) / 2 * math.log(2 * math.pi)
