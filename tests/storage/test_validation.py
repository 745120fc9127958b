import pytest

from air_recsys.exceptions import MissingExtraError, ParameterError
from air_recsys.storage.validation import check_integer, import_extra


def test_an_absent_dependency_is_named_with_its_extra():
    with pytest.raises(MissingExtraError, match=r"no_such_host.*air-recsys\[cornac\]"):
        import_extra("no_such_host.models", "cornac")


def test_a_dependency_that_is_there_and_fails_says_why_itself(tmp_path, monkeypatch):
    (tmp_path / "broken_host.py").write_text("raise ImportError('libhost.so is of another version')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match=r"libhost\.so is of another version"):
        import_extra("broken_host", "cornac")


def test_a_number_of_too_many_digits_is_refused_by_its_size():
    with pytest.raises(ParameterError, match="n_epochs must be an integer >= 1 and <= 10, found one of 16610 bits"):
        check_integer("n_epochs", 10**5000, minimum=1, maximum=10)
