"""Filters, signals and images."""

import numpy as np
from scipy.signal import lfilter


def kalman_1d(zs, q, r, x0, p0):
    x, p = x0, p0
    estimates = []
    for z in zs:
        p = p + q
        k = p / (p + r)
        x = x + k * (z - x)
        p = (1 - k) * p
        estimates.append(x)
    return np.array(estimates)


def kalman_step(x, P, z, F, H, Q, R):
    x = F @ x
    P = F @ P @ F.T + Q
    y = z - H @ x
    S = H @ P @ H.T + R
    K = P @ H.T @ np.linalg.inv(S)
    x = x + K @ y
    P = (np.eye(len(x)) - K @ H) @ P
    return x, P


def kalman_log_likelihood(observations, q, r):
    F = np.array([[1.0, 1.0], [0.0, 1.0]])
    H = np.array([[1.0, 0.0]])
    Q = q * np.array([[1 / 3, 1 / 2], [1 / 2, 1.0]])
    x = np.zeros(2)
    P = np.eye(2)
    ll = 0.0
    for z in observations:
        x = F @ x
        P = F @ P @ F.T + Q
        y = z - (H @ x)[0]
        S = (H @ P @ H.T)[0, 0] + r
        K = (P @ H.T)[:, 0] / S
        x = x + K * y
        P = P - np.outer(K, K) * S
        ll += -0.5 * (np.log(2 * np.pi * S) + y**2 / S)
    return ll


def moving_average(x, n=3):
    ret = np.cumsum(x)
    ret[n:] = ret[n:] - ret[:-n]
    return ret[n - 1 :] / n


def exponential_smoothing(series, alpha):
    result = [series[0]]
    for n in range(1, len(series)):
        result.append(alpha * series[n] + (1 - alpha) * result[n - 1])
    return np.array(result)


def holt_winters(series, alpha, beta):
    level, trend = series[0], series[1] - series[0]
    out = np.zeros(len(series))
    for i, value in enumerate(series):
        last = level
        level = alpha * value + (1 - alpha) * (level + trend)
        trend = beta * (level - last) + (1 - beta) * trend
        out[i] = level + trend
    return out


def iir_biquad(x, b, a):
    y = np.zeros_like(x)
    for n in range(len(x)):
        y[n] = b[0] * x[n]
        if n >= 1:
            y[n] += b[1] * x[n - 1] - a[1] * y[n - 1]
        if n >= 2:
            y[n] += b[2] * x[n - 2] - a[2] * y[n - 2]
    return y


def iir_scipy(x, b, a):
    return lfilter(b, a, x)


def fir_by_loops(x, h):
    n, m = len(x), len(h)
    y = np.zeros(n + m - 1)
    for i in range(n):
        for j in range(m):
            y[i + j] += x[i] * h[j]
    return y


def low_pass_rc(x, dt, rc):
    alpha = dt / (rc + dt)
    y = x.copy()
    y[0] = alpha * x[0]
    for i in range(1, x.shape[0]):
        y[i] = y[i - 1] + alpha * (x[i] - y[i - 1])
    return y


def pid_controller(errors, kp, ki, kd, dt):
    integral = 0
    previous = 0
    outputs = []
    for e in errors:
        integral += e * dt
        outputs.append(kp * e + ki * integral + kd * (e - previous) / dt)
        previous = e
    return outputs


def lms_filter(x, d, mu, order=3):
    w = np.zeros(order)
    errors = np.zeros(len(x) - order)
    for n in range(order, len(x)):
        window = x[n - order : n][::-1]
        e = d[n] - w @ window
        w += 2 * mu * e * window
        errors[n - order] = e
    return np.mean(errors**2)


def hann_spectrum(x):
    n = len(x)
    w = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n) / (n - 1))
    return np.abs(np.fft.rfft(w * x)) ** 2


def dft_by_hand(x):
    N = len(x)
    n = np.arange(N)
    k = n.reshape((N, 1))
    e = np.exp(-2j * np.pi * k * n / N)
    return np.abs(e @ x)


