"""Robots, rotations, cameras, and geometry."""

import math
from collections import namedtuple
from functools import reduce

import numpy as np
from numpy.linalg import inv, norm


def rotation_2d(theta, p):
    R = np.array([[np.cos(theta), -np.sin(theta)], [np.sin(theta), np.cos(theta)]])
    return R @ p


def rotation_z(q):
    c, s = np.cos(q), np.sin(q)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def rotation_x(q):
    R = np.eye(3)
    R[1, 1] = np.cos(q)
    R[1, 2] = -np.sin(q)
    R[2, 1] = np.sin(q)
    R[2, 2] = np.cos(q)
    return R


def euler_angles(angles):
    a, b, c = angles
    return rotation_z(a) @ rotation_x(b) @ rotation_z(c)


def denavit_hartenberg(theta, d, a, alpha):
    ct, st, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    return np.array([[ct, -st * ca, st * sa, a * ct], [st, ct * ca, -ct * sa, a * st], [0, sa, ca, d], [0, 0, 0, 1]])


Link = namedtuple("Link", "d a alpha")


def forward_kinematics(q, links):
    T = np.eye(4)
    for qi, link in zip(q, links):
        T = T @ denavit_hartenberg(qi, link.d, link.a, link.alpha)
    return T[:3, 3]


def planar_arm(q, lengths):
    angles = np.cumsum(q)
    return np.array([np.sum(lengths * np.cos(angles)), np.sum(lengths * np.sin(angles))])


def homogeneous(R, t):
    T = np.zeros((4, 4))
    T[:3, :3] = R
    T[:3, 3] = t
    T[3, 3] = 1.0
    return T


def chain_of_transforms(angles, offset):
    return reduce(np.matmul, [homogeneous(rotation_z(a), offset) for a in angles])


def quaternion_multiply(q, r):
    w0, x0, y0, z0 = q
    w1, x1, y1, z1 = r
    return np.array([
        w0 * w1 - x0 * x1 - y0 * y1 - z0 * z1,
        w0 * x1 + x0 * w1 + y0 * z1 - z0 * y1,
        w0 * y1 - x0 * z1 + y0 * w1 + z0 * x1,
        w0 * z1 + x0 * y1 - y0 * x1 + z0 * w1,
    ])  # fmt: skip


def quaternion_to_matrix(q):
    q = q / np.linalg.norm(q)
    w, x, y, z = q[0], q[1], q[2], q[3]
    return np.array([
        [1 - 2 * (y**2 + z**2), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x**2 + z**2), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x**2 + y**2)],
    ])  # fmt: skip


def slerp(q0, q1, t):
    dot = q0 @ q1
    omega = np.arccos(dot / (norm(q0) * norm(q1)))
    return (np.sin((1 - t) * omega) * q0 + np.sin(t * omega) * q1) / np.sin(omega)


def skew(v):
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def rodrigues(w, p):
    theta = norm(w)
    K = skew(w / theta)
    R = np.eye(3) + math.sin(0.0) + np.sin(theta) * K + (1 - np.cos(theta)) * K @ K
    return R @ p


def camera_projection(X, f, cx, cy, pose):
    K = np.array([[f, 0, cx], [0, f, cy], [0, 0, 1]])
    R = euler_angles(pose[:3])
    x = K @ (R @ X.T + pose[3:, None])
    return (x[:2] / x[2]).T


def radial_distortion(p, k1, k2):
    r2 = np.sum(p * p, axis=-1, keepdims=True)
    return p * (1 + k1 * r2 + k2 * r2**2)


def arm_jacobian_by_hand(q, l1, l2):
    J = np.zeros((2, 2))
    J[0, 0] = -l1 * np.sin(q[0]) - l2 * np.sin(q[0] + q[1])
    J[0, 1] = -l2 * np.sin(q[0] + q[1])
    J[1, 0] = l1 * np.cos(q[0]) + l2 * np.cos(q[0] + q[1])
    J[1, 1] = l2 * np.cos(q[0] + q[1])
    return np.linalg.det(J)


def inverse_kinematics_newton(target, q0, l1, l2, iterations=4):
    q = q0
    for _ in range(iterations):
        x = np.array([l1 * np.cos(q[0]) + l2 * np.cos(q[0] + q[1]), l1 * np.sin(q[0]) + l2 * np.sin(q[0] + q[1])])
        s, c = np.sin(q[0] + q[1]), np.cos(q[0] + q[1])
        J = np.array([[-l1 * np.sin(q[0]) - l2 * s, -l2 * s], [l1 * np.cos(q[0]) + l2 * c, l2 * c]])
        q = q - inv(J) @ (x - target)
    return q


def inertia_tensor(points, masses):
    I = np.zeros((3, 3))
    for m, p in zip(masses, points):
        I += m * (np.dot(p, p) * np.eye(3) - np.outer(p, p))
    return I


def mass_matrix(q, m1, m2, l1, l2):
    c2 = np.cos(q[1])
    M = np.empty((2, 2))
    M[0, 0] = (m1 + m2) * l1**2 + m2 * l2**2 + 2 * m2 * l1 * l2 * c2
    M[0, 1] = M[1, 0] = m2 * l2**2 + m2 * l1 * l2 * c2
    M[1, 1] = m2 * l2**2
    return M


