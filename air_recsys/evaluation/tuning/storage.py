"""Storages of studies that outlive the process, each of which belongs to one search."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from air_recsys.exceptions import AirRecsysError, DataFileError, ParameterError
from air_recsys.storage.validation import import_extra
from air_recsys.storage.writing import check_folder

if TYPE_CHECKING:
    from optuna import Study

_MARK = "air_recsys"
_SQLITE = b"SQLite format 3\0"


def storage_url(storage: str | os.PathLike[str]) -> str:
    """Optuna's address of a storage: anything with ``://`` is one, all else is the path of a SQLite file."""
    text = os.fspath(storage)
    if "://" in text:
        return text
    path = Path(text).expanduser().absolute()
    if path.is_dir():
        raise ParameterError(f"expected a file for the study, found the folder {path}")
    check_folder(path)
    if path.is_file():
        with path.open("rb") as file:
            head = file.read(len(_SQLITE))
        if head not in (b"", _SQLITE):
            raise DataFileError(f"expected a new file or a study (SQLite), found other content in {path}")
    return f"sqlite:///{path}"


def open_study(url: str | None, name: str, direction: str, search: dict[str, Any]) -> Study:
    """Make a study or load it, so that trials of different searches never mix.

    `url` is Optuna's address, None keeps the study in memory; `search` holds all that a trial's value depends on, as
    JSON can hold it.
    """
    import_extra("optuna", "tune")
    try:
        return _opened(url, name, direction, search)
    except AirRecsysError:
        raise
    except Exception as error:  # of Optuna, SQLAlchemy, the database, and of whatever a damaged one makes them read
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataFileError(f"expected a storage with studies for {name!r}, found: {reason}") from None


def _opened(url: str | None, name: str, direction: str, search: dict[str, Any]) -> Study:
    optuna = import_extra("optuna", "tune")
    study = optuna.create_study(storage=url, study_name=name, direction=direction, load_if_exists=True)
    kept = study.user_attrs.get(_MARK)
    if kept is None and not study.get_trials(deepcopy=False):
        study.set_user_attr(_MARK, search)
    elif kept is None:
        raise ParameterError(f"the study {name!r} was not made by air_recsys; choose another study_name or storage")
    else:
        _check_same(name, kept, search)
    state = optuna.trial.TrialState
    for trial in study.get_trials(deepcopy=False, states=(state.RUNNING,)):  # left by a process that was killed
        study.tell(trial.number, state=state.FAIL)
    return study


def _check_same(name: str, kept: dict[str, Any], search: dict[str, Any]) -> None:
    for key in search | kept:
        before, now = kept.get(key, "the default"), search.get(key, "the default")
        if before == now:
            continue
        difference = "other data" if key == "data" else f"{key}={before}, found {now}"
        raise ParameterError(
            f"the study {name!r} was made with {difference}: its trials cannot be compared; choose another study_name "
            "or storage"
        )
