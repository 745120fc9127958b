"""Models whose arrays are those of the file: the same answers, one copy of what is large, and no fault unseen."""

import mmap
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from air_recsys import AIR
from air_recsys.exceptions import ModelFileError
from air_recsys.models import Recommender
from air_recsys.storage.tensor_files import TensorFile, tensor_chunks

PRIVATE = """
import sys
from air_recsys import AIR
from air_recsys.models import Recommender

AIR()  # brings what loading needs

def private():
    with open("/proc/self/smaps_rollup") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_Dirty"))

begin = private()
mapped = Recommender.load(sys.argv[1], mapped=True)
between = private()
read = Recommender.load(sys.argv[1])
print(private() - between - (between - begin))
"""


@pytest.fixture(scope="module", params=["ratings", "likes"])
def file(request, tmp_path_factory) -> Path:
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((40, 30)) < 0.4)
    frame = pd.DataFrame({"user": users, "item": items, "rating": rng.integers(1, 6, users.size)})
    ratings = AIR.for_ratings(n_factors=3, n_sweeps=3, random_state=0, device="cpu")
    likes = AIR.for_likes(settings={}, device="cpu")
    model = ratings.fit(frame) if request.param == "ratings" else likes.fit(frame.drop(columns="rating"))
    return model.save(tmp_path_factory.mktemp("mapped") / "model.air")


def base_of(array: Any) -> Any:
    """What holds the memory of an array."""
    while isinstance(getattr(array, "base", None), np.ndarray):
        array = array.base
    return getattr(array, "base", None)


def test_a_mapped_model_answers_as_one_that_was_read(file):
    read, mapped = Recommender.load(file), Recommender.load(file, mapped=True)
    users = read.interactions_.user_ids
    pd.testing.assert_frame_equal(mapped.recommend(users, n=5), read.recommend(users, n=5))
    np.testing.assert_array_equal(mapped.predict(users, 3), read.predict(users, 3))
    pd.testing.assert_frame_equal(mapped.similar_items(3), read.similar_items(3))
    assert mapped.save(file.with_suffix(".again")).read_bytes() == file.read_bytes()
    for model, is_mapped in ((mapped, True), (read, False)):
        graph = model._fitted().graph("item")
        if graph is not None:  # a learned one
            assert isinstance(base_of(graph._adjacency.data), mmap.mmap) == is_mapped


def test_neither_a_written_array_nor_a_saved_file_changes_the_other(file):
    path, before = file.with_suffix(".copy"), file.read_bytes()
    path.write_bytes(before)
    mapped, other = (Recommender.load(path, mapped=True) for _ in range(2))
    expected = other.item_factors_.copy()
    mapped.item_factors_[:] = 7
    assert path.read_bytes() == before
    mapped.save(path)
    np.testing.assert_array_equal(other.item_factors_, expected)


def test_a_damaged_file_is_refused(file, tmp_path):
    content = bytearray(file.read_bytes())
    content[-20] ^= 1
    for wrong, message in ((content, "is damaged"), (content[:-20], "expected tensors one behind the other")):
        (tmp_path / "wrong.air").write_bytes(wrong)
        with pytest.raises(ModelFileError, match=message):
            Recommender.load(tmp_path / "wrong.air", mapped=True)


def test_arrays_without_entries_and_out_of_place(tmp_path):
    arrays = {"none": np.empty((0, 3)), "numbers": np.arange(5.0), "bytes": np.arange(3, dtype=np.uint8)}
    content = b"".join(map(bytes, tensor_chunks(arrays, {})))
    length = int.from_bytes(content[:8], "little")
    odd = (length + 1).to_bytes(8, "little") + content[8 : 8 + length] + b" " + content[8 + length :]
    for written in (content, odd):
        (tmp_path / "file").write_bytes(written)
        found = TensorFile.read(tmp_path / "file", mapped=True).arrays
        assert {name: array.tolist() for name, array in found.items()} == {
            name: array.tolist() for name, array in arrays.items()
        }
        assert all(array.flags.aligned for array in found.values())


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs the memory maps of Linux")
def test_large_arrays_are_shared_with_the_file(tmp_path):
    pairs = np.random.default_rng(0).integers((300, 2000), size=(6000, 2))
    likes = pd.DataFrame(pairs, columns=["user", "item"]).drop_duplicates().assign(rating=1.0)
    model = AIR.for_likes(settings={"factor_weight": 0.0}, device="cpu").fit(likes)
    weights = model._fitted().item_weights
    assert isinstance(weights, np.ndarray)
    command = [sys.executable, "-c", PRIVATE, str(model.save(tmp_path / "large.air"))]
    kibibytes = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert kibibytes > 0.8 * weights.nbytes / 1024
