"""The command bench faults: figures, and a status for scripts."""

import json

import pytest

from air_recsys.cli import main
from benchmarks.faults import fuzz, kills, n_faults
from benchmarks.faults.loaders import Loader

pytest.importorskip("implicit")
pytest.importorskip("optuna")


def test_broken_files_are_counted(tmp_path, capsys):
    options = ["--inputs", "30", "--reader", "titles, CSV", "--keep", str(tmp_path / "kept")]
    with pytest.raises(SystemExit) as ended:
        main(["bench", "faults", "--part", "fuzz", *options, "--json", str(tmp_path / "a.json")])
    assert ended.value.code == 0
    (report,) = json.loads((tmp_path / "a.json").read_text())["reports"]
    assert [row["inputs"] for row in report["rows"]] == [30, 30]
    assert "30 inputs" in capsys.readouterr().out


def test_an_unexpected_error_is_counted_and_its_input_kept(tmp_path):
    def load(folder):
        if folder.joinpath("a.txt").read_text("latin-1") != "a,b":
            raise KeyError("not ours")

    reader = Loader("fragile", "text", lambda folder: folder.joinpath("a.txt").write_text("a,b"), load)
    place = fuzz.Workplace(reader, tmp_path / "files", 0)
    count = fuzz.Count()
    for number in range(20):
        fuzz._read_one(reader, place.broken(number), number, count, tmp_path / "kept")
    assert count.unexpected > 10
    assert count.accepted + count.unexpected == 20
    assert len(list((tmp_path / "kept").iterdir())) == len(count.found) == 5
    assert "KeyError: 'not ours'" in count.found[0]


def test_killed_trainings_go_on_to_the_same_result(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["bench", "faults", "--part", "kills", "--kills", "1", "--json", str(tmp_path / "a.json")])
    assert ended.value.code == 0
    (report,) = json.loads((tmp_path / "a.json").read_text())["reports"]
    assert [(row["training"], row["exact"], row["lost"]) for row in report["rows"]] == [
        ("adam", 1, 0),
        ("all", 1, 0),
    ]
    assert "1 kills" in capsys.readouterr().out


def test_a_training_that_ends_otherwise_is_lost(monkeypatch):
    stand_ins = {"_whole": ("one digest", 0.5), "_killed": True, "_epochs_in": 3, "_run": "another digest"}
    for name, answer in stand_ins.items():
        monkeypatch.setattr(kills, name, lambda *_, answer=answer, **__: answer)
    assert n_faults(kills.bench_kills(1)) == 1
