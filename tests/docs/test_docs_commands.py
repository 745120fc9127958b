"""Every `air-recsys` line of the pages names a command and options that there are; shell blocks are shell."""

import re
import shlex
import subprocess

import pytest
import typer
from doc_pages import PAGES, blocks, commands, name_of

from air_recsys.cli.app import app

COMMAND = typer.main.get_command(app)
NAMED = re.compile(r"`air-recsys ([^`]*)`")
LINES = sorted({line for page in PAGES for block in blocks(page) for line in commands(block)})
IN_TEXT = sorted(
    {
        " ".join(f"air-recsys {found}".split())
        for page in PAGES
        for found in NAMED.findall(page.read_text(encoding="utf-8"))
    }
)


def unknown_words(line):
    """The words of a line that no command or option has; values and files are left alone, NAME is any command."""
    meant, words = [COMMAND], shlex.split(line)[1:]
    while words and not words[0].startswith("--") and (below := getattr(meant[0], "commands", None)) is not None:
        word = words.pop(0)
        meant = list(below.values()) if word == "NAME" else [below[word]] if word in below else []
        if not meant:
            return [word]
    parameters = [parameter for command in meant for parameter in command.params]
    options = {option for parameter in parameters for option in (*parameter.opts, *parameter.secondary_opts)}
    return [word for word in words if word.startswith("--") and word.split("=")[0] not in options | {"--help"}]


@pytest.mark.parametrize("line", LINES)
def test_a_command_has_the_options_that_a_block_gives_it(line):
    assert unknown_words(line) == []


@pytest.mark.parametrize("line", IN_TEXT)
def test_a_command_has_the_options_that_the_text_gives_it(line):
    assert unknown_words(line) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_shell_blocks_are_shell(page):
    for block in blocks(page):
        if block.language == "bash":
            checked = subprocess.run(["bash", "-n"], input=block.text, text=True, capture_output=True, check=False)
            assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(
    "line", ["air-recsys trian", "air-recsys train --no-such x", "air-recsys bench nothing", "air-recsys --no-such"]
)
def test_the_check_sees_what_there_is_not(line):
    assert unknown_words(line) != []


def test_the_check_knows_what_there_is():
    assert len(LINES) > 15
    assert unknown_words("air-recsys bench speed --part full-width --json x.json") == []
