"""Every `air-recsys` line of the pages names a command and options that there are; shell blocks are shell."""

import re
import shlex
import subprocess

import typer
from doc_pages import PAGES, blocks, commands

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
    """The words of a line that no command or option has; values and files are left alone."""
    meant, words = COMMAND, shlex.split(line)[1:]
    while words and not words[0].startswith("--") and (below := getattr(meant, "commands", None)) is not None:
        word = words.pop(0)
        if word not in below:
            return [word]
        meant = below[word]
    options = {option for parameter in meant.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return [word for word in words if word.startswith("--") and word.split("=")[0] not in options | {"--help"}]


def test_commands_have_the_options_that_the_pages_give_them():
    assert len(LINES) > 15
    assert {line: unknown for line in (*LINES, *IN_TEXT) if (unknown := unknown_words(line))} == {}


def test_shell_blocks_are_shell():
    blocks_of_shell = [block.text for page in PAGES for block in blocks(page) if block.language == "bash"]
    for text in blocks_of_shell:
        checked = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
        assert checked.returncode == 0, checked.stderr


def test_benchmarks_that_the_pages_name_are_there():
    from benchmarks.commands import COMMANDS

    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    named = {name for text in texts for name in re.findall(r"python -m benchmarks\s+([a-z][\w-]*)", text)}
    assert named - set(COMMANDS) == set()


def test_the_check_sees_what_there_is_not():
    for line in ("air-recsys trian", "air-recsys train --no-such x", "air-recsys dti nothing", "air-recsys --no-such"):
        assert unknown_words(line) != []
    assert unknown_words("air-recsys graph model.air --html x.html") == []
