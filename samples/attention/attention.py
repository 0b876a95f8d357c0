"""A layer of a transformer: attention with two heads, then a network with one hidden layer, each after a normalization."""

import numpy as np


def layer(x, q, k, v, o, w, u):
    """What becomes of x [n,d]. q, k and v [heads,d,m] make queries, keys and values of it, o [heads*m,d] joins the heads."""
    x = x + attention(norm(x), q, k, v, o)
    return x + np.tanh(norm(x) @ w) @ u


def norm(x):
    """Rows with mean 0 and variance 1."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)


def attention(x, q, k, v, o):
    """The heads side by side, joined by o."""
    heads = [head(x, q[i], k[i], v[i]) for i in range(len(q))]
    return np.concatenate(heads, axis=-1) @ o


def head(x, q, k, v):
    """Mixtures of the values [n,m], by how well queries and keys agree."""
    agreement = (x @ q) @ (x @ k).T / np.sqrt(q.shape[-1])
    return softmax(agreement) @ (x @ v)


def softmax(x):
    """Rows that are positive and sum up to 1."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
