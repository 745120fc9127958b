"""One reader under atheris: libFuzzer chooses inputs by the lines that earlier ones reached."""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

from attacks.fuzz import keep, limit_memory
from attacks.mutations import mutated
from attacks.readers import Loader, Workplace

from air_recsys.exceptions import AirRecsysError

SECONDS = 10  # an input that takes longer ends the process
_SEEDS = 10  # broken copies of each file, to begin with
_LENGTH = 200_000  # bytes of an input: some mutations nest 100,000 deep


class Place(Workplace):
    """The files of a reader, one of which is replaced by an input: its first byte says which, the rest is the file."""

    def __init__(self, reader: Loader, folder: Path) -> None:
        super().__init__(reader, folder, seed=0)
        self._files = list(self._valid)

    def put(self, data: bytes) -> Path:
        """Return the folder with one of its files replaced."""
        victim = self._victim(data)
        if self._broken is not None and self._broken != victim:
            self._broken.write_bytes(self._valid[self._broken])
        self._broken = victim
        victim.write_bytes(data[1:])
        return self._folder

    def structured(self, data: bytes, rng: Random) -> bytes:
        """Return an input whose file is broken by its format; any error where it is none of its format any more."""
        with warnings.catch_warnings(action="ignore"):  # of zipfile, about names that stand twice
            return data[:1] + mutated(data[1:], self._form(self._victim(data)), rng)

    def seeds(self) -> list[bytes]:
        """Return the valid files as inputs, and broken copies."""
        valid = [bytes([number]) + self._valid[path] for number, path in enumerate(self._files)]
        return valid + [self.structured(data, Random(seed)) for data in valid for seed in range(_SEEDS)]

    def _victim(self, data: bytes) -> Path:
        return self._files[(data[0] if data else 0) % len(self._files)]


class Findings:
    """What became of an input that ended in another error: a byte more in `count`, and kept where its error is new."""

    def __init__(self, count: Path, kept: Path, name: str) -> None:
        self._count, self._kept, self._name = count, kept, name
        self._known: set[str] = set()

    def add(self, error: BaseException, folder: Path) -> None:
        """Count an error, and keep its input where no other ended in that line."""
        with self._count.open("ab") as file:
            file.write(b".")
        frame = traceback.extract_tb(error.__traceback__)[-1]
        kind = f"{type(error).__name__} {frame.filename}:{frame.lineno}"
        if kind not in self._known:
            target = keep(folder, self._kept, f"{self._name}-{len(self._known)}")
            target.with_suffix(".txt").write_text("".join(traceback.format_exception(error)), encoding="utf-8")
            self._known.add(kind)


def fuzz(reader: Loader, room: Path, kept: Path, limit: str) -> None:
    """Feed a reader until a limit is reached, where libFuzzer ends the process.

    The empty folder `room` takes `files`, `corpus`, libFuzzer's `log` and the `count` of unexpected errors, `kept` the
    inputs that end in one.
    """
    atheris: Any = import_module("atheris")
    log = os.open(room / "log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    place = Place(reader, room / "files")
    (room / "corpus").mkdir()
    for number, data in enumerate(place.seeds()):
        (room / "corpus" / str(number)).write_bytes(data)
    limit_memory()
    options = ["-seed=1", "-len_control=0", "-rss_limit_mb=0", f"-timeout={SECONDS}", f"-max_len={_LENGTH}"]
    command = ["guided", *options, limit, f"-artifact_prefix={room}/", str(room / "corpus")]
    read = _read(reader, place, Findings(room / "count", kept, reader.name))
    # Looked up when it is called: `Fuzz` puts it there.
    atheris.Setup(command, read, custom_mutator=mutator(place, lambda data, size: atheris.Mutate(data, size)))
    atheris.Fuzz()


def _read(reader: Loader, place: Place, findings: Findings) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        folder = place.put(data)
        try:
            with warnings.catch_warnings(action="ignore"):
                reader.load(folder)
        except AirRecsysError:
            pass
        except BaseException as error:
            findings.add(error, folder)
        place.tidy()

    return read


def mutator(place: Place, mutate: Callable[[bytes, int], bytes]) -> Callable[[bytes, int, int], Any]:
    """Return what changes an input: by the format of its file half of the time, else by `mutate`, libFuzzer's own."""

    def change(data: bytes, max_size: int, seed: int) -> bytes:
        rng = Random(seed)
        if rng.random() < 0.5:
            try:
                return place.structured(data, rng)[:max_size]
            except Exception:  # what was broken before may end any parser of the format
                pass
        return mutate(data, max_size)

    return change
