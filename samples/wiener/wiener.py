"""A Wiener filter: a blurred and noisy signal sharpened by Fourier transforms, and how far it is from the true one."""

import numpy as np


def restore(theta, observed):
    """The estimate [n] of a periodic signal of which `observed` [n] is a blurred and noisy image.

    theta [2]: the logarithms of the blur's width, in samples, and of the ratio of noise to signal, in power. Of frequencies at
    which the blur leaves less than that ratio, the filter takes the less the less there is: conj(H) / (|H|² + ratio).
    """
    width, ratio = np.exp(theta)
    place = np.arange(len(observed))
    distance = np.minimum(place, len(observed) - place)
    blur = np.exp(-((distance / width) ** 2) / 2)
    response = np.fft.rfft(blur / np.sum(blur))
    gain = np.conj(response) / (np.abs(response) ** 2 + ratio)
    return np.fft.irfft(gain * np.fft.rfft(observed), len(observed))


def error(theta, observed, truth):
    """The mean squared error of the estimate."""
    return np.mean((restore(theta, observed) - truth) ** 2)
