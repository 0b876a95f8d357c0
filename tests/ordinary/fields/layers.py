"""Layers and losses of networks, written out."""

from dataclasses import dataclass

import numpy as np


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def relu(x):
    return np.maximum(0, x)


def softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def dense(x, W, b, activation="tanh"):
    z = x @ W + b
    if activation == "tanh":
        return np.tanh(z)
    if activation == "relu":
        return relu(z)
    if activation == "sigmoid":
        return sigmoid(z)
    return z


def mlp(x, params):
    h = x
    for i, layer in enumerate(params):
        h = h @ layer["W"] + layer["b"]
        if i < len(params) - 1:
            h = relu(h)
    return h


class Network:
    def __init__(self, sizes, seed=0):
        rng = np.random.default_rng(seed)
        self.weights = [rng.normal(0, 0.5, (a, b)) for a, b in zip(sizes[:-1], sizes[1:])]

    def __call__(self, x):
        for W in self.weights:
            x = np.tanh(x @ W)
        return x


def fixed_network(x):
    return Network([3, 4, 2])(x)


def conv1d(x, w, b, stride=1):
    n, k = x.shape[0], w.shape[0]
    out = np.zeros(((n - k) // stride + 1, w.shape[2]))
    for i in range(out.shape[0]):
        window = x[i * stride : i * stride + k]
        for f in range(w.shape[2]):
            out[i, f] = np.sum(window * w[:, :, f]) + b[f]
    return out


def conv2d_im2col(image, kernel):
    H, W = image.shape
    k = kernel.shape[0]
    cols = []
    for i in range(H - k + 1):
        for j in range(W - k + 1):
            cols.append(image[i : i + k, j : j + k].flatten())
    return (np.array(cols) @ kernel.flatten()).reshape(H - k + 1, W - k + 1)


def max_pool_2x2(x):
    H, W = x.shape
    out = np.empty((H // 2, W // 2))
    for i in range(H // 2):
        for j in range(W // 2):
            out[i, j] = np.max(x[2 * i : 2 * i + 2, 2 * j : 2 * j + 2])
    return out


def batch_norm(x, gamma, beta, eps=1e-5):
    mu = x.mean(axis=0)
    var = x.var(axis=0)
    return gamma * (x - mu) / np.sqrt(var + eps) + beta


def layer_norm(x, g, b):
    mean = np.mean(x, axis=-1, keepdims=True)
    variance = np.mean((x - mean) ** 2, axis=-1, keepdims=True)
    x = (x - mean) / np.sqrt(variance + 1e-5)
    return g * x + b


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def attention(q, k, v, causal=False):
    scores = q @ k.T / np.sqrt(q.shape[-1])
    if causal:
        n = scores.shape[0]
        mask = np.triu(np.ones((n, n), dtype=bool), k=1)
        scores[mask] = -1e10
    return softmax(scores) @ v


def multi_head_attention(x, W_qkv, W_out, n_heads):
    x = x @ W_qkv
    qkv = np.split(x, 3, axis=-1)
    heads = [np.split(a, n_heads, axis=-1) for a in qkv]
    out = [attention(q, k, v, causal=True) for q, k, v in zip(*heads)]
    return np.hstack(out) @ W_out


def lstm_cell(x, h, c, W, U, b):
    n = h.shape[-1]
    z = x @ W + h @ U + b
    i, f, o, g = z[:n], z[n : 2 * n], z[2 * n : 3 * n], z[3 * n :]
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def rnn(xs, Wx, Wh):
    hidden = np.zeros((len(xs) + 1, Wh.shape[0]))
    for t, x in enumerate(xs):
        hidden[t + 1] = np.tanh(x @ Wx + hidden[t] @ Wh)
    return hidden[1:]


def gru_cell(x, h, p):
    z = sigmoid(x @ p["Wz"] + h @ p["Uz"])
    r = sigmoid(x @ p["Wr"] + h @ p["Ur"])
    candidate = np.tanh(x @ p["Wh"] + (r * h) @ p["Uh"])
    return (1 - z) * h + z * candidate


def embedding(table, tokens):
    return table[tokens].mean(axis=0)


def positional_encoding(x):
    n, d = x.shape
    pe = np.zeros((n, d))
    position = np.arange(n)[:, np.newaxis]
    div = np.exp(np.arange(0, d, 2) * -(np.log(10000.0) / d))
    pe[:, 0::2] = np.sin(position * div)
    pe[:, 1::2] = np.cos(position * div)
    return x + pe


def cross_entropy(logits, labels):
    p = softmax(logits)
    loss = 0
    for i, label in enumerate(labels):
        loss -= np.log(p[i][label])
    return loss / len(labels)


def one_hot_mse(logits, labels):
    target = np.zeros(logits.shape)
    target[np.arange(len(labels)), labels] = 1
    return ((logits - target) ** 2).mean()


def dropout(x, keep, mask):
    return np.where(mask, x / keep, 0)


@dataclass
class AdamState:
    m: np.ndarray
    v: np.ndarray


def adam_step(w, grad, state, t=1, lr=0.1, b1=0.9, b2=0.999, eps=1e-8):
    m = b1 * state.m + (1 - b1) * grad
    v = b2 * state.v + (1 - b2) * grad**2
    mhat = m / (1 - b1**t)
    vhat = v / (1 - b2**t)
    return w - lr * mhat / (np.sqrt(vhat) + eps)


def message_passing(h, W, edges):
    out = np.zeros_like(h)
    np.add.at(out, edges[:, 1], h[edges[:, 0]] @ W)
    return np.tanh(h + out)


def graph_convolution(A, X, W):
    A_hat = A + np.eye(A.shape[0])
    D = np.diag(1.0 / np.sqrt(A_hat.sum(axis=1)))
    return relu(D @ A_hat @ D @ X @ W)


def rotary(x):
    n, d = x.shape
    theta = 10000.0 ** (-np.arange(0, d, 2) / d)
    angle = np.outer(np.arange(n), theta)
    x1, x2 = x[:, ::2], x[:, 1::2]
    out = np.empty_like(x)
    out[:, ::2] = x1 * np.cos(angle) - x2 * np.sin(angle)
    out[:, 1::2] = x1 * np.sin(angle) + x2 * np.cos(angle)
    return out


def triplet_loss(anchor, positive, negative, margin=0.5):
    d_pos = np.sum((anchor - positive) ** 2, axis=1)
    d_neg = np.sum((anchor - negative) ** 2, axis=1)
    losses = np.maximum(d_pos - d_neg + margin, 0.0)
    return np.mean(losses)


def gumbel_softmax(logits, noise, temperature):
    return softmax((logits + noise) / temperature)


rng = np.random.default_rng(6)
N = rng.normal
EXAMPLES = [
    (dense, {"x": N(size=(2, 3)), "W": N(size=(3, 4)), "b": N(size=4)}),
    (dense, {"x": N(size=(2, 3)), "W": N(size=(3, 4)), "b": N(size=4), "activation": "sigmoid"}),
    (mlp, {"x": N(size=3), "params": [{"W": N(size=(3, 4)), "b": N(size=4)}, {"W": N(size=(4, 2)), "b": N(size=2)}]}),
    (fixed_network, {"x": N(size=3)}),
    (conv1d, {"x": N(size=(7, 2)), "w": N(size=(3, 2, 2)), "b": N(size=2), "stride": 2}),
    (conv2d_im2col, {"image": N(size=(4, 5)), "kernel": N(size=(2, 2))}),
    (max_pool_2x2, {"x": N(size=(4, 4))}),
    (batch_norm, {"x": N(size=(5, 3)), "gamma": N(size=3), "beta": N(size=3)}),
    (layer_norm, {"x": N(size=(2, 4)), "g": N(size=4), "b": N(size=4)}),
    (gelu, {"x": N(size=5)}),
    (attention, {"q": N(size=(3, 4)), "k": N(size=(3, 4)), "v": N(size=(3, 2))}),
    (attention, {"q": N(size=(3, 4)), "k": N(size=(3, 4)), "v": N(size=(3, 2)), "causal": True}),
    (multi_head_attention, {"x": N(size=(3, 4)), "W_qkv": N(size=(4, 12)), "W_out": N(size=(4, 4)), "n_heads": 2}),
    (lstm_cell, {"x": N(size=3), "h": N(size=2), "c": N(size=2), "W": N(size=(3, 8)), "U": N(size=(2, 8)), "b": N(size=8)}),
    (rnn, {"xs": N(size=(4, 3)), "Wx": N(size=(3, 2)), "Wh": N(size=(2, 2))}),
    (gru_cell, {"x": N(size=3), "h": N(size=2), "p": {k: N(size=(3 if k[0] == "W" else 2, 2)) for k in ("Wz", "Uz", "Wr", "Ur", "Wh", "Uh")}}),
    (embedding, {"table": N(size=(5, 3)), "tokens": [0, 2, 2, 4]}),
    (positional_encoding, {"x": N(size=(4, 6))}),
    (cross_entropy, {"logits": N(size=(3, 4)), "labels": [0, 3, 1]}),
    (one_hot_mse, {"logits": N(size=(3, 4)), "labels": [0, 3, 1]}),
    (dropout, {"x": N(size=5), "keep": 0.8, "mask": np.array([True, False, True, True, False])}),
    (adam_step, {"w": N(size=3), "grad": N(size=3), "state": AdamState(N(size=3), rng.uniform(1, 2, 3))}),
    (message_passing, {"h": N(size=(4, 2)), "W": N(size=(2, 2)), "edges": np.array([[0, 1], [1, 2], [2, 1], [3, 1]])}),
    (graph_convolution, {"A": rng.uniform(0.1, 1, (3, 3)), "X": N(size=(3, 2)), "W": N(size=(2, 2))}),
    (rotary, {"x": N(size=(3, 4))}),
    (triplet_loss, {"anchor": N(size=(3, 2)), "positive": N(size=(3, 2)), "negative": N(size=(3, 2))}),
    (gumbel_softmax, {"logits": N(size=4), "noise": N(size=4), "temperature": 0.7}),
]
