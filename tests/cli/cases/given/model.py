from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Config:
    rate: float = 0.1
    steps: int = 3


def loss(params, x, y):
    h = x
    for layer in params["layers"]:
        h = np.tanh(h @ layer["w"] + layer["b"])
    return np.mean((h - y) ** 2)


def decay(x0, k, config: Config = Config(), *, mode="euler", n=2):
    print(mode)
    x = x0
    for _ in range(config.steps * n):
        x = x - config.rate * k * x if mode == "euler" else x * np.exp(-config.rate * k)
    return {"last": x, "sum": {"all": np.sum(x), "first": x[0]}}
