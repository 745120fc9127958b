"""Servers in processes of their own and clients that know nothing of them: paths, load, stops, addresses."""

import itertools
import json
import os
import re
import signal
import socket
import struct
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
import serving_cases
from cli_cases import assert_refused, cli
from serving_cases import (
    HOSTILE,
    N_ITEMS,
    N_USERS,
    Running,
    below,
    running,
    wait_for_the_end_of,
    write_files,
)

from air_recsys.exceptions import ParameterError
from air_recsys.models import Recommender
from air_recsys.serving.server import Address, hosts_of, listen

N_REQUESTS, N_CLIENTS = 500, 8
GROWTH = 7  # MiB; a leak of 16 KiB a request would be 8
PROC = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the process tables of Linux")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def server(files):
    with running(files / "ratings.air", "--port", 0, "--titles", files / "titles.csv") as started:
        yield started


@pytest.fixture(scope="module")
def client(server):
    with httpx.Client(base_url=server.address, timeout=30) as asking:
        yield asking


def of(answer):
    assert answer.status_code == 200, answer.text
    return answer.json()


def connected(server):
    """A connection to a server, and its host."""
    host, port = server.address.removeprefix("http://").rstrip("/").replace("0.0.0.0", "127.0.0.1").split(":")
    return socket.create_connection((host, int(port)), timeout=60), host


def test_every_path_answers_as_the_model_does(client, files):
    health = of(client.get("health"))
    assert (health["status"], health["learned_from"], health["deviations"]) == ("ok", "ratings", True)
    assert (health["n_users"], health["n_items"]) == (N_USERS, N_ITEMS)
    model = Recommender.load(files / "ratings.air")
    expected = model.recommend("u3", 4, exclude=["i7"])
    listed = of(client.get("recommend", params={"user": "u3", "n": 4, "exclude": "i7"}))["items"]
    assert [row["item"] for row in listed] == expected["item"].tolist()
    assert [row["score"] for row in listed] == expected["score"].tolist()
    predicted = of(client.get("predict", params={"user": "u3", "item": ["i1", "i2"]}))["predictions"]
    assert [row["score"] for row in predicted] == model.predict("u3", ["i1", "i2"]).tolist()
    assert predicted[0]["title"] == HOSTILE[0]
    alike = of(client.get("similar", params={"item": "i2", "n": 3}))["alike"]
    assert [row["id"] for row in alike] == model.similar_items("i2", 3)["item"].tolist()
    alike = of(client.get("similar", params={"user": "u2", "n": 3}))["alike"]
    assert [row["id"] for row in alike] == model.similar_users("u2", 3)["user"].tolist()
    explained = of(client.get("explain", params={"user": "u3", "item": "i1", "n": 5}))
    assert sum(explained["parts"].values()) == pytest.approx(explained["score"], abs=1e-3)
    folded = of(client.post("fold-in", json={"likes": ["i0", "i2"], "n": 3, "reasons": 2}))["items"]
    assert [len(row["reasons"]) for row in folded] == [2, 2, 2]
    assert of(client.get("items", params={"query": "film 07"})) == [{"item": "i7", "title": "Film 07"}]


def test_only_the_page_and_its_files_are_there_under_its_own_name(client):
    page = client.get("")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert page.headers["content-type"].startswith("text/html")
    for name in re.findall(r'(?:src|href)="([^"]+)"', page.text):
        if not name.startswith("data:"):
            assert client.get(name).status_code == 200
    assert client.get("page.py").status_code == 404
    assert client.get("../serving/app.py").status_code == 404
    assert client.post("health").status_code == 405
    answer = client.get("health", headers={"Host": "evil.example"})
    assert (answer.status_code, answer.headers["connection"]) == (400, "close")


def test_a_long_body_and_what_is_not_http_are_refused_and_others_go_on(server, client):
    talking, host = connected(server)
    with talking:
        talking.sendall(f"POST /fold-in HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9000000000\r\n\r\n".encode())
        assert talking.recv(100).startswith(b"HTTP/1.1 413")  # before it is sent
    for garbage in (os.urandom(1000), b"GET / HTTP/1.1\r\n" + b"a" * 100_000, b"\r\n" * 1000):
        with connected(server)[0] as talking:
            talking.sendall(garbage)
    assert client.get("health").status_code == 200


