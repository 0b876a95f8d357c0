"""Physics, chemistry, astronomy and the earth."""

import itertools
import math

import numpy as np
from scipy import constants
from scipy.special import erf, jv


def ideal_gas_van_der_waals(T, V, n, a=1.36, b=0.0318):
    R = 0.08206
    return n * R * T / (V - n * b) - a * n**2 / V**2


def lennard_jones_energy(positions, epsilon, sigma):
    energy = 0.0
    n = len(positions)
    for i in range(n):
        for j in range(i + 1, n):
            r = np.linalg.norm(positions[i] - positions[j])
            s6 = (sigma / r) ** 6
            energy += 4 * epsilon * (s6**2 - s6)
    return energy


def coulomb_forces(q, x):
    F = np.zeros_like(x)
    for i, j in itertools.combinations(range(len(q)), 2):
        d = x[i] - x[j]
        f = q[i] * q[j] * d / np.sum(d**2) ** 1.5
        F[i] += f
        F[j] -= f
    return F


def ising_energy(spins, J, h):
    interaction = spins[:-1, :] * spins[1:, :]
    sideways = spins[:, :-1] * spins[:, 1:]
    return -J * (interaction.sum() + sideways.sum()) - h * spins.sum()


def arrhenius(T, A, Ea):
    return A * np.exp(-Ea / (constants.R * T))


def michaelis_menten(S, vmax, km, inhibitor=0.0, ki=1.0):
    return vmax * S / (km * (1 + inhibitor / ki) + S)


def reaction_network(c, k):
    stoichiometry = np.array([[-1, 1, 0], [0, -1, 1], [1, 0, -1]])
    rates = np.array([k[0] * c[0], k[1] * c[1] ** 2, k[2] * c[2] * c[0]])
    return stoichiometry.T @ rates


def planck(wavelength, T):
    h, c, kB = 6.626e-34, 2.998e8, 1.381e-23
    return np.log(2 * h * c**2 / wavelength**5 / np.expm1(h * c / (wavelength * kB * T)))


def blackbody_ratio(x):
    return x**3 / (np.exp(x) - 1)