def autocorrelation(x):
    x = x - x.mean()
    result = np.correlate(x, x, mode="full")
    return result[result.size // 2 :] / result[result.size // 2]


def convolve_2d(image, kernel):
    kh, kw = kernel.shape
    h, w = image.shape
    out = np.zeros((h - kh + 1, w - kw + 1))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = np.sum(image[i : i + kh, j : j + kw] * kernel)
    return out


def sobel_energy(image):
    gx = image[:, 2:] - image[:, :-2]
    gy = image[2:, :] - image[:-2, :]
    return np.sum(gx[1:-1] ** 2) + np.sum(gy[:, 1:-1] ** 2)


def total_variation(image, eps=1e-3):
    dx = np.diff(image, axis=1)[:-1, :]
    dy = np.diff(image, axis=0)[:, :-1]
    return np.sqrt(dx**2 + dy**2 + eps).sum()


def bilinear_sample(image, x, y):
    x0, y0 = 1, 2  # the pixel, found before
    fx, fy = x - x0, y - y0
    top = (1 - fx) * image[y0, x0] + fx * image[y0, x0 + 1]
    bottom = (1 - fx) * image[y0 + 1, x0] + fx * image[y0 + 1, x0 + 1]
    return (1 - fy) * top + fy * bottom


def gamma_correction(image, gamma, gain=1.0):
    out = np.empty(image.shape)
    for channel in range(image.shape[-1]):
        out[..., channel] = gain * image[..., channel] ** gamma
    return out


def rgb_to_luma(rgb):
    r, g, b = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    return 0.299 * r + 0.587 * g + 0.114 * b


def haar_transform(x):
    out = x.copy()
    n = len(x)
    while n > 1:
        half = n // 2
        a = (out[0:n:2] + out[1:n:2]) / np.sqrt(2)
        d = (out[0:n:2] - out[1:n:2]) / np.sqrt(2)
        out[:half] = a
        out[half:n] = d
        n = half
    return out


def savitzky_golay(y, window=5, order=2):
    half = window // 2
    A = np.vander(np.arange(-half, half + 1), order + 1, increasing=True)
    c = np.linalg.pinv(A)[0]
    return np.array([np.dot(c, y[i - half : i + half + 1]) for i in range(half, len(y) - half)])


def complementary_filter(gyro, accel, dt, a=0.98):
    angle = 0.0
    for w, acc in zip(gyro, accel):
        angle = a * (angle + w * dt) + (1 - a) * np.arctan2(acc[0], acc[1])
    return angle


def max_pool(x, size=2):
    h, w = x.shape
    return x.reshape(h // size, size, w // size, size).max(axis=(1, 3))


rng = np.random.default_rng(3)
EXAMPLES = [
    (kalman_1d, {"zs": rng.normal(size=6), "q": 0.1, "r": 0.5, "x0": 0.0, "p0": 1.0}),
    (
        kalman_step,
        {
            "x": rng.normal(size=2),
            "P": np.array([[1.0, 0.1], [0.1, 0.8]]),
            "z": rng.normal(size=1),
            "F": np.array([[1.0, 0.1], [0.0, 1.0]]),
            "H": np.array([[1.0, 0.0]]),
            "Q": 0.01 * np.eye(2),
            "R": np.array([[0.3]]),
        },
    ),
    (kalman_log_likelihood, {"observations": rng.normal(size=6), "q": 0.1, "r": 0.5}),
    (moving_average, {"x": rng.normal(size=8)}),
    (exponential_smoothing, {"series": rng.normal(size=6), "alpha": 0.3}),
    (holt_winters, {"series": rng.normal(size=6), "alpha": 0.3, "beta": 0.2}),
    (iir_biquad, {"x": rng.normal(size=8), "b": np.array([0.2, 0.3, 0.2]), "a": np.array([1.0, -0.4, 0.1])}),
    (iir_scipy, {"x": rng.normal(size=8), "b": np.array([0.2, 0.3, 0.2]), "a": np.array([1.0, -0.4, 0.1])}),
    (fir_by_loops, {"x": rng.normal(size=5), "h": rng.normal(size=3)}),
    (low_pass_rc, {"x": rng.normal(size=6), "dt": 0.1, "rc": 0.5}),
    (pid_controller, {"errors": rng.normal(size=5), "kp": 1.0, "ki": 0.2, "kd": 0.05, "dt": 0.1}),
    (lms_filter, {"x": rng.normal(size=9), "d": rng.normal(size=9), "mu": 0.05}),
    (hann_spectrum, {"x": rng.normal(size=8)}),
    (dft_by_hand, {"x": rng.normal(size=6)}),
    (autocorrelation, {"x": rng.normal(size=7)}),
    (convolve_2d, {"image": rng.normal(size=(5, 5)), "kernel": rng.normal(size=(3, 3))}),
    (sobel_energy, {"image": rng.normal(size=(5, 5))}),
    (total_variation, {"image": rng.normal(size=(4, 5))}),
    (bilinear_sample, {"image": rng.normal(size=(5, 5)), "x": 1.3, "y": 2.6}),
    (gamma_correction, {"image": rng.uniform(0.2, 1, (3, 3, 2)), "gamma": 2.2}),
    (rgb_to_luma, {"rgb": rng.uniform(0.2, 1, (3, 3, 3))}),
    (haar_transform, {"x": rng.normal(size=8)}),
    (savitzky_golay, {"y": rng.normal(size=9)}),
    (complementary_filter, {"gyro": rng.normal(size=4), "accel": rng.uniform(0.5, 1, (4, 2)), "dt": 0.01}),
    (max_pool, {"x": rng.normal(size=(4, 4))}),
]
