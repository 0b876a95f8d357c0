"""Losses of a batch, the first axis: functions that are built at the types of a model's outputs, in f32 or f64.

tidu compose model.msgpack samples/losses/losses.py:cross_entropy -i logits:f32[8,10] -i labels:i64[8]
"""

import numpy as np


def mse(prediction, target):
    """The mean of squared errors over all elements."""
    return {"loss": np.mean((prediction - target) ** 2)}


def mae(prediction, target):
    """The mean of absolute errors over all elements."""
    return {"loss": np.mean(np.abs(prediction - target))}


def huber(prediction, target):
    """The mean of squared errors / 2 where these are below 1, and straight from there on."""
    error = prediction - target
    inner = np.clip(error, -1, 1)
    return {"loss": np.mean(inner * (error - inner / 2))}


def binary_cross_entropy(logits, labels):
    """The mean of -log p over all elements, where p = 1 / (1 + exp(-logits)) is the chance of 1, and labels are 0, 1 or between."""
    return {"loss": np.mean(np.logaddexp(0, logits) - labels * logits)}


def cross_entropy(logits, labels):
    """The mean of -log softmax(logits) at labels, class numbers on the last axis. Labels of no class, as -100, do not count."""
    shifted = logits - np.max(logits, -1, keepdims=True)
    log_probability = shifted - np.log(np.sum(np.exp(shifted), -1, keepdims=True))
    is_label = labels[..., None] == np.arange(logits.shape[-1])
    return {"loss": -np.sum(np.where(is_label, log_probability, 0)) / np.maximum(np.sum(is_label), 1).astype(logits.dtype)}
