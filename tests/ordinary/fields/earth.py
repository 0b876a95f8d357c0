"""Geodesy, astronomy, climate and oceans."""

import math
from collections import namedtuple
from dataclasses import dataclass, field
from functools import reduce
from math import pi

import numpy as np
from numpy import arctan2, cos, deg2rad, rad2deg, sin, sqrt, tan

Ellipsoid = namedtuple("Ellipsoid", ["a", "f"])
WGS84 = Ellipsoid(6378137.0, 1 / 298.257223563)


def vincenty_inverse(lat1, lon1, lat2, lon2, *, ellipsoid=WGS84, iterations=8):
    a, f = ellipsoid
    b = (1 - f) * a
    U1, U2 = np.arctan((1 - f) * tan(lat1)), np.arctan((1 - f) * tan(lat2))
    L = lon2 - lon1
    lam = L
    for _ in range(iterations):
        sin_sigma = sqrt((cos(U2) * sin(lam)) ** 2 + (cos(U1) * sin(U2) - sin(U1) * cos(U2) * cos(lam)) ** 2)
        cos_sigma = sin(U1) * sin(U2) + cos(U1) * cos(U2) * cos(lam)
        sigma = arctan2(sin_sigma, cos_sigma)
        sin_alpha = cos(U1) * cos(U2) * sin(lam) / sin_sigma
        cos2_alpha = 1 - sin_alpha**2
        cos_2sm = cos_sigma - 2 * sin(U1) * sin(U2) / cos2_alpha
        C = f / 16 * cos2_alpha * (4 + f * (4 - 3 * cos2_alpha))
        lam = L + (1 - C) * f * sin_alpha * (sigma + C * sin_sigma * (cos_2sm + C * cos_sigma * (-1 + 2 * cos_2sm**2)))
    u2 = cos2_alpha * (a**2 - b**2) / b**2
    A = 1 + u2 / 16384 * (4096 + u2 * (-768 + u2 * (320 - 175 * u2)))
    B = u2 / 1024 * (256 + u2 * (-128 + u2 * (74 - 47 * u2)))
    delta = B * sin_sigma * (cos_2sm + B / 4 * cos_sigma * (-1 + 2 * cos_2sm**2))
    return b * A * (sigma - delta) / 1000


def ecef_to_geodetic(xyz, a=6378137.0, e2=6.69437999014e-3):
    x, y, z = xyz
    p = np.hypot(x, y)
    lat = np.arctan2(z, p * (1 - e2))
    for _ in range(5):
        N = a / np.sqrt(1 - e2 * np.sin(lat) ** 2)
        h = p / np.cos(lat) - N
        lat = np.arctan2(z, p * (1 - e2 * N / (N + h)))
    return np.array([np.degrees(lat), np.degrees(np.arctan2(y, x)), h / 1000])


def mercator(lonlat):
    out = np.empty((len(lonlat), 2))
    out[:, 0] = deg2rad(lonlat[:, 0])
    out[:, 1] = np.log(tan(pi / 4 + deg2rad(lonlat[:, 1]) / 2))
    return out


def bearing(p, q):
    (lat1, lon1), (lat2, lon2) = np.radians(p), np.radians(q)
    dlon = lon2 - lon1
    theta = arctan2(sin(dlon) * cos(lat2), cos(lat1) * sin(lat2) - sin(lat1) * cos(lat2) * cos(dlon))
    return (rad2deg(theta) + 360) % 360


def helmert_transform(points, translation, rotation, scale):
    rx, ry, rz = rotation
    R = np.array([[1, -rz, ry], [rz, 1, -rx], [-ry, rx, 1]])
    return np.array([translation + (1 + scale) * R @ p for p in points])


def legendre_recursive(n, m, x):
    if n == m:
        return reduce(lambda acc, k: acc * -(2 * k - 1), range(1, m + 1), 1) * (1 - x * x) ** (m / 2)
    if n == m + 1:
        return x * (2 * m + 1) * legendre_recursive(m, m, x)
    return ((2 * n - 1) * x * legendre_recursive(n - 1, m, x) - (n + m - 1) * legendre_recursive(n - 2, m, x)) / (n - m)


