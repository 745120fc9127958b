import pytest

from air_recsys.data.sets import registry as module
from air_recsys.datasets import data_root, load_movielens
from air_recsys.exceptions import DataFileError


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """Without environment, without ../shared/data, with an empty cache folder."""
    work = tmp_path / "project" / "work"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    monkeypatch.delenv("AIR_RECSYS_DATA", raising=False)
    monkeypatch.setattr(module.platformdirs, "user_cache_path", lambda project: tmp_path / "cache" / project)


def test_order_of_the_places(tmp_path, monkeypatch):
    with pytest.raises(DataFileError, match="set the environment variable AIR_RECSYS_DATA"):
        data_root()
    (tmp_path / "cache" / "air-recsys").mkdir(parents=True)
    assert data_root() == tmp_path / "cache" / "air-recsys"
    (tmp_path / "project" / "shared" / "data").mkdir(parents=True)
    assert data_root().resolve() == tmp_path / "project" / "shared" / "data"
    (tmp_path / "named").mkdir()
    monkeypatch.setenv("AIR_RECSYS_DATA", str(tmp_path / "named"))
    assert data_root() == tmp_path / "named"
    assert data_root(tmp_path) == tmp_path
    assert data_root(str(tmp_path)) == tmp_path


def test_named_folders_must_exist(tmp_path, monkeypatch):
    with pytest.raises(DataFileError, match="expected path to name a folder"):
        data_root(tmp_path / "absent")
    monkeypatch.setenv("AIR_RECSYS_DATA", str(tmp_path / "absent"))
    with pytest.raises(DataFileError, match=r"expected AIR_RECSYS_DATA to name .*absent"):
        data_root()


def test_missing_file_is_named_with_the_folder_and_the_remedy(tmp_path):
    with pytest.raises(DataFileError) as caught:
        load_movielens(tmp_path)
    for part in ("'u.data'", str(tmp_path), "'ml-100k'", "air-recsys datasets fetch ml-100k"):
        assert part in str(caught.value)


def test_missing_folder_is_said_to_be_missing(tmp_path):
    with pytest.raises(DataFileError, match="not a folder"):
        load_movielens(tmp_path / "absent")
