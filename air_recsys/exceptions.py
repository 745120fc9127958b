"""Errors and warnings of the library, one class for each kind of fault.

All errors derive from `AirRecsysError` and from the built-in class a caller would expect, so both
``except AirRecsysError`` and ``except ValueError`` work.
"""

from __future__ import annotations

import unicodedata
from typing import Any

_QUOTED = 200  # characters of a value of the caller in a message
_MESSAGE = 500  # characters of a message
_SHOWN = 5  # unknown ids in a message


def quoted(value: object, most: int = _QUOTED) -> str:
    """Return the representation of a value for a message, at most so many characters of it.

    Examples
    --------
    >>> quoted("abc"), quoted("a" * 100, 10)
    ("'abc'", "'aaaaaaaaa...")
    """
    # Of a long sequence no more is represented than is shown: it may have any length.
    if isinstance(value, str | list | tuple) and len(value) > most:
        return f"{repr(value[:most])[:most]}..."
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}..."


class AirRecsysError(Exception):
    """Base class of every error raised on purpose by the library; a message of a page is cut in its middle."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*(_cut(each) if isinstance(each, str) else each for each in args))

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors of other processes are pickled, and some classes have other parameters than a message.
        return _again, (type(self), self.args, self.__dict__)


def _cut(message: str) -> str:
    if len(message) <= _MESSAGE:
        return message
    return f"{message[: _MESSAGE - _QUOTED - 7]} [...] {message[-_QUOTED:]}"


def _again(kind: type[AirRecsysError], args: tuple[Any, ...], state: dict[str, Any]) -> AirRecsysError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class DataError(AirRecsysError, ValueError):
    """Data that cannot be used; the message says what was expected and what was found."""


class ParameterError(AirRecsysError, ValueError):
    """A parameter outside its range, or a combination that makes no sense."""


class UnknownIdError(AirRecsysError, KeyError):
    """An id that was not in the training data.

    Parameters
    ----------
    kind : str
        "user" or "item" (or another word of the caller's layer).
    unknown : list
        The ids that the training data lack.
    hint : str, optional
        Advice to the caller.
    """

    def __init__(self, kind: str, unknown: list, hint: str = "") -> None:
        most = _QUOTED // max(1, min(len(unknown), _SHOWN))
        shown = ", ".join(quoted(value, most) for value in unknown[:_SHOWN]) + ", ..." * (len(unknown) > _SHOWN)
        message = f"{len(unknown)} {kind} id(s) were not in the training data: {shown}"
        if not all(unicodedata.is_normalized("NFC", str(value)) for value in unknown[:_SHOWN]):
            message += " (with accents apart, Unicode's form NFD; the data may have the form NFC)"
        super().__init__(f"{message}; {hint}" if hint else message)

    def __str__(self) -> str:
        # KeyError shows the repr of its argument, with quotes around the sentence.
        return str(self.args[0])


class NotFittedError(AirRecsysError, AttributeError):
    """A call that needs a fitted model, before `fit`."""


class UnansweredError(AirRecsysError, AttributeError):
    """A question that models of this class cannot answer; the message says why."""


class NumericalError(AirRecsysError, ArithmeticError):
    """A step of the training gave NaN or infinity."""


class DivergenceError(AirRecsysError, ArithmeticError):
    """The training diverged to NaN or infinity; the model keeps its last finite state.

    Parameters
    ----------
    epoch : int
        The epoch at which the divergence was detected.
    last_good_epoch : int
        The epoch of the state that the model holds.
    reason : str
        The observation at `epoch`, and what to do.
    """

    def __init__(self, epoch: int, last_good_epoch: int, reason: str) -> None:
        self.epoch = epoch
        self.last_good_epoch = last_good_epoch
        super().__init__(
            f"training diverged: {reason}. The model holds the last good state, of epoch {last_good_epoch}"
        )


class ModelFileError(AirRecsysError, ValueError):
    """A file that is not a usable model: truncated, foreign, or of a newer format."""


class DataFileError(AirRecsysError, ValueError):
    """A data file or data folder that is missing or does not hold what its format promises."""


class MissingExtraError(AirRecsysError, ImportError):
    """An optional dependency is not installed.

    Parameters
    ----------
    package : str
        The distribution that could not be imported.
    extra : str
        The extra of air-recsys that brings it.
    """

    def __init__(self, package: str, extra: str) -> None:
        where = f"pip install 'air-recsys[{extra}]', in a clone of the repository pip install -e '.[{extra}]'"
        super().__init__(f"this needs {package}, which is not installed: {where}")


class MissingTorchError(AirRecsysError, ImportError):
    """Torch is not installed, and a training, or work on a GPU, was asked for.

    Parameters
    ----------
    besides : str, optional
        What else helps.
    """

    def __init__(self, besides: str = "") -> None:
        needed = "this needs torch, which is not installed (trainings and GPUs do): pip install torch"
        super().__init__(needed + besides)


class DeviceError(AirRecsysError, RuntimeError):
    """A requested device that does not exist."""


class MemoryLimitError(AirRecsysError, MemoryError):
    """A training that does not fit into memory; the message names the need, the limit, and a setting that fits."""


class DistributedError(AirRecsysError, RuntimeError):
    """A process of a distributed training that ended or does not answer."""


class CheckpointError(AirRecsysError, ValueError):
    """A checkpoint that cannot be written or read, or that belongs to another training."""


class DataWarning(UserWarning):
    """Data that can be used, but probably not with the intended effect."""


class ParameterWarning(UserWarning):
    """A parameter that has no effect with the other parameters."""