def gravity_potential(r, theta, lam, C, S):
    """Spherical harmonics up to the degree of the coefficients."""
    V = 1.0
    for n in range(2, C.shape[0]):
        for m in range(n + 1):
            V += (1 / r) ** n * legendre_recursive(n, m, cos(theta)) * (C[n, m] * cos(m * lam) + S[n, m] * sin(m * lam))
    return V / r


def solar_elevation(lat, day, hour):
    decl = -23.44 * np.cos(np.radians(360 / 365 * (day + 10)))
    h = 15 * (hour - 12)
    s = np.sin(np.radians(lat)) * np.sin(np.radians(decl)) + np.cos(np.radians(lat)) * np.cos(np.radians(decl)) * np.cos(np.radians(h))
    return np.degrees(np.arcsin(s))


@dataclass
class KeplerElements:
    a: float
    e: float
    i: float
    raan: float
    argp: float
    nu: float


def elements_to_state(el, mu=1.0):
    p = el.a * (1 - el.e**2)
    r = p / (1 + el.e * np.cos(el.nu))
    r_pqw = np.array([r * np.cos(el.nu), r * np.sin(el.nu), 0.0])
    v_pqw = np.sqrt(mu / p) * np.array([-np.sin(el.nu), el.e + np.cos(el.nu), 0.0])

    def R3(t):
        return np.array([[np.cos(t), -np.sin(t), 0], [np.sin(t), np.cos(t), 0], [0, 0, 1]])

    def R1(t):
        return np.array([[1, 0, 0], [0, np.cos(t), -np.sin(t)], [0, np.sin(t), np.cos(t)]])

    Q = R3(el.raan) @ R1(el.i) @ R3(el.argp)
    return np.concatenate([Q @ r_pqw, Q @ v_pqw])


def state_to_energy_and_momentum(r, v, mu=1.0):
    h = np.cross(r, v)
    e = np.cross(v, h) / mu - r / np.linalg.norm(r)
    return {"energy": np.dot(v, v) / 2 - mu / np.linalg.norm(r), "h": np.linalg.norm(h), "e": np.linalg.norm(e)}


class SolarSystem:
    """Bodies that attract each other, moved by velocity Verlet."""

    def __init__(self, masses, G=1.0, softening=0.05):
        self.masses = masses
        self.G = G
        self.eps2 = softening**2

    def accelerations(self, pos):
        acc = np.zeros_like(pos)
        for i in range(len(self.masses)):
            for j in range(i + 1, len(self.masses)):
                d = pos[j] - pos[i]
                f = self.G * d / (d @ d + self.eps2) ** 1.5
                acc[i] += self.masses[j] * f
                acc[j] -= self.masses[i] * f
        return acc

    def step(self, pos, vel, dt):
        a = self.accelerations(pos)
        vel += 0.5 * dt * a
        pos += dt * vel
        vel += 0.5 * dt * self.accelerations(pos)
        return pos, vel


def solar_system(pos, vel, masses, dt=0.05, n=3):
    system = SolarSystem(masses)
    for _ in range(n):
        pos, vel = system.step(pos, vel, dt)
    return pos


