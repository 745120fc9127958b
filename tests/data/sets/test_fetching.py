"""Downloads arrive whole and in their places, or leave nothing behind."""

import hashlib
import io
import socket
import threading
import zipfile
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

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


class Site:
    """A web server's content by path, how often each was asked for, and which ones break off."""

    def __init__(self):
        self.content, self.requests, self.cut_off, self.url = {}, Counter(), set(), ""


@pytest.fixture
def site(monkeypatch):
    """A web server on this machine whose content the test sets."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.lstrip("/")
            site.requests[name] += 1
            body = site.content.get(name)
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if name in site.cut_off else body)

        def log_message(self, format, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        site.url = f"http://127.0.0.1:{server.server_port}"
        yield site
        server.shutdown()
        thread.join()


@pytest.fixture
def make_dataset(site, tmp_path):
    """A data set of one registry: files with the content of their checksums, at the addresses of the server."""

    def make(expected, provides=(), unpack=None, address=None):
        lines = ["[toy]", 'title = "Toy"', 'folder = "some/toy"', "users = 1", "items = 1", "ratings = 1"]
        lines += ['terms = "none"', 'source = "http://localhost"', f"provides = {list(provides)!r}"]
        for path, content in expected.items():
            url = address or f"{site.url}/{path}"
            lines += ["[[toy.files]]", f'path = "{path}"', f'url = "{url}"', f'sha256 = "{sha256(content)}"']
            lines += [f'unpack = "{unpack}"'] if unpack else []
        registry = tmp_path / "registry.toml"
        registry.write_text("\n".join(lines))
        return read_registry(registry)["toy"]

    return make


def files_in(folder):
    """The files of a folder that holds no empty folders."""
    paths = list(folder.rglob("*"))
    assert all(any(path.iterdir()) for path in paths if path.is_dir())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if path.is_file()}


def test_plain_files_arrive_in_their_places_once(site, make_dataset, tmp_path):
    site.content = {"a.txt": b"alpha", "sub/b.txt": b"beta"}
    dataset = make_dataset(site.content)
    for _ in range(2):
        assert fetch_dataset(dataset, tmp_path / "data", progress=False) == tmp_path / "data" / "some" / "toy"
        assert files_in(tmp_path / "data") == {"some/toy/a.txt": b"alpha", "some/toy/sub/b.txt": b"beta"}
    assert site.requests == {"a.txt": 1, "sub/b.txt": 1}


def test_archive_is_unpacked_and_not_kept(site, make_dataset, tmp_path):
    body = zipped({"toy-1/": "", "toy-1/u.data": "1", "toy-1/more/x": "2", "__MACOSX/junk": "3"})
    site.content = {"toy.zip": body}
    fetch_dataset(make_dataset(site.content, ["u.data"], "toy-1"), tmp_path / "data", progress=False)
    assert files_in(tmp_path / "data") == {"some/toy/u.data": b"1", "some/toy/more/x": b"2"}


def test_only_what_is_missing_is_downloaded_and_what_is_there_is_kept(site, make_dataset, tmp_path):
    site.content = {"a.txt": b"alpha", "b.txt": b"beta"}
    folder = tmp_path / "data" / "some" / "toy"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"mine")
    fetch_dataset(make_dataset(site.content), tmp_path / "data", progress=False)
    assert files_in(folder) == {"a.txt": b"mine", "b.txt": b"beta"}
    assert site.requests == {"b.txt": 1}


def test_mirror_is_asked_for_the_names_of_the_registry_and_progress_is_shown_where_wanted(
    site, make_dataset, tmp_path, capfd
):
    site.content = {"mirror/a.txt": b"alpha"}
    dataset = make_dataset({"a.txt": b"alpha"}, address="http://unreachable.invalid/renamed.txt")
    for progress in (False, True):
        folder = fetch_dataset(dataset, tmp_path / str(progress), base_url=f"{site.url}/mirror/", progress=progress)
        assert files_in(folder) == {"a.txt": b"alpha"}
        out, err = capfd.readouterr()
        assert out == ""
        assert ("a.txt" in err) == progress


@pytest.mark.parametrize(
    ("promised", "found", "message"),
    [
        (b"beta", {"b.txt": b"forged"}, f"b.txt: expected the sha256 checksum {sha256(b'beta')}, found"),
        (b"beta", {}, r"b.txt: the server answered 404 Not Found"),
        (b"x" * 300_000, {"b.txt": b"x" * 300_000}, r"could not download .*b.txt"),
    ],
)
@pytest.mark.parametrize("progress", [False, True])
def test_a_download_that_is_not_the_promised_one_leaves_nothing(
    site, make_dataset, tmp_path, promised, found, message, progress
):
    site.content = {"a.txt": b"alpha"} | found
    site.cut_off = {"b.txt"} if found.get("b.txt") == promised else set()
    dataset = make_dataset({"a.txt": b"alpha", "b.txt": promised})
    with pytest.raises(DataFileError, match=message):
        fetch_dataset(dataset, tmp_path / "data", progress=progress)
    assert files_in(tmp_path / "data") == {}


def test_interrupted_download_leaves_nothing(site, make_dataset, tmp_path, monkeypatch):
    def interrupted(self, url, output_file, pooch, check_only=False):
        with open(output_file, "wb") as file:  # noqa: PTH123
            file.write(b"al")
        raise KeyboardInterrupt

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch_dataset(make_dataset({"a.txt": b"alpha"}), tmp_path / "data", progress=False)
    assert files_in(tmp_path / "data") == {}


def test_no_server_and_no_folder_to_write_to_are_named(site, make_dataset, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    dataset = make_dataset({"a.txt": b"alpha"}, address=f"http://127.0.0.1:{port}/a.txt")
    with pytest.raises(DataFileError, match="no connection") as caught:
        fetch_dataset(dataset, tmp_path / "data", progress=False)
    assert "HTTPConnectionPool" not in str(caught.value)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataFileError, match="expected a folder to write to"):
        fetch_dataset(dataset, tmp_path / "file", progress=False)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (zipped({"toy-1/u.data": "1", "../evil": "evil"}), r"inside of the archive's folder, found .*evil"),
        (b"no archive", "expected a zip archive"),
        (zipped({"toy-1/other": "1"}), r"\['u.data'\] in the download"),
    ],
)
def test_archive_that_writes_elsewhere_or_lacks_files_is_refused(site, make_dataset, tmp_path, body, message):
    """Other names of places elsewhere: tests/fuzz/test_hostile_files.py."""
    site.content = {"toy.zip": body}
    with pytest.raises(DataFileError, match=message):
        fetch_dataset(make_dataset(site.content, ["u.data"], "toy-1"), tmp_path / "data", progress=False)
    assert files_in(tmp_path / "data") == {}
    assert not list(tmp_path.rglob("*evil*"))


def test_default_destination_is_the_named_data_root_and_unknown_names_are_told(tmp_path, monkeypatch):
    (tmp_path / "ml-100k").mkdir()
    for name in read_registry()["ml-100k"].provides:
        (tmp_path / "ml-100k" / name).touch()
    monkeypatch.setenv("AIR_RECSYS_DATA", str(tmp_path))
    assert fetch("ml-100k") == tmp_path / "ml-100k"
    with pytest.raises(ParameterError, match="'ml-100k'"):
        fetch("ml-100m")
    with pytest.raises(DataFileError, match="no address"):
        fetch("gowalla")


def test_registry_is_complete():
    registry, table = read_registry(), available()
    assert list(table.index) == list(registry)
    for dataset in registry.values():
        assert dataset.terms
        assert dataset.provides
        for file in dataset.files:
            assert file.url.startswith("http")
            assert len(file.sha256) == len(bytes.fromhex(file.sha256)) * 2 == 64
    assert sorted(table.index[~table["fetchable"]]) == ["gowalla", "yelp2018"]


@pytest.mark.data
def test_registered_checksums_are_those_of_the_benchmark_files(data_root):
    files = [(data_root / each.folder / file.path, file) for each in read_registry().values() for file in each.files]
    there = [(path, file) for path, file in files if path.is_file()]
    assert len(there) == 22
    for path, file in there:
        assert pooch.file_hash(str(path), alg="sha256") == file.sha256, path
