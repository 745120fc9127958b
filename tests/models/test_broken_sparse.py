"""Sparse matrices whose arrays do not fit each other: a `DataError` before compiled code runs, at every door."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from covering import covering
from model_cases import CPU

pytest.importorskip("implicit")

from air_recsys import AIR, Interactions, SimilarityGraph
from air_recsys.adapters.implicit import ImplicitAIR, leave_k_out_split
from air_recsys.dti import DrugTargetAIR
from air_recsys.exceptions import DataError
from air_recsys.graphs.cooccurrence import cooccurrence_neighbors
from air_recsys.metrics import ranking_report
from air_recsys.models import BiasModel, GraphRanker
from air_recsys.models.ranking.top_items import top_items
from air_recsys.storage.reading import checked_sparse

N = 12


def square() -> np.ndarray:
    """A symmetric 0/1 matrix; every row has four entries."""
    return np.kron(np.eye(3), np.ones((4, 4)))


FAULTS: dict[str, Callable[[Any], Any]] = {
    "beyond": lambda matrix: matrix.indices.__setitem__(5, N + 1),
    "negative": lambda matrix: matrix.indices.__setitem__(5, -1),
    "starts too large": lambda matrix: matrix.indptr.__setitem__(-1, 10**6),
    "starts that fall": lambda matrix: matrix.indptr.__setitem__(3, 40),
    "too few starts": lambda matrix: setattr(matrix, "indptr", matrix.indptr[:-3]),
    "too few values": lambda matrix: setattr(matrix, "data", matrix.data[:-3]),
}
FAULTS_OF_PAIRS: dict[str, Callable[[Any], Any]] = {
    "pairs beyond": lambda matrix: matrix.row.__setitem__(3, 10**6),
    "negative pairs": lambda matrix: matrix.col.__setitem__(3, -5),
}


def broken(fault: str, kind: Any = sp.csr_array) -> Any:
    matrix = kind(square())
    (FAULTS | FAULTS_OF_PAIRS)[fault](matrix)
    return matrix


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    implicit = ImplicitAIR(factors=2, iterations=2, steps_per_iteration=2, **CPU)
    implicit.fit(sp.csr_matrix(square()), show_progress=False)
    return {
        "variational": AIR.for_ratings(n_factors=2, n_sweeps=3, **CPU).fit(square() + 1),
        "adam": AIR.for_ratings(n_factors=2, solver="adam", n_epochs=3, **CPU).fit(square() + 1),
        "ranker": GraphRanker(settings={}, n_factors=2).fit(sp.csr_array(square())),
        "implicit": implicit,
    }


def ask_ranking(matrix: Any, *, seen: bool) -> Any:
    scores, whole = np.ones((N, N)), sp.csr_array(square())
    return ranking_report(lambda users: scores[users], whole if seen else matrix, seen=matrix if seen else None, k=2)


DOORS: dict[str, Callable[[dict[str, Any], Any], Any]] = {
    "Interactions.from_csr": lambda _, matrix: Interactions.from_csr(matrix),
    "fit": lambda _, matrix: BiasModel().fit(matrix),
    "AIR.fit": lambda _, matrix: AIR.for_ratings(**CPU).fit(matrix),
    "partial_fit": lambda models, matrix: models["variational"].partial_fit(matrix),
    "fold_in": lambda models, matrix: models["variational"].fold_in(matrix),
    "fold_in by adam": lambda models, matrix: models["adam"].fold_in(matrix),
    "fold_in of items": lambda models, matrix: models["adam"].fold_in(matrix, side="item"),
    "row_solver": lambda models, matrix: models["variational"].row_solver().solve(matrix),
    "row_solver by adam": lambda models, matrix: models["adam"].row_solver().solve(matrix),
    "GraphRanker.fold_in": lambda models, matrix: models["ranker"].fold_in(matrix),
    "relevant": lambda _, matrix: ask_ranking(matrix, seen=False),
    "seen": lambda _, matrix: ask_ranking(matrix, seen=True),
    "top_items": lambda _, matrix: top_items(np.ones((N, 1)), np.ones((N, 1)), np.ones(N), 2, seen=matrix),
    "SimilarityGraph": lambda _, matrix: SimilarityGraph(matrix, range(N)),
    "similarity_to": lambda _, matrix: SimilarityGraph(square(), range(N)).similarity_to(matrix),
    "cooccurrence": lambda _, matrix: cooccurrence_neighbors(matrix, 2),
    "DrugTargetAIR": lambda _, matrix: DrugTargetAIR().fit(matrix),
    "drug_similarity": lambda _, matrix: DrugTargetAIR().fit(square(), drug_similarity=matrix),
    "ImplicitAIR.fit": lambda _, matrix: ImplicitAIR(factors=2, **CPU).fit(matrix, show_progress=False),
    "ImplicitAIR.recommend": lambda models, matrix: models["implicit"].recommend(np.arange(N), matrix, 2),
    "recalculate_user": lambda models, matrix: models["implicit"].recalculate_user(np.arange(N), matrix),
    "partial_fit_users": lambda models, matrix: models["implicit"].partial_fit_users(np.arange(N), matrix),
    "partial_fit_items": lambda models, matrix: models["implicit"].partial_fit_items(np.arange(N), matrix),
    "ImplicitAIR.explain": lambda models, matrix: models["implicit"].explain(0, matrix, 0),
    "leave_k_out_split": lambda _, matrix: leave_k_out_split(matrix),
}


@pytest.mark.parametrize(("name", "fault"), covering(DOORS, FAULTS))
def test_every_door_checks(models: dict[str, Any], name: str, fault: str):
    with pytest.raises(DataError):
        DOORS[name](models, broken(fault))


def test_every_fault_is_found():
    compressed = [(fault, kind) for fault in FAULTS for kind in (sp.csr_array, sp.csc_array, sp.csr_matrix)]
    for fault, kind in [*compressed, *((fault, sp.coo_array) for fault in FAULTS_OF_PAIRS)]:
        with pytest.raises(DataError):
            Interactions.from_csr(broken(fault, kind))


WORKS = [
    "model.fold_in(sp.csr_array(([5.0, 3.0], [3, 151], [0, 2]), shape=(1, 150)))",
    "model.fold_in(sp.csr_array(([5.0, 3.0], [3, -1], [0, 2]), shape=(1, 150)))",
    "model.fold_in(sp.csr_array(([5.0, 3.0], [3, 10**6], [0, 2]), shape=(1, 150)))",
    "model.partial_fit(sp.csr_array(([5.0, 3.0], [3, 10**6], [0, 2]), shape=(1, 150)))",
    "m = sp.csr_array(np.ones((3, 150))); m.indptr[-1] = 10**7; model.fit(m)",
]
ALL_WORKS = """
import sys
import numpy as np, scipy.sparse as sp
from air_recsys import AIR
from air_recsys.exceptions import DataError
ratings = np.random.default_rng(0).integers(1, 6, (20, 150)).astype(float)
options = dict(n_factors=2, random_state=0, device="cpu")
for solver, steps in (("variational", {"n_sweeps": 2}), ("adam", {"n_epochs": 2})):
    for work in sys.argv[1:]:
        model = AIR.for_ratings(solver=solver, **steps, **options).fit(ratings)
        try:
            exec(work)
            print("done", flush=True)
        except DataError as error:
            print("refused:", error, flush=True)
