"""A network with one hidden layer that reads handwritten digits, and its loss: softmax cross-entropy."""

import numpy as np


def loss(params, images, labels, decay=1e-4):
    """The mean cross-entropy of all images plus a penalty on large weights, a scalar.

    params: w1 [64,h], b1 [h], w2 [h,10], b2 [10]. images [n,64]: grey levels from 0 to 16. labels [n]: the digits.
    """
    scores = forward(params, images)
    top = np.max(scores, axis=1, keepdims=True)
    log_total = np.log(np.sum(np.exp(scores - top), axis=1)) + top[:, 0]
    of_label = scores[np.arange(len(labels)), labels]
    penalty = decay / 2 * (np.sum(params["w1"] ** 2) + np.sum(params["w2"] ** 2))
    return np.mean(log_total - of_label) + penalty


def forward(params, images):
    """The scores [n,10] of the digits for each image."""
    hidden = np.tanh(images / 16 @ params["w1"] + params["b1"])
    return hidden @ params["w2"] + params["b2"]