def test_clients_that_leave_are_no_news(server, client):
    """The log stays empty, which `server` sees."""
    body = json.dumps({"likes": ["i1", "i2"], "n": 20, "reasons": 3}).encode()
    head = b"POST /fold-in HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    whole = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{"
    reset = struct.pack("ii", 1, 0)
    for sent, how in itertools.product((head, whole[:-9], whole, whole * 20, chunked), (None, reset)):
        with connected(server)[0] as talking:
            if how:
                talking.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, how)
            talking.sendall(sent)
    assert client.get("health").status_code == 200


@PROC
def test_connections_may_be_as_many_as_the_system_allows(server):
    limits = Path(f"/proc/{server.process.pid}/limits").read_text(encoding="utf-8")
    soft, hard = re.findall(r"Max open files\s+(\S+)\s+(\S+)", limits)[0]
    assert soft == hard


@PROC
def test_a_lack_of_files_is_told_in_one_line(files, monkeypatch):
    monkeypatch.setattr(
        serving_cases, "COMMAND", ["bash", "-c", 'ulimit -n 64; exec "$@"', "-", *serving_cases.COMMAND]
    )
    started = Running(files / "ratings.air", "--port", 0)
    taken = [connected(started)[0] for _ in range(100)]
    time.sleep(1.5)
    for each in taken:
        each.close()
    assert httpx.get(f"{started.address}health", timeout=30).status_code == 200
    assert started.end()[2] == "no file is left for new connections, which wait (see ulimit -n)\n"


def requests():
    """Requests of every kind, good and bad, each with the status that it has to have."""
    for number in itertools.count():
        user, item = f"u{number % N_USERS}", f"i{number % N_ITEMS}"
        likes = [f"i{(number * 7 + step) % N_ITEMS}" for step in range(1 + number % 9)]
        yield "GET", f"recommend?user={user}&n={1 + number % 20}", None, 200
        yield "POST", "fold-in", {"likes": likes, "n": 5, "reasons": number % 3}, 200
        yield "GET", f"similar?item={item}&n=5", None, 200
        yield "GET", f"explain?user={user}&item={item}&n=3", None, 200
        yield "GET", f"predict?user={user}&item={item}", None, 200
        yield "GET", f"items?query={number % 40}", None, 200
        yield "POST", "fold-in", {"likes": ["nothing"]}, 404
        yield "GET", f"recommend?user={user}&n=0", None, 422
        yield "GET", "health", None, 200


def resident(process: subprocess.Popen) -> float:
    """The memory of a process in MiB."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024


@PROC
def test_many_mixed_requests_of_several_clients(server):
    """No error, the same answers as one after another, and memory that stays."""
    every = list(itertools.islice(requests(), N_REQUESTS))

    def ask(some):
        with httpx.Client(base_url=server.address, timeout=60) as client:
            answers = [client.request(method, path, json=body) for method, path, body, _ in some]
        return [(answer.status_code, answer.json()) for answer in answers]

    expected = ask(every[:100])
    before = resident(server.process)
    parts = [every[first::N_CLIENTS] for first in range(N_CLIENTS)]
    with ThreadPoolExecutor(N_CLIENTS) as clients:
        found = list(clients.map(ask, parts))
    for part, answers in zip(parts, found, strict=True):
        assert [status for status, _ in answers] == [request[3] for request in part]
    answered = {first + N_CLIENTS * row: each for first, some in enumerate(found) for row, each in enumerate(some)}
    assert [answered[number] for number in range(100)] == expected
    assert resident(server.process) - before < GROWTH


@PROC
def test_processes_answer_alike_and_end_with_the_one_that_started_them_or_together(files, tmp_path, monkeypatch):
    """What a killed one has left, the next start clears."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    model = files / "again.air"
    model.write_bytes((files / "ratings.air").read_bytes())
    expected = Recommender.load(model).recommend("u3", 5)["item"].tolist()
    server = Running(model, "--port", 0, "--workers", 2, "--titles", files / "titles.csv")
    model.write_bytes(b"")  # harms none: the processes have a copy of their own
    for _ in range(20):
        with httpx.Client(base_url=server.address, timeout=120) as client:
            listed = of(client.get("recommend", params={"user": "u3", "n": 5}))["items"]
        assert [row["item"] for row in listed] == expected
    workers = below(server.process.pid)
    assert len(workers) == 4
    server.process.kill()
    server.process.communicate(timeout=60)
    wait_for_the_end_of(workers)
    left = {path.name for path in tmp_path.glob("air-recsys-serve-*")}
    others = {path.name for path in tmp_path.iterdir()} - left  # of Python, which ended without a word
    again = Running(files / "likes.air", "--port", 0, "--workers", 2)
    try:
        with httpx.Client(base_url=again.address, timeout=120) as client:
            assert of(client.get("health"))["learned_from"] == "likes"
        present = {path.name for path in tmp_path.glob("air-recsys-serve-*")}
        workers = below(again.process.pid)
    finally:
        ended = again.end()
    assert ended[:2] == (0, "stopped\n"), ended
    assert (len(left), len(present), left & present) == (1, 1, set())
    assert {path.name for path in tmp_path.iterdir()} == others
    wait_for_the_end_of(workers)


