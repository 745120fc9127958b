import hashlib
import io
import socket
import zipfile

import pooch
import pytest

from air_recsys.data.sets.fetching import fetch_dataset
from air_recsys.data.sets.registry import read_registry
from air_recsys.datasets import available, fetch
from air_recsys.exceptions import DataFileError, ParameterError


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def make_dataset(tmp_path):
    """Write a registry file with one set and read it: files as (path, url, content for the checksum, unpack)."""

    def make(files, provides=()):
        lines = ["[toy]", 'title = "Toy"', 'folder = "some/toy"', "users = 1", "items = 1", "ratings = 1"]
        lines += ['terms = "none"', 'source = "http://localhost"', f"provides = {list(provides)!r}"]
        for path, url, content, unpack in files:
            lines += ["[[toy.files]]", f'path = "{path}"', f'url = "{url}"', f'sha256 = "{sha256(content)}"']
            lines += [f'unpack = "{unpack}"'] if unpack else []
        registry = tmp_path / "registry.toml"
        registry.write_text("\n".join(lines))
        return read_registry(registry)["toy"]

    return make


def everything_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_plain_files_arrive_in_their_places(site, make_dataset, tmp_path):
    site.content = {"a.txt": b"alpha", "sub/b.txt": b"beta"}
    dataset = make_dataset([(name, f"{site.url}/{name}", body, None) for name, body in site.content.items()])
    folder = fetch_dataset(dataset, tmp_path / "data", progress=False)
    assert folder == tmp_path / "data" / "some" / "toy"
    assert (folder / "a.txt").read_bytes() == b"alpha"
    assert (folder / "sub" / "b.txt").read_bytes() == b"beta"
    assert everything_in(tmp_path / "data") == [
        "some",
        "some/toy",
        "some/toy/a.txt",
        "some/toy/sub",
        "some/toy/sub/b.txt",
    ]


def test_archive_is_unpacked_and_not_kept(site, make_dataset, tmp_path):
    body = zipped({"toy-1/": "", "toy-1/u.data": "1", "toy-1/more/x": "2", "__MACOSX/junk": "3"})
    site.content = {"toy.zip": body}
    dataset = make_dataset([("toy.zip", f"{site.url}/toy.zip", body, "toy-1")], provides=["u.data"])
    folder = fetch_dataset(dataset, tmp_path / "data", progress=False)
    assert everything_in(folder) == ["more", "more/x", "u.data"]
    assert everything_in(tmp_path / "data") == [
        "some",
        "some/toy",
        "some/toy/more",
        "some/toy/more/x",
        "some/toy/u.data",
    ]


def test_second_call_asks_for_nothing(site, make_dataset, tmp_path):
    site.content = {"a.txt": b"alpha"}
    dataset = make_dataset([("a.txt", f"{site.url}/a.txt", b"alpha", None)])
    first = fetch_dataset(dataset, tmp_path, progress=False)
    assert fetch_dataset(dataset, tmp_path, progress=False) == first
    assert site.requests["a.txt"] == 1


def test_only_what_is_missing_is_downloaded_and_what_is_there_is_kept(site, make_dataset, tmp_path):
    site.content = {"a.txt": b"alpha", "b.txt": b"beta"}
    dataset = make_dataset([(name, f"{site.url}/{name}", body, None) for name, body in site.content.items()])
    folder = tmp_path / "some" / "toy"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"mine")
    fetch_dataset(dataset, tmp_path, progress=False)
    assert (folder / "a.txt").read_bytes() == b"mine"
    assert (folder / "b.txt").read_bytes() == b"beta"
    assert site.requests == {"b.txt": 1}


def test_mirror_is_asked_for_the_names_of_the_registry(site, make_dataset, tmp_path):
    site.content = {"mirror/a.txt": b"alpha"}
    dataset = make_dataset([("a.txt", "http://unreachable.invalid/renamed.txt", b"alpha", None)])
    folder = fetch_dataset(dataset, tmp_path, base_url=f"{site.url}/mirror/", progress=False)
    assert (folder / "a.txt").read_bytes() == b"alpha"


