"""Pools of workers without Ray, which takes long to start them, for tests and for examples of the package."""

import pytest


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work of a pool of workers, in this process."""
    import numpy as np

    from air_recsys.distributed import scoring, workers

    def run(pieces, model_file, job, folder, concurrency, verbose):
        worker = workers.Worker(model_file, job, folder)
        rows = [worker({name: np.array([value]) for name, value in piece._asdict().items()}) for piece in pieces]
        return workers.Done(*(sum(row[name][0] for row in rows) for name in workers.Done._fields))

    monkeypatch.setattr(scoring, "run_pool", run)


@pytest.fixture(autouse=True)
def no_ray_in_examples(request: pytest.FixtureRequest) -> None:
    """Of examples in docstrings; those with Ray are in `tests/distributed`."""
    if isinstance(request.node, pytest.DoctestItem) and "distributed" in request.node.name:
        request.getfixturevalue("in_process")