@pytest.mark.parametrize(
    ("number", "options", "told"),
    [
        (signal.SIGINT, [], ""),
        (signal.SIGTERM, ["--host", "0.0.0.0", "--public"], "warning: whoever reaches http://0.0.0.0:"),
    ],
)
def test_a_request_that_is_there_is_answered_before_the_stop(files, number, options, told):
    server = Running(files / "ratings.air", "--port", 0, *options)
    talking, host = connected(server)
    host = "films.example" if "--public" in options else host
    body = b'{"likes": ["i1"], "n": 3}'
    with talking:
        head = f"POST /fold-in HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        talking.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:5])
        time.sleep(1)  # in which a busy machine reads the head
        server.process.send_signal(number)
        time.sleep(0.3)
        talking.sendall(body[5:])
        answer = b"".join(iter(lambda: talking.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 200")
    assert server.process.wait(60) == 0
    out, err = server.process.communicate()
    assert out == "stopped\n"
    assert err.startswith(told)
    assert err.count("\n") == bool(told)


def wait_until_refused(place: tuple[str, int]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            socket.create_connection(place, timeout=60).close()
        except ConnectionError:
            return
    raise AssertionError(f"{place} still answers")


def test_a_second_signal_ends_the_service_without_a_traceback(files):
    server = Running(files / "ratings.air", "--port", "0")
    place = ("127.0.0.1", httpx.URL(server.address).port or 80)
    with socket.create_connection(place, timeout=60) as client:
        client.sendall(b"POST /fold-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n")
        client.sendall(b"Expect: 100-continue\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 100")  # a request is there, whose body never comes
        server.process.send_signal(signal.SIGINT)
        wait_until_refused(place)  # it has heard the first one
        status, out, err = server.end(signal.SIGINT)
    assert (status, out.replace("stopped\n", ""), err) == (0, "", "")


def test_what_cannot_be_served_is_said_in_a_line(files, tmp_path):
    (tmp_path / "broken.air").write_bytes(b"no model")
    (tmp_path / "titles.csv").write_text("id,title\nx,y\n", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        for words, message in (
            ((tmp_path / "none.air", "--port", 0), "found no file"),
            ((tmp_path / "broken.air", "--port", 0), "broken.air is not a whole"),
            (
                (files / "ratings.air", "--port", 0, "--titles", tmp_path / "titles.csv"),
                "expected titles of the model",
            ),
            ((tmp_path / "none.air", "--port", 0, "--workers", 2), "cannot copy"),
            ((tmp_path / "none.air", "--port", port), f"expected a free port, found 127.0.0.1:{port} in use; port 0"),
            (
                (tmp_path / "none.air", "--port", 0, "--host", "0.0.0.0"),
                "0.0.0.0:0 can be reached from other machines",
            ),
        ):
            assert_refused(cli("serve", *words), message)
        assert "expected a host" not in cli("serve", tmp_path / "none.air", "--port", 0, "--host", "[::1]").err


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "no such host", "10.255.255.1"])
def test_addresses_that_are_not_of_this_machine_alone(host):
    with pytest.raises(ParameterError, match=r"can be reached from other machines|expected a host of this machine"):
        listen(Address(host, 0))


def test_addresses_of_this_machine_and_of_another():
    with pytest.raises(ParameterError, match=r"cannot listen at 192\.0\.2\.1:0"):
        listen(Address("192.0.2.1", 0, public=True))
    assert hosts_of(Address("127.0.0.2")) == {"localhost", "127.0.0.1", "[::1]", "127.0.0.2"}
    assert hosts_of(Address("::1")) == {"localhost", "127.0.0.1", "[::1]"}
    assert hosts_of(Address("::", public=True)) is None