def radial_velocity(t, K, P, e, omega, t0=0.0):
    M = 2 * np.pi * (t - t0) / P
    E = M.copy()
    for _ in range(25):
        E -= (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
    nu = 2 * np.arctan2(np.sqrt(1 + e) * np.sin(E / 2), np.sqrt(1 - e) * np.cos(E / 2))
    return K * (np.cos(nu + omega) + e * np.cos(omega))


def transit_light_curve(z, k):
    """Uniform source; planet inside, on the limb, or outside of the disc."""
    flux = np.ones_like(z)
    inside = z <= 1 - k
    flux[inside] = 1 - k**2
    limb = (z > 1 - k) & (z < 1 + k)
    zl = z[limb]
    k0 = np.arccos((k**2 + zl**2 - 1) / (2 * k * zl))
    k1 = np.arccos((1 - k**2 + zl**2) / (2 * zl))
    flux[limb] = 1 - (k**2 * k0 + k1 - 0.5 * np.sqrt(4 * zl**2 - (1 + zl**2 - k**2) ** 2)) / np.pi
    return flux


def comoving_distance(z, H0, om, steps=20):
    zs = np.linspace(0, z, steps + 1)
    E = np.sqrt(om * (1 + zs) ** 3 + (1 - om))
    return 299792.458 / H0 * np.trapezoid(1 / E, zs)


def magnitude_to_flux(mags, zero_point=25.0):
    return [10 ** (-0.4 * (m - zero_point)) for m in mags]


def energy_balance_model(T, S0, albedo_params, D=0.6, A=210.0, B=2.0):
    x = np.linspace(-0.9, 0.9, len(T))
    warm, ice = albedo_params["warm"], albedo_params["ice"]
    albedo = warm + (ice - warm) / (1 + np.exp((T + 10) / 2))
    insolation = S0 / 4 * (1 - 0.48 * 0.5 * (3 * x**2 - 1))
    transport = np.zeros_like(T)
    transport[1:-1] = D * (T[2:] - 2 * T[1:-1] + T[:-2])
    transport[0] = D * (T[1] - T[0])
    transport[-1] = D * (T[-2] - T[-1])
    return insolation * (1 - albedo) - (A + B * T) + transport


@dataclass
class Layer:
    thickness: float
    velocity: float
    density: float = 2.7


@dataclass
class Earth:
    layers: list[Layer] = field(default_factory=list)

    def impedance_contrasts(self):
        z = [layer.velocity * layer.density for layer in self.layers]
        return np.array([(b - a) / (b + a) for a, b in zip(z, z[1:])])

    def two_way_times(self):
        return 2 * np.cumsum([layer.thickness / layer.velocity for layer in self.layers])


def synthetic_seismogram(earth, dt=0.05, f=5.0):
    t = np.arange(0, 1, dt)
    trace = np.zeros(t.size)
    for r, t0 in zip(earth.impedance_contrasts(), earth.two_way_times()):
        a = (np.pi * f * (t - t0)) ** 2
        trace += r * (1 - 2 * a) * np.exp(-a)
    return trace


def seawater_density(T, S):
    rho0 = np.polyval([6.536332e-9, -1.120083e-6, 1.001685e-4, -9.09529e-3, 6.793952e-2, 999.842594], T)
    A = np.polyval([5.3875e-9, -8.2467e-7, 7.6438e-5, -4.0899e-3, 8.24493e-1], T)
    B = np.polyval([-1.6546e-6, 1.0227e-4, -5.72466e-3], T)
    return rho0 + A * S + B * S**1.5 + 4.8314e-4 * S**2


def relative_humidity(T, Td):
    def es(t):
        return 6.112 * math.e ** (17.67 * t / (t + 243.5))

    return 100 * es(Td) / es(T)


def shallow_water(h, u, g=9.81, dx=1.0, dt=0.01, steps=3):
    for _ in range(steps):
        h_new, u_new = h.copy(), u.copy()
        h_new[1:-1] -= dt * (h[2:] * u[2:] - h[:-2] * u[:-2]) / (2 * dx)
        u_new[1:-1] -= dt * (u[1:-1] * (u[2:] - u[:-2]) + g * (h[2:] - h[:-2])) / (2 * dx)
        h, u = h_new, u_new
    return h, u


def infiltration_green_ampt(rain, K, psi, dtheta, dt=0.1):
    F = 0.01
    total = []
    for r in rain:
        capacity = K * (1 + psi * dtheta / F)
        F += np.minimum(r, capacity) * dt
        total.append(F)
    return np.stack(total)


def tidal_height(t, constituents):
    return sum(c["amp"] * np.cos(np.radians(c["speed"] * t - c["phase"])) for c in constituents)


def ordinary_kriging(xy, z, target, rng_=2.0, sill=1.0, nugget=0.1):
    n = len(z)
    d = np.sqrt(((xy[:, None, :] - xy[None, :, :]) ** 2).sum(-1) + 1e-12)
    K = np.ones((n + 1, n + 1))
    K[:n, :n] = nugget + sill * (1 - np.exp(-d / rng_))
    K[n, n] = 0
    b = np.ones(n + 1)
    b[:n] = nugget + sill * (1 - np.exp(-np.linalg.norm(xy - target, axis=1) / rng_))
    w = np.linalg.solve(K, b)
    return w[:n] @ z, w @ b


rng = np.random.default_rng(11)
EXAMPLES = [
    (vincenty_inverse, {"lat1": 0.7, "lon1": 0.1, "lat2": 0.3, "lon2": 1.2}),
    (ecef_to_geodetic, {"xyz": np.array([4.2e6, 1.7e5, 4.78e6])}),
    (mercator, {"lonlat": np.array([[10.0, 45.0], [-70.0, -33.0]])}),
    (bearing, {"p": np.array([50.0, 8.0]), "q": np.array([40.7, -74.0])}),
    (
        helmert_transform,
        {"points": rng.normal(size=(2, 3)), "translation": np.array([0.1, 0.2, 0.3]), "rotation": np.array([1e-2, 2e-2, -1e-2]), "scale": 0.01},
    ),
    (legendre_recursive, {"n": 4, "m": 2, "x": 0.3}),
    (gravity_potential, {"r": 1.2, "theta": 0.8, "lam": 0.3, "C": rng.normal(size=(4, 4)), "S": rng.normal(size=(4, 4))}),
    (solar_elevation, {"lat": 48.0, "day": 120, "hour": 10.5}),
    (elements_to_state, {"el": KeplerElements(1.2, 0.1, 0.4, 1.0, 0.7, 2.0)}),
    (state_to_energy_and_momentum, {"r": np.array([1.0, 0.2, 0.1]), "v": np.array([-0.1, 0.9, 0.3])}),
    (solar_system, {"pos": rng.normal(size=(3, 2)), "vel": rng.normal(size=(3, 2)), "masses": np.array([1.0, 0.2, 0.1])}),
    (radial_velocity, {"t": np.array([0.1, 0.5, 1.3, 2.2]), "K": 30.0, "P": 3.5, "e": 0.3, "omega": 0.9}),
    (transit_light_curve, {"z": np.array([0.2, 0.95, 1.05, 1.4]), "k": 0.1}),
    (comoving_distance, {"z": 0.8, "H0": 70.0, "om": 0.3}),
    (magnitude_to_flux, {"mags": np.array([18.0, 20.5, 22.0])}),
    (energy_balance_model, {"T": np.array([-20.0, 5.0, 20.0, 8.0, -15.0]), "S0": 1361.0, "albedo_params": {"warm": 0.3, "ice": 0.6}}),
    (synthetic_seismogram, {"earth": Earth([Layer(0.2, 1.5), Layer(0.3, 2.2, 2.4), Layer(0.5, 3.1)])}),
    (seawater_density, {"T": np.array([5.0, 15.0]), "S": np.array([34.0, 36.0])}),
    (relative_humidity, {"T": 22.0, "Td": 12.0}),
    (shallow_water, {"h": 1 + 0.1 * rng.normal(size=6), "u": 0.1 * rng.normal(size=6)}),
    (infiltration_green_ampt, {"rain": np.array([0.5, 3.0, 0.2]), "K": 0.3, "psi": 0.4, "dtheta": 0.2}),
    (tidal_height, {"t": np.linspace(0, 6, 4), "constituents": [{"amp": 1.2, "speed": 28.98, "phase": 40.0}, {"amp": 0.4, "speed": 30.0, "phase": 10.0}]}),
    (ordinary_kriging, {"xy": rng.normal(size=(4, 2)), "z": rng.normal(size=4), "target": np.array([0.2, 0.1])}),
]
