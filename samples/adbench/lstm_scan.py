"""The loss of lstm.py with a scan over the characters: the graph does not grow with the text."""

import numpy as np
from lstm import lstm_cell

import tidu_cli as tidu


def objective(main, extra, state, sequence, steps=8):
    """The mean negative log-likelihood of each next character, a scalar; arguments as in lstm.py."""

    def predict(states, characters):
        now, following = characters
        x, after = now * extra[0], []
        for layer, (hidden, cell) in enumerate(states):
            x, cell = lstm_cell(main[2 * layer], main[2 * layer + 1], hidden, cell, x)
            after.append((x, cell))
        predicted = x * extra[1] + extra[2]
        return after, np.sum(following * (predicted - np.log(np.sum(np.exp(predicted)) + 2)))

    states = [(state[k], state[k + 1]) for k in range(0, len(state), 2)]
    _, likelihoods = tidu.scan(predict, states, (sequence[: steps - 1], sequence[1:steps]))
    return -np.sum(likelihoods) / ((steps - 1) * sequence.shape[1])
