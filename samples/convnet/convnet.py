"""A small convolutional network that reads handwritten digits, and its loss: softmax cross-entropy."""

import numpy as np

from tidu_cli.adapters.numpy.numpy.signal import conv_general_dilated, reduce_window_max


def loss(params, images, labels):
    """The mean cross-entropy of all images, a scalar.

    params: w1 [c,1,3,3], b1 [c], w2 [d,c,3,3], b2 [d], w3 [4d,10], b3 [10]. images [n,64]: grey levels from 0 to 16, row by row.
    labels [n]: the digits.
    """
    scores = forward(params, images)
    top = np.max(scores, axis=1, keepdims=True)
    log_total = np.log(np.sum(np.exp(scores - top), axis=1)) + top[:, 0]
    return np.mean(log_total - scores[np.arange(len(labels)), labels])


def forward(params, images):
    """The scores [n,10] of the digits for each image."""
    hidden = np.reshape(images, (-1, 1, 8, 8)) / 16
    hidden = layer(hidden, params["w1"], params["b1"])  # [n,c,4,4]
    hidden = layer(hidden, params["w2"], params["b2"])  # [n,d,2,2]
    return np.reshape(hidden, (len(images), -1)) @ params["w3"] + params["b3"]


def layer(images, weights, biases):
    """Features [n,d,h/2,w/2] of images [n,c,h,w]: a convolution by weights [d,c,3,3], rectified, and the largest of each 2 × 2."""
    features = conv_general_dilated(images, weights, (1, 1), "SAME") + biases[:, None, None]
    return reduce_window_max(np.maximum(features, 0), (1, 1, 2, 2), (1, 1, 2, 2))
