"""Losses of a batch, the first axis: functions that are built at the types of a model's outputs, in f32 or f64.

tidu compose model.msgpack samples/losses/losses.py:cross_entropy -i logits:f32[8,10] -i labels:i64[8]
"""

import numpy as np

import tidu_cli as tidu


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


def ctc(logits, targets, input_lengths, target_lengths):
    """Connectionist temporal classification (Graves et al. 2006): PyTorch's ctc_loss(..., zero_infinity=True) of log_softmax.

    The mean of -log p(target) / length over sequences, logits being [time, sequence, class] and targets [sequence, place]. Class 0
    is the blank, and p the sum over all paths that are the target once repetitions, and then blanks, are taken out. What lies
    beyond the lengths does not count. A target that no path gives counts as 0.
    """
    shifted = logits - np.max(logits, -1, keepdims=True)
    log_probability = shifted - np.log(np.sum(np.exp(shifted), -1, keepdims=True))
    blanks = np.zeros_like(targets[:, :1])
    places = np.arange(2 * targets.shape[1] + 1)  # blank, class, blank, class, ..., blank
    classes = np.concatenate([np.stack([0 * targets, targets], -1).reshape(targets.shape[0], -1), blanks], -1)
    classes = np.clip(classes, 0, logits.shape[-1] - 1)  # padding is any number
    before = np.concatenate([blanks, blanks, classes[:, :-2]], -1)
    may_skip = (classes != before) & (places % 2 == 1)  # the blank between two classes, unless these are the same
    emitted = np.take_along_axis(log_probability, np.broadcast_to(classes, (len(logits), *classes.shape)), -1)
    never = np.full_like(emitted[0], -np.inf)

    def advance(reached, now):
        time, emission = now
        step = np.concatenate([never[:, :1], reached[:, :-1]], -1)
        skip = np.where(may_skip, np.concatenate([never[:, :2], reached[:, :-2]], -1), -np.inf)
        after = log_sum(np.stack([reached, step, skip])) + emission
        return np.where(time < input_lengths[:, None], after, reached), None

    start = np.where(places == 0, np.zeros_like(never), never)
    reached, _ = tidu.scan(advance, start, (np.arange(len(logits)), emitted))
    is_end = (places == 2 * target_lengths[:, None]) | (places == 2 * target_lengths[:, None] - 1)
    total = log_sum(np.where(is_end, reached, -np.inf).T)
    return {"loss": -np.mean(np.where(np.isfinite(total), total, 0) / np.maximum(target_lengths, 1).astype(logits.dtype))}


def log_sum(x):
    """log(sum(exp(x))) along the first axis; of terms that are all -inf it is -inf, and the derivative 0."""
    greatest = np.max(x, 0)
    shift = np.where(np.isfinite(greatest), greatest, 0)
    total = np.sum(np.exp(x - shift), 0)
    return np.where(total > 0, np.log(np.where(total > 0, total, 1)) + shift, -np.inf)