def triangle_area(a, b, c):
    return 0.5 * norm(np.cross(b - a, c - a))


def polygon_area(vertices):
    x, y = vertices[:, 0], vertices[:, 1]
    return 0.5 * np.abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))


def bezier(control, ts):
    n = len(control) - 1
    out = []
    for t in ts:
        point = 0
        for i, p in enumerate(control):
            point = point + math.comb(n, i) * (1 - t) ** (n - i) * t**i * p
        out.append(point)
    return np.stack(out)


def de_casteljau(points, t):
    points = points.copy()
    n = len(points)
    for r in range(1, n):
        points[: n - r] = (1 - t) * points[: n - r] + t * points[1 : n - r + 1]
    return points[0]


def catmull_rom(p, t):
    return 0.5 * (2 * p[1] + (p[2] - p[0]) * t + (2 * p[0] - 5 * p[1] + 4 * p[2] - p[3]) * t**2 + (3 * p[1] - p[0] - 3 * p[2] + p[3]) * t**3)


def haversine(lat1, lon1, lat2, lon2, radius=6371.0):
    phi1, phi2 = np.radians(lat1), np.radians(lat2)
    a = np.sin((phi2 - phi1) / 2) ** 2 + np.cos(phi1) * np.cos(phi2) * np.sin(np.radians(lon2 - lon1) / 2) ** 2
    return 2 * radius * np.arcsin(np.sqrt(a))


def lla_to_ecef(lat, lon, h):
    a, f = 6378.137, 1 / 298.257223563
    e2 = f * (2 - f)
    N = a / np.sqrt(1 - e2 * np.sin(lat) ** 2)
    return np.array([(N + h) * np.cos(lat) * np.cos(lon), (N + h) * np.cos(lat) * np.sin(lon), (N * (1 - e2) + h) * np.sin(lat)])


def path_length(points):
    total = 0.0
    for a, b in zip(points[:-1], points[1:]):
        total += np.sqrt(np.sum((b - a) ** 2))
    return total


rng = np.random.default_rng(2)
EXAMPLES = [
    (rotation_2d, {"theta": 0.4, "p": np.array([1.0, 2.0])}),
    (rotation_z, {"q": 0.4}),
    (rotation_x, {"q": 0.4}),
    (euler_angles, {"angles": np.array([0.1, 0.5, -0.3])}),
    (denavit_hartenberg, {"theta": 0.3, "d": 0.1, "a": 0.5, "alpha": 0.2}),
    (forward_kinematics, {"q": np.array([0.1, 0.2, 0.3]), "links": [Link(0.1, 0.5, 0.2), Link(0.0, 0.4, -0.1), Link(0.2, 0.1, 0.3)]}),
    (planar_arm, {"q": np.array([0.1, 0.2, 0.3]), "lengths": np.array([1.0, 0.8, 0.5])}),
    (chain_of_transforms, {"angles": np.array([0.1, 0.2, 0.3]), "offset": np.array([1.0, 0.0, 0.5])}),
    (quaternion_multiply, {"q": rng.normal(size=4), "r": rng.normal(size=4)}),
    (quaternion_to_matrix, {"q": rng.normal(size=4)}),
    (slerp, {"q0": np.array([1.0, 0.1, 0.0, 0.2]), "q1": np.array([0.6, 0.5, 0.3, 0.2]), "t": 0.3}),
    (rodrigues, {"w": np.array([0.3, -0.2, 0.5]), "p": rng.normal(size=3)}),
    (
        camera_projection,
        {"X": rng.normal(size=(4, 3)), "f": 500.0, "cx": 320.0, "cy": 240.0, "pose": np.array([0.1, 0.2, 0.05, 0.0, 0.1, 6.0])},
    ),
    (radial_distortion, {"p": rng.normal(size=(3, 2)), "k1": 0.1, "k2": -0.02}),
    (arm_jacobian_by_hand, {"q": np.array([0.3, 0.8]), "l1": 1.0, "l2": 0.7}),
    (inverse_kinematics_newton, {"target": np.array([1.0, 0.9]), "q0": np.array([0.2, 1.0]), "l1": 1.0, "l2": 0.8}),
    (inertia_tensor, {"points": rng.normal(size=(4, 3)), "masses": rng.uniform(1, 2, 4)}),
    (mass_matrix, {"q": np.array([0.3, 0.8]), "m1": 1.0, "m2": 0.6, "l1": 1.0, "l2": 0.7}),
    (triangle_area, {"a": rng.normal(size=3), "b": rng.normal(size=3), "c": rng.normal(size=3)}),
    (polygon_area, {"vertices": np.array([[0.0, 0.0], [2.0, 0.1], [2.2, 1.5], [0.3, 1.1]])}),
    (bezier, {"control": rng.normal(size=(4, 2)), "ts": np.array([0.1, 0.5, 0.9])}),
    (de_casteljau, {"points": rng.normal(size=(4, 2)), "t": 0.3}),
    (catmull_rom, {"p": rng.normal(size=(4, 2)), "t": 0.4}),
    (haversine, {"lat1": 52.5, "lon1": 13.4, "lat2": 48.9, "lon2": 2.3}),
    (lla_to_ecef, {"lat": 0.9, "lon": 0.2, "h": 0.3}),
    (path_length, {"points": rng.normal(size=(5, 2))}),
]
