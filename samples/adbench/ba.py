"""Bundle adjustment: how far one observed feature is from where a camera sees the point that it belongs to.

The formula is ADBench's (arXiv:1807.10129); README.md has it in full.
"""

import numpy as np


def reprojection_error(cam, point, weight, feature):
    """The weighted error [2] of an observation.

    cam [11]: rotation (axis times angle), centre (3), focal length, principal point (2), radial distortion (2). point [3].
    weight: a scalar. feature [2]: where it was observed. Axes in front of these are those of many observations.
    """
    rotation, centre, focal_length = cam[..., :3], cam[..., 3:6], cam[..., 6:7]
    principal_point, distortion = cam[..., 7:9], cam[..., 9:]
    seen = rotate(rotation, point - centre)
    projected = distort(distortion, seen[..., :2] / seen[..., 2:])
    return weight * (focal_length * projected + principal_point - feature)


def residuals(cams, points, weights, cam_of, point_of, features):
    """The errors [n, 2] of n observations: number k is of point number point_of[k] by camera number cam_of[k].

    cams [c, 11], points [p, 3], weights [n], features [n, 2]; as in `reprojection_error`, whose formula holds for many at once.
    """
    return reprojection_error(cams[cam_of], points[point_of], weights[:, None], features)


def cost(cam, point, weight, feature):
    """Half the squared length of the error: what bundle adjustment minimises, summed over all observations."""
    error = reprojection_error(cam, point, weight, feature)
    return error @ error / 2


def rotate(rotation, v):
    """Rodrigues' formula: v turned about the axis `rotation` by its length in radians; length 0 has its derivatives, too."""
    squared = np.sum(rotation**2, axis=-1, keepdims=True)
    still = squared == 0
    angle = np.sqrt(np.where(still, 1.0, squared))
    sine = np.where(still, 1.0, np.sin(angle) / angle)
    # (1 - cos θ)/θ², in the form that loses no digits when θ is small.
    versine = np.where(still, 0.5, 2 * (np.sin(angle / 2) / angle) ** 2)
    across = np.cross(rotation, v)
    return v + sine * across + versine * np.cross(rotation, across)


def distort(coefficients, p):
    """Radial distortion of a projected point [2], of fourth order."""
    squared = np.sum(p**2, axis=-1, keepdims=True)
    return p * (1 + coefficients[..., :1] * squared + coefficients[..., 1:] * squared**2)
