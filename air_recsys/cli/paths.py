"""The files of a command: what it writes replaces neither what it reads nor what else it writes."""

from __future__ import annotations

import functools
import inspect
import itertools
import os
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from air_recsys.exceptions import ParameterError

_OUTPUTS = "air_recsys.outputs"  # key of `Context.meta`: files to write by the names of their parameters
_SUFFIXES = frozenset(
    {".air", ".csv", ".tsv", ".parquet", ".xlsx", ".xls", ".json", ".html", ".pdf", ".graphml", ".png", ".gz", ".zip"}
)
_WORDS = "air_recsys.words"  # key of `Context.meta`: what stands on the command line
_STANDARD = Path("-")
GIVEN: ContextVar[frozenset[str]] = ContextVar("given", default=frozenset())
"""The options that stand on the command line, each by its first name."""


def writable(context: typer.Context, parameter: typer.CallbackParam, value: Path | None) -> Path | None:
    """Return the file that a parameter says to write; raise before any work where it could not be written."""
    if value is None:
        return None
    if value.is_dir():
        raise ParameterError(f"expected a file to write to, found the folder {value}")
    if not value.parent.is_dir():
        raise ParameterError(f"expected an existing folder for {value.name}, found no {value.parent}")
    if not os.access(value.parent, os.W_OK):
        raise ParameterError(f"expected a folder that can be written to for {value.name}, found {value.parent}")
    if journal := journal_with_changes(value):
        mend = "air-recsys compact writes a model that has them, or move it away"
        raise ParameterError(f"{value} would be another file than {journal} has changes of: {mend}")
    if value.exists() and not os.access(value, os.W_OK):
        typer.echo(f"note: {value} is read-only, and will be replaced", err=True)
    _note(context, parameter, value)
    return value


def journal_with_changes(model: Path) -> Path | None:
    """Return the journal beside a model file, None where there is none or an empty one."""
    from air_recsys.storage.journal import Journal, journal_beside

    journal = Journal(journal_beside(model), "")
    return journal.path if journal.is_behind else None


def _of_format(suffix: str) -> Callable[..., Path | None]:
    """Return `writable` for files whose name must not be that of another format than this one."""

    def noted(context: typer.Context, parameter: typer.CallbackParam, value: Path | None) -> Path | None:
        if value is not None and value.suffix.lower() in _SUFFIXES - {suffix}:
            raise ParameterError(f"expected a name that ends in {suffix} for {_shown(parameter)}, found {value}")
        return writable(context, parameter, value)

    return noted


as_model, as_csv, as_json = _of_format(".air"), _of_format(".csv"), _of_format(".json")
as_html, as_graphml = _of_format(".html"), _of_format(".graphml")


def kept(context: typer.Context, parameter: typer.CallbackParam, value: str | None) -> str | None:
    """Return the value of a parameter that names a file to write, or a database by its address."""
    if value is not None and "://" not in value:
        _note(context, parameter, Path(value))
    return value


class CommandOfFiles(TyperCommand):
    """A command that is refused before any work where its words or its files do not go together."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an option that has another one as its value, and name one that stands twice."""
        ctx.meta[_WORDS] = words = list(itertools.takewhile(lambda word: word != "--", args))
        params: list[Any] = self.get_params(ctx)
        options = {name: one for one in params for name in one.opts + one.secondary_opts if name[0] == "-"}
        given: set[str] = set()
        for word, following in zip(words, [*words[1:], ""], strict=False):
            name, sign, _ = word.partition("=")
            if (option := options.get(name)) is None:
                continue
            if not sign and not option.is_flag and following.partition("=")[0] in options:
                found = f"{following}, an option: write {name}={following} if it is meant"
                raise ParameterError(f"expected a value of {name}, found {found}")
            if option.opts[0] in given and not option.multiple:
                typer.echo(f"note: {name} stands twice, and the last one counts", err=True)
            given.add(option.opts[0])
        GIVEN.set(frozenset(given))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Compare the files, then run."""
        outputs: dict[str, Path] = ctx.meta.get(_OUTPUTS, {})
        files = {name: value for name, value in ctx.params.items() if isinstance(value, Path)} | outputs
        values = [word.partition("=")[2] if word[:2] == "--" and "=" in word else word for word in ctx.meta[_WORDS]]
        if "" in values and Path() in files.values():
            raise ParameterError("expected the name of a file, found an empty one: is a variable not set?")
        if [*files.values()].count(_STANDARD) > 1:
            raise ParameterError("expected - for one file, found it for several: the standard input is read once")
        names = {each.name: _shown(each) for each in self.params}
        for output, written in outputs.items():
            if written == _STANDARD or any(value[-1:] == "/" and Path(value) == written for value in values):
                found = "-, and the standard output is for people" if written == _STANDARD else f"no folder {written}/"
                raise ParameterError(f"expected a file to write to for {names[output]}, found {found}")
            for other, path in files.items():
                if other != output and is_same_file(written, path):
                    expected = f"expected {names[output]} and {names[other]} to be two files"
                    raise ParameterError(f"{expected}, found {written} for both")
        return super().invoke(ctx)


class App(typer.Typer):
    """An application whose commands are `CommandOfFiles`, and take each field of a data class as a parameter."""

    def command(self, name: str | None = None, *, cls: Any = CommandOfFiles, **options: Any) -> Any:
        """Return the decorator of a command."""
        declare = super().command(name, cls=cls, **options)
        return lambda function: declare(_spread(function))


def _spread(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with the fields of its data classes in place of these; typer reads its signature."""
    parameters = inspect.signature(function, eval_str=True).parameters
    kinds = {name: each.annotation for name, each in parameters.items()}
    groups: dict[str, Any] = {name: kind for name, kind in kinds.items() if is_dataclass(kind)}
    if not groups:
        return function
    members = {name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()}

    @functools.wraps(function)
    def run(**values: Any) -> Any:
        made = {name: group(**{each: values.pop(each) for each in members[name]}) for name, group in groups.items()}
        return function(**made, **values)

    spread = [one for name, each in parameters.items() for one in members.get(name, {name: each}).values()]
    every = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in spread]
    run.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in every}
    return run


def is_same_file(one: Path, other: Path) -> bool:
    """Return whether two paths lead to one file, there or not yet."""
    try:
        return one.samefile(other)
    except OSError:
        return one.expanduser().resolve() == other.expanduser().resolve()


def _note(context: typer.Context, parameter: typer.CallbackParam, path: Path) -> None:
    context.meta.setdefault(_OUTPUTS, {})[parameter.name] = path


def _shown(parameter: Any) -> str:
    """Return how a user writes a parameter: ``--model``, ``FILE``."""
    return parameter.opts[0] if parameter.param_type_name == "option" else parameter.name.upper()
