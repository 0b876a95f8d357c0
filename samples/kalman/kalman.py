"""The likelihood of observations of a moving point by a Kalman filter, a scan over the observations."""

import math

import numpy as np

import tidu_cli as tidu

STEP = 0.1
"""The time between observations."""


def log_likelihood(theta, y):
    """ln p(y | theta) of noisy places y [n,2] of a point whose acceleration is white noise.

    theta [2]: the logarithms of the strength of that, and of the standard deviation of the observations. At the first one, place
    and velocity are normal with variance 1.
    """
    strength, noise = np.exp(2 * theta)
    motion, push, seen = model()

    def observe(state, place):
        mean, covariance = state
        innovation = place - seen @ mean
        factor = np.linalg.cholesky(seen @ covariance @ seen.T + noise * np.eye(2))
        whitened = np.linalg.solve(factor, innovation)
        gain = np.linalg.solve(factor, seen @ covariance).T  # of the whitened innovation
        likelihood = -whitened @ whitened / 2 - np.sum(np.log(np.diagonal(factor))) - math.log(2 * math.pi)
        mean, covariance = mean + gain @ whitened, covariance - gain @ gain.T
        return (motion @ mean, motion @ covariance @ motion.T + strength * push), likelihood

    _, likelihoods = tidu.scan(observe, (np.zeros(4), np.eye(4)), y)
    return np.sum(likelihoods)


def model():
    """How place (2) and velocity (2) move in a time step [4,4], the covariance of what pushes them [4,4], what is seen [2,4]."""
    motion = np.kron([[1, STEP], [0, 1]], np.eye(2))
    push = np.kron([[STEP**3 / 3, STEP**2 / 2], [STEP**2 / 2, STEP]], np.eye(2))
    return motion, push, np.eye(2, 4)
