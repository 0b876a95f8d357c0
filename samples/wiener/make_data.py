"""Makes `data.json`: a signal of steps and a bump, its image blurred over 2 samples and with noise, and a theta to start from."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

WIDTH, NOISE = 2.0, 0.02
"""The blur's standard deviation in samples, and that of the noise."""


def make_data() -> dict[str, list[float]]:
    """`truth` and `observed`, 64 samples each, and `theta`."""
    place = np.arange(64)
    truth = np.where((place > 10) & (place < 20), 1.0, 0.0) + np.where((place > 20) & (place < 26), -0.5, 0.0)
    truth += np.exp(-(((place - 45) / 4) ** 2))
    blur = np.exp(-((np.minimum(place, 64 - place) / WIDTH) ** 2) / 2)
    image = np.fft.irfft(np.fft.rfft(blur / blur.sum()) * np.fft.rfft(truth), 64)
    observed = image + NOISE * np.random.default_rng(0).normal(size=64)
    return {"theta": [0.6, -5.0], "truth": truth.round(6).tolist(), "observed": observed.round(6).tolist()}


if __name__ == "__main__":
    (Path(__file__).parent / "data.json").write_text(json.dumps(make_data()) + "\n")
