"""What guides the fuzzer, apart from atheris itself, which the tests do not need."""

import importlib.util

import pytest

pytest.importorskip("implicit")
pytest.importorskip("h5py")
pytest.importorskip("optuna")

import coverage_guided
from attacks.readers import Loader, all_readers
from coverage_guided import BLIND, PARSERS, main, row_of, uninstrumented
from guided import Findings, Place, keep, mutator

LOG = """INFO: Seed: 1
#12\tINITED cov: 60 ft: 66 corp: 8/2840b exec/s: 0 rss: 347Mb
#20\tNEW    cov: 64 ft: 70 corp: 9/2b lim: 200 exec/s: 5 rss: 347Mb L: 3/277 MS: 1 Custom-
"""
DONE = "#2651\tDONE   cov: 67 ft: 80 corp: 9/2b exec/s: 331 rss: 346Mb\nDone 2651 runs in 21 second(s)\n"
SAMPLES = {"a.json": b'{"a": [1, 2]}', "b.json": b"[3]"}


def make(folder):
    for name, content in SAMPLES.items():
        (folder / name).write_bytes(content)


@pytest.fixture
def place(tmp_path):
    return Place(Loader("pair", "json", make, lambda folder: None), tmp_path / "files")


def test_parsers_are_modules_and_the_readers_that_none_guides_are_there():
    readers = all_readers()
    assert all(any(name.startswith(start) for name in readers) for start in BLIND)
    assert not any(name.startswith(BLIND) for name in ("model file: AIR", "ratings, CSV", "Monti, MATLAB"))
    assert all(importlib.util.find_spec(f"air_recsys.{parser}") is not None for parser in PARSERS)
    others = uninstrumented()
    assert {"air_recsys", "air_recsys.nn.devices"} <= set(others)
    assert not {"air_recsys.storage.reading", "air_recsys.datasets", "air_recsys.data.sets.drug_target"} & set(others)


@pytest.mark.parametrize(
    ("log", "row"), [(LOG + DONE, ("a", 2651, 67, 3)), (LOG, ("a", 20, 64, 4)), ("", ("a", 0, 0, 4))]
)
def test_rows_are_read_from_what_libfuzzer_printed_and_a_process_has_to_end(log, row):
    assert row_of("a", log, 3) == row


def test_without_atheris_it_says_how_to_get_it(capsys, monkeypatch):
    monkeypatch.setattr(coverage_guided, "find_spec", lambda name: None)
    assert main([]) == 2
    assert "pip install" in capsys.readouterr().out


def test_an_input_replaces_one_file_and_the_next_puts_it_back(place):
    seeds = place.seeds()
    assert seeds[:2] == [bytes([number]) + content for number, content in enumerate(SAMPLES.values())]
    assert len(set(seeds)) > 10  # and broken copies
    assert (place.put(b"\0new") / "a.json").read_bytes() == b"new"
    folder = place.put(b"\x03more")
    assert {name: (folder / name).read_bytes() for name in SAMPLES} == SAMPLES | {"b.json": b"more"}
    assert (place.put(b"") / "a.json").read_bytes() == b""


def test_half_of_the_changes_are_by_the_format_and_the_others_by_libfuzzer(place):
    change = mutator(place, lambda data, size: b"libfuzzer")

    def changed(data, size=100):
        return [change(data, size, seed) for seed in range(100)]

    valid = b"\0" + SAMPLES["a.json"]
    assert 30 < changed(valid).count(b"libfuzzer") < 70
    assert changed(valid) == changed(valid)
    assert all(data == b"libfuzzer" or len(data) <= 5 for data in changed(valid, 5))
    # Where the format is broken already, libFuzzer changes what could not be read.
    assert changed(b"\0{").count(b"libfuzzer") > 70


def test_unexpected_errors_are_counted_and_one_of_each_line_is_kept(place, tmp_path):
    findings = Findings(tmp_path / "count", tmp_path / "kept", "a: b")
    for data in (b"\0x", b"\0y"):
        try:
            int(data)
        except ValueError as error:
            findings.add(error, place.put(data))
    assert (tmp_path / "count").stat().st_size == 2
    assert (tmp_path / "kept" / "a--b-0" / "a.json").read_bytes() == b"x"
    assert "ValueError" in (tmp_path / "kept" / "a--b-0.txt").read_text(encoding="utf-8")
    assert keep(place.put(b"\0z"), tmp_path / "kept", "c").is_dir()
