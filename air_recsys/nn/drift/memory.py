"""The memory of drift, from its sizes alone."""

from __future__ import annotations

from air_recsys.nn.drift.drift import LOOKED_AT

_DOUBLE = 8
_TABLES = 6  # of a curve: inputs, products with covariances, and what makes them, a row of d an entry
_COLUMNS = 12  # of a curve beside these, and of what all processes share: times, index, errors, precisions
_OF_PROCESS = 14  # moments, chains and their work, and the states kept beside the present one
_PROCESSES = 2  # with as many moments as entries; several of fewer moments take no more


def drift_bytes(n_entries: int, width: int) -> int:
    """Return the bytes that drift takes beside the sweeps, of so many entries and columns of the factors.

    Curves are made once, before there are processes, so that the larger of both counts: a high estimate.

    Examples
    --------
    >>> round(drift_bytes(1_000_000, 20) / 1e6), "MB"
    (320, 'MB')
    """
    curves = min(n_entries, LOOKED_AT) * (_TABLES * (width + 1) + _COLUMNS)
    processes = n_entries * (_COLUMNS + _PROCESSES * _OF_PROCESS)
    return _DOUBLE * max(curves, processes)