def kepler_equation(M, e):
    E = M
    for _ in range(10):
        E = E - (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
    return E


def orbital_position(a, e, M, inclination):
    E = kepler_equation(M, e)
    x = a * (np.cos(E) - e)
    y = a * np.sqrt(1 - e**2) * np.sin(E)
    return np.array([x, y * np.cos(inclination), y * np.sin(inclination)])


def luminosity_distance(z, omega_m, H0=70.0):
    n = 20
    total = 0.0
    for i in range(n + 1):
        zi = z * i / n
        weight = 1 if i in (0, n) else (4 if i % 2 else 2)
        total += weight / np.sqrt(omega_m * (1 + zi) ** 3 + 1 - omega_m)
    return (1 + z) * 299792.458 / H0 * total * z / n / 3


def snell(theta, n1, n2):
    return np.arcsin(n1 / n2 * np.sin(theta))


def fresnel_reflectance(theta, n1, n2):
    ct = np.cos(theta)
    cr = np.sqrt(1 - (n1 / n2 * np.sin(theta)) ** 2)
    rs = ((n1 * ct - n2 * cr) / (n1 * ct + n2 * cr)) ** 2
    rp = ((n1 * cr - n2 * ct) / (n1 * cr + n2 * ct)) ** 2
    return (rs + rp) / 2


def thin_film_transfer(thicknesses, indices, wavelength):
    M = np.eye(2, dtype=complex)
    for d, n in zip(thicknesses, indices):
        delta = 2 * np.pi * n * d / wavelength
        layer = np.array([[np.cos(delta), 1j * np.sin(delta) / n], [1j * n * np.sin(delta), np.cos(delta)]])
        M = M @ layer
    t = 2 / (M[0, 0] + M[0, 1] + M[1, 0] + M[1, 1])
    return np.abs(t) ** 2


def impedance(R, L, C, omega):
    Z = R + 1j * omega * L + 1 / (1j * omega * C)
    return np.array([np.abs(Z), np.angle(Z)])


def diode_current(V, I_s, n, Rs):
    I = V * 0
    for _ in range(5):
        I = I_s * (np.exp((V - I * Rs) / (n * 0.02585)) - 1) * 0.5 + 0.5 * I
    return I


def schroedinger_ground_state(V, dx):
    n = len(V)
    H = np.zeros((n, n))
    for i in range(n):
        H[i, i] = 1 / dx**2 + V[i]
        if i > 0:
            H[i, i - 1] = H[i - 1, i] = -0.5 / dx**2
    return np.linalg.eigvalsh(H)[0]


def gaussian_wave_packet(x, k0, sigma):
    psi = np.exp(-(x**2) / (2 * sigma**2)) * np.exp(1j * k0 * x)
    return np.sum(np.abs(psi) ** 2 * x**2)


def partition_function(energies, T):
    beta = 1 / T
    weights = np.exp(-beta * (energies - energies.min()))
    p = weights / weights.sum()
    return np.sum(p * energies), -np.sum(p * np.log(p))


def bessel_beam(r, k):
    return jv(0, k * r) ** 2


def diffusion_profile(x, t, D):
    return 0.5 * (1 - erf(x / (2 * np.sqrt(D * t))))


def reynolds_friction(re, roughness):
    f = 0.02
    for _ in range(8):
        f = (-2 * np.log10(roughness / 3.7 + 2.51 / (re * np.sqrt(f)))) ** -2
    return f


def pipe_network(flows, resistances, incidence):
    return incidence @ flows + 0 * resistances[0], resistances * flows * np.abs(flows)


def barometric(h, T0=288.15, lapse=0.0065):
    return 101325 * (1 - lapse * h / T0) ** 5.2558


def wind_chill(T, v):
    return 13.12 + 0.6215 * T - 11.37 * v**0.16 + 0.3965 * T * v**0.16


def penman_evaporation(Rn, T, u, rh):
    es = 0.6108 * np.exp(17.27 * T / (T + 237.3))
    slope = 4098 * es / (T + 237.3) ** 2
    gamma = 0.066
    return (0.408 * slope * Rn + gamma * 900 / (T + 273) * u * es * (1 - rh)) / (slope + gamma * (1 + 0.34 * u))


def seismic_travel_times(velocities, thicknesses, offset):
    times = []
    t0 = 0.0
    v2t = 0.0
    for v, h in zip(velocities, thicknesses):
        dt = 2 * h / v
        t0 += dt
        v2t += v**2 * dt
        vrms = math.sqrt(1.0) * np.sqrt(v2t / t0)
        times.append(np.sqrt(t0**2 + (offset / vrms) ** 2))
    return times


def two_stream_radiation(tau, albedo, layers=4):
    up = np.zeros(layers + 1)
    down = np.zeros(layers + 1)
    down[0] = 1.0
    for k in range(layers):
        down[k + 1] = down[k] * np.exp(-tau[k])
    up[-1] = albedo * down[-1]
    for k in range(layers - 1, -1, -1):
        up[k] = up[k + 1] * np.exp(-tau[k])
    return up[0] - down[-1]


def structure_factor(positions, q):
    phases = np.exp(1j * positions @ q)
    return np.abs(phases.sum()) ** 2 / len(positions)


def truss_stiffness(E, A, nodes, elements):
    K = np.zeros((2 * len(nodes), 2 * len(nodes)))
    for i, j in elements:
        d = nodes[j] - nodes[i]
        L = np.sqrt(d @ d)
        c, s = d / L
        k = E * A / L * np.array([[c * c, c * s], [c * s, s * s]])
        a, b = slice(2 * i, 2 * i + 2), slice(2 * j, 2 * j + 2)
        K[a, a] += k
        K[b, b] += k
        K[a, b] -= k
        K[b, a] -= k
    return K


def finite_element_bar(k, f):
    n = len(k)
    K = np.zeros((n + 1, n + 1))
    for e in range(n):
        K[e : e + 2, e : e + 2] += k[e] * np.array([[1, -1], [-1, 1]])
    u = np.zeros(n + 1)
    u[1:] = np.linalg.solve(K[1:, 1:], f)
    return u


rng = np.random.default_rng(7)
N, U = rng.normal, rng.uniform
EXAMPLES = [
    (ideal_gas_van_der_waals, {"T": 300.0, "V": 2.0, "n": 1.0}),
    (lennard_jones_energy, {"positions": np.array([[0.0, 0.0, 0.0], [1.2, 0.1, 0.0], [0.2, 1.3, 0.4]]), "epsilon": 0.7, "sigma": 1.0}),
    (coulomb_forces, {"q": U(1, 2, 3), "x": N(size=(3, 2))}),
    (ising_energy, {"spins": U(-1, 1, (3, 4)), "J": 0.8, "h": 0.1}),
    (arrhenius, {"T": 350.0, "A": 10.0, "Ea": 5000.0}),
    (michaelis_menten, {"S": U(0.5, 2, 4), "vmax": 1.5, "km": 0.4, "inhibitor": 0.2}),
    (reaction_network, {"c": U(0.5, 2, 3), "k": U(0.5, 2, 3)}),
    (planck, {"wavelength": 5e-7, "T": 5800.0}),
    (blackbody_ratio, {"x": U(0.5, 3, 4)}),
    (kepler_equation, {"M": 1.1, "e": 0.3}),
    (orbital_position, {"a": 1.5, "e": 0.2, "M": 0.8, "inclination": 0.4}),
    (luminosity_distance, {"z": 0.5, "omega_m": 0.3}),
    (snell, {"theta": 0.4, "n1": 1.0, "n2": 1.5}),
    (fresnel_reflectance, {"theta": 0.4, "n1": 1.0, "n2": 1.5}),
    (thin_film_transfer, {"thicknesses": np.array([0.1, 0.2]), "indices": np.array([1.38, 2.1]), "wavelength": 0.55}),
    (impedance, {"R": 10.0, "L": 0.1, "C": 0.01, "omega": 20.0}),
    (diode_current, {"V": 0.3, "I_s": 1e-3, "n": 2.0, "Rs": 0.1}),
    (schroedinger_ground_state, {"V": U(0, 1, 5), "dx": 0.5}),
    (gaussian_wave_packet, {"x": np.linspace(-2, 2, 7), "k0": 2.0, "sigma": 0.7}),
    (partition_function, {"energies": np.array([0.1, 0.5, 1.2]), "T": 0.8}),
    (bessel_beam, {"r": U(0.5, 2, 3), "k": 1.3}),
    (diffusion_profile, {"x": U(0.1, 1, 4), "t": 2.0, "D": 0.1}),
    (reynolds_friction, {"re": 1e5, "roughness": 1e-3}),
    (pipe_network, {"flows": np.array([0.5, -0.2, 0.7]), "resistances": U(1, 2, 3), "incidence": np.array([[1, -1, 0], [0, 1, -1]])}),
    (barometric, {"h": 1500.0}),
    (wind_chill, {"T": -5.0, "v": 20.0}),
    (penman_evaporation, {"Rn": 12.0, "T": 22.0, "u": 2.0, "rh": 0.6}),
    (seismic_travel_times, {"velocities": np.array([1.5, 2.0, 2.5]), "thicknesses": np.array([0.5, 0.7, 1.0]), "offset": 1.0}),
    (two_stream_radiation, {"tau": U(0.1, 0.5, 4), "albedo": 0.3}),
    (structure_factor, {"positions": N(size=(4, 3)), "q": N(size=3)}),
    (truss_stiffness, {"E": 2.0, "A": 0.5, "nodes": np.array([[0.0, 0.0], [1.0, 0.2], [0.4, 1.1]]), "elements": [(0, 1), (1, 2), (0, 2)]}),
    (finite_element_bar, {"k": U(1, 2, 3), "f": N(size=3)}),
]