def test_progress_is_shown_on_standard_error_only_where_wanted(site, make_dataset, tmp_path, capfd):
    site.content = {"a.txt": b"alpha"}
    dataset = make_dataset([("a.txt", f"{site.url}/a.txt", b"alpha", None)])
    fetch_dataset(dataset, tmp_path / "silent", progress=False)
    assert capfd.readouterr() == ("", "")
    fetch_dataset(dataset, tmp_path / "loud", progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "a.txt" in err


def test_wrong_checksum_leaves_nothing(site, make_dataset, tmp_path):
    site.content = {"a.txt": b"alpha", "b.txt": b"forged"}
    files = [("a.txt", f"{site.url}/a.txt", b"alpha", None), ("b.txt", f"{site.url}/b.txt", b"beta", None)]
    with pytest.raises(DataFileError, match=f"b.txt: expected the sha256 checksum {sha256(b'beta')}, found"):
        fetch_dataset(make_dataset(files), tmp_path / "data", progress=False)
    assert everything_in(tmp_path / "data") == []


def test_missing_file_leaves_nothing(site, make_dataset, tmp_path):
    site.content = {"a.txt": b"alpha"}
    files = [("a.txt", f"{site.url}/a.txt", b"alpha", None), ("b.txt", f"{site.url}/b.txt", b"beta", None)]
    with pytest.raises(DataFileError, match=r"b.txt: the server answered 404 Not Found"):
        fetch_dataset(make_dataset(files), tmp_path / "data", progress=False)
    assert everything_in(tmp_path / "data") == []


@pytest.mark.parametrize("progress", [False, True])
def test_truncated_download_leaves_nothing(site, make_dataset, tmp_path, progress):
    body = b"x" * 300_000
    site.content, site.cut_off = {"a.txt": body}, {"a.txt"}
    dataset = make_dataset([("a.txt", f"{site.url}/a.txt", body, None)])
    with pytest.raises(DataFileError, match=r"could not download .*a.txt"):
        fetch_dataset(dataset, tmp_path / "data", progress=progress)
    assert everything_in(tmp_path / "data") == []


def test_interrupted_download_leaves_nothing(site, make_dataset, tmp_path, monkeypatch):
    site.content = {"a.txt": b"alpha"}

    def interrupted(self, url, output_file, pooch, check_only=False):
        with open(output_file, "wb") as file:  # noqa: PTH123
            file.write(b"al")
        raise KeyboardInterrupt

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", interrupted)
    dataset = make_dataset([("a.txt", f"{site.url}/a.txt", b"alpha", None)])
    with pytest.raises(KeyboardInterrupt):
        fetch_dataset(dataset, tmp_path / "data", progress=False)
    assert everything_in(tmp_path / "data") == []


def test_no_server(make_dataset, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    dataset = make_dataset([("a.txt", f"http://127.0.0.1:{port}/a.txt", b"alpha", None)])
    with pytest.raises(DataFileError, match="no connection") as caught:
        fetch_dataset(dataset, tmp_path / "data", progress=False)
    assert "HTTPConnectionPool" not in str(caught.value)


@pytest.mark.parametrize("name", ["toy-1/../../evil", "../evil", "/evil", "toy-1\\..\\..\\evil", "C:/evil"])
def test_archive_that_would_write_elsewhere_is_refused(site, make_dataset, tmp_path, name):
    body = zipped({"toy-1/u.data": "1", name: "evil"})
    site.content = {"toy.zip": body}
    dataset = make_dataset([("toy.zip", f"{site.url}/toy.zip", body, "toy-1")], provides=["u.data"])
    with pytest.raises(DataFileError, match=r"inside of the archive's folder, found .*evil"):
        fetch_dataset(dataset, tmp_path / "data", progress=False)
    assert everything_in(tmp_path / "data") == []
    assert not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize(
    ("body", "message"),
    [(b"no archive", "expected a zip archive"), (zipped({"toy-1/other": "1"}), r"\['u.data'\] in the download")],
)
def test_archive_without_the_promised_files_is_refused(site, make_dataset, tmp_path, body, message):
    site.content = {"toy.zip": body}
    dataset = make_dataset([("toy.zip", f"{site.url}/toy.zip", body, "toy-1")], provides=["u.data"])
    with pytest.raises(DataFileError, match=message):
        fetch_dataset(dataset, tmp_path / "data", progress=False)
    assert everything_in(tmp_path / "data") == []


def test_destination_that_is_a_file(site, make_dataset, tmp_path):
    (tmp_path / "data").write_text("in the way")
    dataset = make_dataset([("a.txt", f"{site.url}/a.txt", b"alpha", None)])
    with pytest.raises(DataFileError, match="expected a folder to write to"):
        fetch_dataset(dataset, tmp_path / "data", progress=False)


def test_default_destination_is_the_named_data_root(ml100k, monkeypatch):
    for fold in ("u2", "u3", "u4", "u5", "ua", "ub"):
        for part in ("base", "test"):
            (ml100k / "ml-100k" / f"{fold}.{part}").write_text("")
    monkeypatch.setenv("AIR_RECSYS_DATA", str(ml100k))
    assert fetch("ml-100k") == ml100k / "ml-100k"


def test_unknown_name_and_set_without_address(tmp_path):
    with pytest.raises(ParameterError, match="'ml-100k'"):
        fetch("ml-100m", tmp_path)
    with pytest.raises(DataFileError, match="no address"):
        fetch("gowalla", tmp_path)


def test_registry_is_complete():
    registry = read_registry()
    assert list(available().index) == list(registry)
    for dataset in registry.values():
        assert dataset.terms
        assert dataset.provides
        for file in dataset.files:
            assert file.url.startswith("http")
            assert len(file.sha256) == 64
            assert set(file.sha256) <= set("0123456789abcdef")
    fetchable = available()["fetchable"]
    assert sorted(fetchable.index[~fetchable]) == ["gowalla", "yelp2018"]


@pytest.mark.data
def test_registered_checksums_are_those_of_the_benchmark_files(data_root):
    compared = 0
    for dataset in read_registry().values():
        for file in dataset.files:
            path = data_root / dataset.folder / file.path
            if path.is_file():
                assert pooch.file_hash(str(path), alg="sha256") == file.sha256, path
                compared += 1
    assert compared == 22