"""


def test_the_interpreter_lives_on():
    """A double free, an abort and a segmentation fault before; so in a process of its own."""
    command = [sys.executable, "-c", ALL_WORKS, *WORKS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for work, answer in zip(2 * WORKS, done.stdout.splitlines(), strict=True):
        assert answer.startswith("refused: expected ratings as a sparse matrix"), work


# -------------------------------------------------------------------- what is whole passes


def test_whole_matrices_of_every_format_pass():
    for form, kind, dtype in (
        ("csr", sp.csr_array, np.float64),
        ("csc", sp.csr_matrix, np.float32),
        ("coo", sp.csr_array, np.int8),
        ("bsr", sp.csr_matrix, bool),
        ("lil", sp.csr_array, np.float32),
        ("dok", sp.csr_matrix, np.int8),
        ("dia", sp.csr_array, np.float64),
    ):
        checked = checked_sparse("ratings", kind(square().astype(dtype)).asformat(form))
        assert (checked.toarray() == square()).all()
        assert checked.format == (form if form in ("csr", "csc", "coo") else "coo")
        assert checked.nnz == np.count_nonzero(square())  # BSR fills its blocks with zeros


def test_duplicates_unsorted_places_stored_zeros_and_spare_room_stay():
    matrix = sp.csr_array((np.array([1.0, 2.0, 0.0, 9.0]), np.array([2, 2, 0, 7]), np.array([0, 3])), shape=(1, 3))
    checked = checked_sparse("ratings", matrix)
    assert (checked.data.tolist(), checked.indices.tolist()) == ([1.0, 2.0, 0.0], [2, 2, 0])
    with pytest.raises(DataError, match="expected one rating per pair, found 1 duplicate"):
        Interactions.from_csr(matrix)


def test_what_is_no_matrix_of_numbers_in_its_edges_is_refused():
    for other in (square(), 5, None, "text", [[1]]):
        with pytest.raises(DataError, match="expected ratings as a 2-D SciPy sparse matrix"):
            checked_sparse("ratings", other)
    blocks = sp.bsr_array(square(), blocksize=(2, 2))
    blocks.indices[0] = N
    for matrix in (blocks, sp.csr_array(square() * 1j)):
        with pytest.raises(DataError, match="expected ratings as a sparse matrix"):
            checked_sparse("ratings", matrix)


@pytest.mark.parametrize("solver", ["variational", "adam"])
def test_a_pair_of_new_rows_is_rated_once_as_in_fit(models: dict[str, Any], solver: str):
    values, rows, columns = np.array([1.0, 2.0]), np.array([0, 0]), np.array([2, 2])
    compressed = sp.csr_array((values, columns, np.array([0, 2])), shape=(1, N))
    for twice in (compressed, sp.coo_array((values, (rows, columns)), shape=(1, N))):
        with pytest.raises(DataError, match="expected one rating per pair, found 1 duplicate"):
            models[solver].fold_in(twice)
