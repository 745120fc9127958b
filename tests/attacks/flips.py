"""Files of which one bit has changed: every one that would say something else is refused."""

from __future__ import annotations

import io
import logging
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from air_recsys.distributed.checkpoint import Checkpoints
from air_recsys.distributed.group import joined
from air_recsys.dti import DrugTargetAIR
from air_recsys.exceptions import AirRecsysError
from air_recsys.models import Recommender
from air_recsys.storage.validation import check_choice, check_integer
from air_recsys.training.checkpoint import CheckpointFile
from attacks import model_loaders as samples

_COUNTS = ("flips", "refused", "unread", "silent", "unexpected")


@dataclass(frozen=True)
class Format:
    """A kind of file.

    Parameters
    ----------
    make : callable
        Writes a valid one into a folder.
    read : callable
        Reads that folder, and returns all that it says as bytes.
    """

    make: Callable[[Path], Any]
    read: Callable[[Path], bytes]


def flipped_bits(n_flips: int, seed: int, names: list[str] | None = None) -> list[dict[str, Any]]:
    """Flip one random bit of a valid file of each format at a time, read it, and count what comes of it.

    A file is refused by an error of the library; unread, where it says what it said before, as for a bit that nothing
    reads; silent, where it says something else; or unexpected, where it ends in any other error.
    """
    check_integer("n_flips", n_flips, minimum=1)
    known = formats()
    chosen = [known[check_choice("a format", name, known)] for name in names or known]
    return [
        {"format": name, **_counts(kind, n_flips, Random(f"{seed}/{name}"))}
        for name, kind in zip(names or known, chosen, strict=True)
    ]


def formats() -> dict[str, Format]:
    """Return the formats by name.

    Raises
    ------
    MissingExtraError
        Where implicit is not installed.
    """
    models = {f"model: {name}": make for name, make in samples.models().items()}
    return {
        **{
            name: Format(partial(samples.save_model, make), partial(_model, Recommender))
            for name, make in models.items()
        },
        "model: DrugTargetAIR": Format(samples.save_drug_target, partial(_model, DrugTargetAIR)),
        "model: ImplicitAIR": Format(samples.save_implicit, _implicit),
        **{
            f"checkpoint: {name}": Format(partial(samples.write_checkpoint, make), partial(_checkpoint, make))
            for name, make in samples.trained().items()
        },
        "checkpoint, several ranks": Format(samples.write_checkpoints, _checkpoints),
    }


def _counts(kind: Format, n_flips: int, rng: Random) -> dict[str, Any]:
    counts: dict[str, int] = dict.fromkeys(_COUNTS, 0)
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as place, _quiet():
        folder = Path(place)
        kind.make(folder)
        valid = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
        expected = kind.read(folder)
        for _ in range(n_flips):
            path = rng.choices(list(valid), [len(content) for content in valid.values()])[0]
            path.write_bytes(flipped(valid[path], rng.randrange(8 * len(valid[path]))))
            counts["flips"] += 1
            counts[_outcome(kind, folder, expected)] += 1
            path.write_bytes(valid[path])
    size = sum(map(len, valid.values()))
    return {"bytes": size, **counts, "seconds": time.perf_counter() - begin}


@contextmanager
def _quiet() -> Iterator[None]:
    """Let torch not tell of every index that it cannot read."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def flipped(content: bytes, bit: int) -> bytes:
    r"""Return content with one bit changed.

    Examples
    --------
    >>> flipped(b"\x00\x00", 9)
    b'\x00\x02'
    """
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def _outcome(kind: Format, folder: Path, expected: bytes) -> str:
    try:
        return "unread" if kind.read(folder) == expected else "silent"
    except AirRecsysError:
        return "refused"
    except Exception:
        return "unexpected"


def _model(kind: Any, folder: Path) -> bytes:
    """Return a model as it would be saved again: the same content makes the same bytes."""
    model = kind.load(folder / "model.air")
    with tempfile.TemporaryDirectory() as other:
        return model.save(Path(other) / "again.air").read_bytes()


def _implicit(folder: Path) -> bytes:
    from air_recsys.adapters.implicit import ImplicitAIR  # it cannot be imported without its host

    again = io.BytesIO()
    ImplicitAIR.load(str(folder / "model.npz")).save(again)
    return again.getvalue()


def _checkpoint(make: Callable[[], Any], folder: Path) -> bytes:
    mark = make().fingerprint(samples.interactions())
    state = CheckpointFile(folder / "run.ckpt", mark).read()
    with tempfile.TemporaryDirectory() as other:
        again = CheckpointFile(Path(other) / "again.ckpt", mark)
        again.write(state)
        return again.path.read_bytes()


def _checkpoints(folder: Path) -> bytes:
    with joined("cpu", 10) as group:
        course, tensors = samples.read_checkpoints(Checkpoints(group, folder / "kept", samples.MARK))
    values = {name: tensor.tolist() for name, (tensor, _) in tensors.items()}
    return repr((course, values)).encode()
