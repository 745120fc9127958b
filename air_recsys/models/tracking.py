"""Callbacks of `AIR.fit` that send the figures of each record to TensorBoard or MLflow (extra ``track``)."""

from __future__ import annotations

import math
import os
import time
from types import TracebackType
from typing import Any, Self

from air_recsys.models import Recommender
from air_recsys.storage.validation import import_extra
from air_recsys.training import Record

_NAMES = {"row_energy": "user_energy", "column_energy": "item_energy"}  # as in `history_`


class TensorBoardCallback:
    """Write the history of a training for TensorBoard: one scalar for each column of `history_`, by its epoch.

    Parameters
    ----------
    log_dir : str or Path
        Folder of this run, created if it does not exist; ``tensorboard --logdir`` takes it or a parent folder. Use one
        folder per training, so that their curves stay separate.

    Raises
    ------
    MissingExtraError
        If tensorboard is not installed.

    Notes
    -----
    A figure that is NaN, such as `validation_rmse` without validation ratings, is left out. Each record is on disk at
    once. `close`, or the end of a ``with`` block, closes the file.

    Examples
    --------
    >>> from air_recsys import AIR
    >>> with TensorBoardCallback("runs/first") as board:  # doctest: +SKIP
    ...     AIR.for_ratings().fit(data, callbacks=[board])
    """

    def __init__(self, log_dir: str | os.PathLike[str]) -> None:
        import_extra("tensorboard", "track")
        self._writer: Any = import_extra("torch.utils.tensorboard", "track").SummaryWriter(os.fspath(log_dir))

    def __call__(self, record: Record) -> None:
        """Write one record."""
        for name, value in _figures(record).items():
            self._writer.add_scalar(name, value, record.epoch)
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class MLflowCallback:
    """Log a training as a run of MLflow: the model's parameters once, the columns of `history_` by their epoch.

    Parameters
    ----------
    model : Recommender
        The model that is fitted; its parameters are read when training starts.
    tracking_uri : str, optional
        Where MLflow keeps its runs, such as ``http://host:5000`` or ``sqlite:///mlflow.db``; by default the setting of
        MLflow.
    experiment : str, optional
        Name of the experiment, created if it does not exist; by default MLflow's "Default".
    run_name : str, optional
        By default MLflow chooses one.

    Raises
    ------
    MissingExtraError
        If MLflow is not installed.

    Notes
    -----
    Inside ``with mlflow.start_run():`` the figures go to that run, which stays open, unless one of the last three
    parameters names another one. Otherwise a run begins with the first record, and `close` or the end of a ``with``
    block ends it, as FAILED if an error ends the block. The global state of MLflow does not change. A figure that is
    NaN is left out.

    Examples
    --------
    >>> from air_recsys import AIR
    >>> model = AIR.for_ratings()
    >>> with MLflowCallback(model, experiment="films") as tracker:  # doctest: +SKIP
    ...     model.fit(data, callbacks=[tracker])
    """

    def __init__(
        self,
        model: Recommender,
        tracking_uri: str | None = None,
        experiment: str | None = None,
        run_name: str | None = None,
    ) -> None:
        self._mlflow: Any = import_extra("mlflow", "track")
        self._model, self._experiment, self._run_name = model, experiment, run_name
        own = any(given is not None for given in (tracking_uri, experiment, run_name))
        self._active: Any = None if own else self._mlflow.active_run()
        self._client: Any = self._mlflow.MlflowClient(tracking_uri)
        self.run_id: str | None = None

    def __call__(self, record: Record) -> None:
        """Log one record."""
        if self.run_id is None:
            run = self._active or self._client.create_run(self._experiment_id(), run_name=self._run_name)
            param = self._mlflow.entities.Param
            params = [param(name, str(value)) for name, value in self._model.get_params().items()]
            self._client.log_batch(run.info.run_id, params=params)
            self.run_id = run.info.run_id
        metric, now = self._mlflow.entities.Metric, int(time.time() * 1000)
        metrics = [metric(name, value, now, record.epoch) for name, value in _figures(record).items()]
        self._client.log_batch(self.run_id, metrics=metrics)

    def _experiment_id(self) -> str:
        name = self._experiment or "Default"
        experiment = self._client.get_experiment_by_name(name)
        return self._client.create_experiment(name) if experiment is None else experiment.experiment_id

    def close(self, status: str = "FINISHED") -> None:
        """End the run if this callback started it; a later record starts another one.

        Parameters
        ----------
        status : {"FINISHED", "FAILED", "KILLED"}
        """
        if self.run_id is not None and self._active is None:
            self._client.set_terminated(self.run_id, status)
        self.run_id = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close("FINISHED" if kind is None else "FAILED")


def _figures(record: Record) -> dict[str, float]:
    """The finite figures of a record by their names in `history_`."""
    figures = {_NAMES.get(name, name): float(value) for name, value in record._asdict().items() if name != "epoch"}
    return {name: value for name, value in figures.items() if math.isfinite(value)}
