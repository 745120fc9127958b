"""Communities as discs side by side, before the page is written."""

from __future__ import annotations

import numpy as np

_COVERED = 0.35  # share of the box around all centres that the discs take
_GAP = 0.1  # between two discs, of the mean radius
_ROUNDS = 300  # most, of moves apart


def disc_places(positions: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return centres (n, 2) and radii (n,) of discs near given positions, none over another.

    Their areas are as `sizes`. Discs that lie over each other move apart, again and again, the smaller one more.

    Examples
    --------
    >>> centres, radii = disc_places(np.array([[0.0, 0.0], [0.1, 0.0], [9.0, 9.0]]), np.array([4, 4, 1]))
    >>> bool(np.linalg.norm(centres[0] - centres[1]) > radii[0] + radii[1]), (radii[0] / radii[2]).round(6).item()
    (True, 2.0)
    """
    if not len(positions):
        return positions, np.zeros(0)
    sides = np.maximum(np.ptp(positions, axis=0), 1.0)
    radii = np.sqrt(_COVERED * sides.prod() * sizes / (np.pi * sizes.sum()))
    reach = radii + 0.5 * _GAP * radii.mean()
    masses = radii**2
    centres = positions.astype(np.float64)
    for _ in range(_ROUNDS):
        along = centres[None] - centres[:, None]  # (n, n, 2), from the first to the second
        distance = np.linalg.norm(along, axis=2)
        overlap = np.triu(reach[:, None] + reach - distance, k=1)
        first, second = np.nonzero(overlap > 1e-6)
        if not first.size:
            break
        angle = 2.4 * first  # those at one place part in all directions
        same = np.column_stack((np.cos(angle), np.sin(angle)))
        length = distance[first, second][:, None]
        unit = np.where(length > 1e-9, along[first, second] / np.maximum(length, 1e-9), same)
        move = (1.01 * overlap[first, second])[:, None] * unit
        share = (masses[second] / (masses[first] + masses[second]))[:, None]
        np.subtract.at(centres, first, share * move)
        np.add.at(centres, second, (1 - share) * move)
    return centres, radii
