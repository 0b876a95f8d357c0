"""A long short-term memory that predicts the next character of a text: its loss, over the first characters of a sequence.

l layers for characters of c bits, each layer as wide as a character. Weights act elementwise: ADBench's is a small model
with the structure of a large one (arXiv:1807.10129); README.md has the formula.
"""

import numpy as np


def objective(main, extra, state, sequence, steps=8):
    """The mean negative log-likelihood of each next character, a scalar.

    main [2l,4c]: weights and biases of the layers by turns. extra [3,c]: weights of the input, weights and biases of the output.
    state [2l,c]: hidden and cell states of the layers by turns, before the first character. sequence [T,c]: characters of c bits;
    the first `steps` of them are used.
    """
    hidden, cell = list(state[::2]), list(state[1::2])
    total = 0.0
    for t in range(steps - 1):
        x = sequence[t] * extra[0]
        for layer in range(len(hidden)):
            weight, bias = main[2 * layer], main[2 * layer + 1]
            hidden[layer], cell[layer] = lstm_cell(weight, bias, hidden[layer], cell[layer], x)
            x = hidden[layer]
        predicted = x * extra[1] + extra[2]
        total += np.sum(sequence[t + 1] * (predicted - np.log(np.sum(np.exp(predicted)) + 2)))
    return -total / ((steps - 1) * sequence.shape[1])


def lstm_cell(weight, bias, hidden, cell, x):
    """The hidden and the cell state [c] of a layer after input x [c]."""
    gates = np.concatenate([x, hidden, x, hidden]) * weight + bias
    forget, ingate, outgate, change = np.split(gates, 4)
    cell = cell * sigmoid(forget) + sigmoid(ingate) * np.tanh(change)
    return sigmoid(outgate) * np.tanh(cell), cell


def sigmoid(x):
    """1 / (1 + exp(-x)), which never overflows in this form."""
    return 0.5 * (1 + np.tanh(x / 2))
