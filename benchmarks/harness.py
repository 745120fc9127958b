"""Cases of a benchmark, told in TOML, and how one of them is measured."""

from __future__ import annotations

import importlib
import inspect
import shlex
import timeit
import tomllib
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple, TypeVar

import numpy as np

from air_recsys.data.sets.registry import data_root, get_dataset
from air_recsys.evaluation.results import ResultTable
from air_recsys.evaluation.results.apart import MemoryWatch, Stopwatch
from air_recsys.exceptions import DataFileError, MissingExtraError, ParameterError

EXPERIMENTS = Path(__file__).with_name("experiments")
Result = TypeVar("Result")


class Found:
    """What a case has measured: rows of its tables, notes on the first one, and facts that its protocol tells.

    Parameters
    ----------
    tables : list of dict
        Rows of each table.
    """

    def __init__(self, *tables: list[dict[str, Any]], notes: Iterable[str] = (), **facts: Any) -> None:
        self.tables, self.notes, self.facts = tables, list(notes), facts


class Case(NamedTuple):
    """One measurement: a function, what it needs, its parameters, and how its tables are told.

    Attributes
    ----------
    run : str
        "module:function", which returns `Found`, or tables that are told already.
    data : list of str
        Data sets by their names in the registry; none are needed where the parameter `planted` is given.
    extras : dict of str
        The extra of each module that has to be there.
    titles, protocols, notes : list of str
        Of the tables; protocols have places for parameters and facts, and the last one counts for all others.
    parameters : dict
        Arguments of the function; `root`, `seed` and `threads` come from the command, and `case` is the second word of
        the name.
    changes : dict
        What was changed of them, for `call`.
    """

    name: str
    run: str
    titles: list[str]
    protocols: list[str]
    notes: list[str]
    data: list[str]
    extras: dict[str, str]
    parameters: dict[str, Any]
    changes: dict[str, Any] = {}  # noqa: RUF012, a tuple has no other defaults

    def folder(self, data: Path | None) -> Path | None:
        """The folder of the data sets, where the case reads it; None where it does not.

        Raises
        ------
        MissingExtraError, DataFileError
            Before any work, where an extra is not installed, or the folder or a set is not there.
        """
        for module, extra in self.extras.items():
            if find_spec(module) is None:
                raise MissingExtraError(module, extra)
        if self.parameters.get("planted") or "root" not in inspect.signature(self._function()).parameters:
            return None
        root = data_root(data)
        for dataset in map(get_dataset, self.data):
            place = root / dataset.folder
            if not place.is_dir():  # which files do is up to the loader
                expected = f"{self.name} expects {dataset.title} in {place}, found no such folder"
                raise DataFileError(f"{expected}; {dataset.how_to_get}")
        return root

    def changed(self, changes: Mapping[str, Any]) -> Case:
        """The case with other parameters: its own by their names, those of its model under `settings`."""
        parameters = dict(self.parameters)
        for name, value in changes.items():
            if name in parameters:
                if isinstance(parameters[name], bool) and not isinstance(value, bool):
                    raise ParameterError(f"--set expects True or False for {name}, found {value!r}")
                parameters[name] = _several(value) if isinstance(parameters[name], list) else value
            elif "settings" in parameters:
                parameters["settings"] = parameters["settings"] | {name: value}
            else:
                raise ParameterError(
                    f"--set expects a parameter of {self.name} ({', '.join(parameters)}), found {name!r}"
                )
        return self._replace(parameters=parameters, changes=dict(changes))

    def call(self, seed: int) -> str:
        """The command that measures this again, for the reader of the notes.

        Examples
        --------
        >>> read_cases("ratings")[2]["ml-1m"].changed({"systems": "Surprise SVD"}).call(2)
        "`python -m benchmarks ratings ml-1m --set 'systems=Surprise SVD' --seed 2`"
        """
        words = [f"--set {shlex.quote(f'{name}={value}')}" for name, value in self.changes.items()]
        words += [f"--seed {seed}"] if seed else []
        return f"`{' '.join(['python -m benchmarks', self.name, *words])}`"

    def tables(self, root: Path | None, seed: int, threads: int) -> list[ResultTable]:
        """Run the function and tell what it found."""
        function = self._function()
        given = {"root": root, "seed": seed, "threads": threads, "case": self.name.split()[1]}
        wanted = inspect.signature(function).parameters
        found = function(**{name: given[name] for name in given if name in wanted}, **self.parameters)
        if not isinstance(found, Found):
            for table in found:
                table.notes.insert(0, self.call(seed))
            return found
        facts = given | self.parameters | {"given": told(self.parameters.get("settings", {}))} | found.facts
        tables = []
        for number, (title, rows) in enumerate(zip(self.titles, found.tables, strict=True)):
            protocol = self.protocols[min(number, len(self.protocols) - 1)].format(**facts)
            tables.append(
                ResultTable(title.format(**facts), protocol, rows, [] if number else self.notes + found.notes)
            )
        return tables

    def _function(self) -> Callable[..., Found | list[ResultTable]]:
        module, _, function = self.run.partition(":")
        return getattr(importlib.import_module(module), function)


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a file of this folder.

    `ParameterError` is raised where there is none.
    """
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in path.parent.glob("*.toml")))
        raise ParameterError(f"expected a file of {known}, found {path.stem!r}")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def read_cases(name: str) -> tuple[str, list[str], dict[str, Case]]:
    """What a benchmark is about, the cases that run where none is named, the first by default, and all by name.

    What stands under "all", and in the case that one is `like`, holds where a case says nothing else.
    """
    content, cases = read_toml(EXPERIMENTS / f"{name}.toml"), {}
    about, default, common = content.pop("about"), content.pop("default", None), content.pop("all", {})
    for case, own in content.items():
        table = common | content.get(own.get("like"), {}) | own
        table.pop("like", None)
        how = {of: table.pop(of, []) for of in ("titles", "protocols", "notes", "data")}
        extras = table.pop("extras", {})
        cases[case] = Case(f"{name} {case}", table.pop("run"), **how, extras=extras, parameters=table)
    return about, list(cases) if default == "all" else default or list(cases)[:1], cases


def _several(value: Any) -> list[Any]:
    """The values of a list that is told as one: a text has commas between them."""
    return [each.strip() for each in value.split(",")] if isinstance(value, str) else np.atleast_1d(value).tolist()


def spent_on(call: Callable[[], Result]) -> tuple[Result, dict[str, float]]:
    """The result of a call, its seconds on the clock and of all threads, and GiB before it and at its peak."""
    memory = MemoryWatch()
    with Stopwatch() as watch:
        result = call()
    seconds = {"seconds": watch.seconds, "cpu_seconds": watch.cpu_seconds}
    return result, seconds | {"before_gib": memory.before_gib, "peak_gib": memory.peak_gib()}


class Times(NamedTuple):
    """Seconds of each round, on the clock and of the processors."""

    seconds: np.ndarray
    cpu_seconds: np.ndarray


def in_turn(contenders: Mapping[str, Callable[[], object]], rounds: int, number: int = 1) -> dict[str, Times]:
    """Seconds a call of each contender, called in turn, `number` times a round, after one call that does not count.

    The garbage collector is off in every call, see `timeit`: it would fall into one contender's turn by chance.

    Examples
    --------
    >>> {name: times.seconds.size for name, times in in_turn({"a": dict, "b": list}, rounds=3).items()}
    {'a': 3, 'b': 3}
    """
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for call in contenders.values():
        call()
    for _ in range(rounds):
        for name, call in contenders.items():
            before = process_time()
            clock = timeit.timeit(call, number=number)
            spent[name].append((clock / number, (process_time() - before) / number))
    return {name: Times(*np.array(each).T) for name, each in spent.items()}


def median_seconds(contenders: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median seconds on the clock of one call of each contender, see `in_turn`."""
    return {name: float(np.median(times.seconds)) for name, times in in_turn(contenders, rounds).items()}


def check_settings(model: Any, settings: Mapping[str, Any]) -> None:
    """Raise `ParameterError` for settings that are no parameters of a model."""
    known = list(model.get_params())
    if unknown := [name for name in settings if name not in known]:
        raise ParameterError(
            f"expected parameters of {type(model).__name__} ({', '.join(known)}), found {unknown[0]!r}"
        )


def told(settings: Mapping[str, Any]) -> str:
    """Settings as the arguments of a call.

    Examples
    --------
    >>> told({"solver": "adam", "n_factors": 4})
    'solver=adam, n_factors=4'
    """
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def n_faults(table: ResultTable) -> int:
    """The number of faults in the last row, which is that of all.

    Examples
    --------
    >>> n_faults(ResultTable("Kills", "50 kills", [{"training": "all", "exact": 49, "lost": 1}]))
    1
    """
    return sum(table.rows[-1].get(name, 0) for name in ("unexpected", "silent", "lost", "errors", "wrong"))
