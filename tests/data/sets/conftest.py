"""Small files of the published layouts, with invented content, and a web server of one's own."""

import json
import threading
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

GENRES = ["unknown", *(f"Genre {letter}" for letter in "ABCDEFGHIJKLMNOPQR")]
RATINGS_100K = [(1, 1, 5, 874000001), (1, 2, 3, 874000002), (2, 1, 4, 874000003), (3, 3, 1, 874000004)]


def tab_lines(rows):
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


@pytest.fixture
def ml100k(tmp_path):
    """A data root with an ml-100k folder: 3 users, 3 items, 4 ratings."""
    folder = tmp_path / "root" / "ml-100k"
    folder.mkdir(parents=True)
    (folder / "u.data").write_text(tab_lines(RATINGS_100K))
    (folder / "u1.base").write_text(tab_lines(RATINGS_100K[:2]))
    (folder / "u1.test").write_text(tab_lines(RATINGS_100K[2:]))
    titles = ["Äpfel (1990)", "Plums (1991)", "unknown"]
    flags = [[0] * 19 for _ in titles]
    flags[0][1] = flags[0][3] = flags[2][0] = 1
    items = [f"{k + 1}|{title}|||{'|'.join(map(str, flags[k]))}\n" for k, title in enumerate(titles)]
    items = [line.replace("|||", "|01-Jan-1990||http://x|", 1) for line in items]
    (folder / "u.item").write_text("".join(items), encoding="iso-8859-1")
    (folder / "u.genre").write_text("".join(f"{name}|{k}\n" for k, name in enumerate(GENRES)) + "\n")
    return folder.parent


@pytest.fixture
def ml1m(tmp_path):
    """A data root with an ml-1m folder in the original layout, with a gap in the item ids."""
    folder = tmp_path / "root1m" / "ml-1m"
    folder.mkdir(parents=True)
    (folder / "ratings.dat").write_text("1::10::5::978300001\n1::30::3::978300002\n2::10::4::978300003\n")
    movies = "10::Äpfel: Part Two (1990)::Comedy|Children's\n20::Unrated (1991)::Drama\n30::Plums (1991)::Drama\n"
    (folder / "movies.dat").write_text(movies, encoding="iso-8859-1")
    return folder.parent


def named_matrix(rows, columns, values):
    lines = ["\t".join(["", *columns])]
    lines += ["\t".join([row, *map(str, line)]) for row, line in zip(rows, values, strict=True)]
    return "\n".join(lines) + "\n"


@pytest.fixture
def yamanishi(tmp_path):
    """A data root with the sets nr (3 targets x 2 drugs) and e (the same, with a rounded target similarity)."""
    folder = tmp_path / "rooty" / "dti" / "yamanishi"
    folder.mkdir(parents=True)
    targets, drugs = ["hsa1", "hsa2", "hsa3"], ["D01", "D02"]
    for name in ("nr", "e"):
        (folder / f"{name}_admat_dgc.txt").write_text(named_matrix(targets, drugs, [[1, 0], [0, 0], [1, 1]]))
        (folder / f"{name}_simmat_dc.txt").write_text(named_matrix(drugs, drugs, [[0.9, 0.2], [0.4, 1]]))
    # Another order of the names than in the interaction file.
    shuffled = ["hsa3", "hsa1", "hsa2"]
    similarity = [[1, 0.31, 0.32], [0.31, 1, 0.12], [0.32, 0.12, 1]]
    (folder / "nr_simmat_dg.txt").write_text(named_matrix(shuffled, shuffled, similarity))
    (folder / "e_simmat_dg_sparse_1dp.txt").write_text("hsa1\thsa3\t0.3\nhsa3\thsa1\t0.3\n")
    return folder.parent.parent


@pytest.fixture
def davis(tmp_path):
    """A data root with a davis folder: 2 drugs x 3 targets."""
    folder = tmp_path / "rootd" / "dti" / "davis"
    (folder / "folds").mkdir(parents=True)
    (folder / "ligands_can.txt").write_text(json.dumps({"111": "CC", "222": "CO"}))
    (folder / "proteins.txt").write_text(json.dumps({"AAK1": "MKK", "ABL1": "MLE", "ACK": "MQP"}))
    kd = "drug-target_interaction_affinities_Kd__Davis_et_al.2011v1.txt"
    (folder / kd).write_text("1 10000 10\n100 0.1 1000\n")
    (folder / "drug-drug_similarities_2D.txt").write_text("1 0.5\n0.5 1\n")
    (folder / "target-target_similarities_WS.txt").write_text("100 20 10\n20 400 30\n10 30 900\n")
    (folder / "folds" / "train_fold_setting1.txt").write_text("[[0, 3], [1]]")
    (folder / "folds" / "test_fold_setting1.txt").write_text("[5, 2]")
    return folder.parent.parent


class Site:
    """What the server holds: content by path, how often each was asked for, and which ones break off."""

    def __init__(self):
        self.content = {}
        self.requests = Counter()
        self.cut_off = set()
        self.url = ""


@contextmanager
def serving():
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

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def site(monkeypatch):
    """A web server on this machine whose content the test sets."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as running:
        yield running
