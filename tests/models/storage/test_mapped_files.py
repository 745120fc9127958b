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

before = private()
model = Recommender.load(sys.argv[1], mapped=sys.argv[2] == "mapped")
print(private() - before)
"""


@pytest.fixture(scope="module", params=["ratings", "likes"])
def file(request, tmp_path_factory) -> Path:
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((40, 30)) < 0.4)
    frame = pd.DataFrame({"user": users, "item": items, "rating": rng.integers(1, 6, users.size)})
    ratings = AIR.for_ratings(n_factors=3, random_state=0, device="cpu")
    model = ratings if request.param == "ratings" else AIR.for_likes(settings={}, device="cpu")
    return model.fit(frame).save(tmp_path_factory.mktemp("mapped") / "model.air")


def test_a_mapped_model_answers_as_one_that_was_read(file):
    read, mapped = Recommender.load(file), Recommender.load(file, mapped=True)
    users = read.interactions_.user_ids
    pd.testing.assert_frame_equal(mapped.recommend(users, n=5), read.recommend(users, n=5))
    np.testing.assert_array_equal(mapped.predict(users, 3), read.predict(users, 3))
    pd.testing.assert_frame_equal(mapped.similar_items(3), read.similar_items(3))
    assert mapped.save(file.with_suffix(".again")).read_bytes() == file.read_bytes()


def test_learned_graphs_are_those_of_the_file(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(30, size=(300, 2)), columns=["user", "item"]).drop_duplicates()
    model = AIR.for_ratings(n_factors=3, random_state=0, device="cpu").fit(frame.assign(rating=frame["item"] % 5))
    file = model.save(tmp_path / "model.air")
    for mapped in (True, False):
        graph = Recommender.load(file, mapped=mapped)._fitted().graph("item")
        assert graph is not None
        assert model.item_adjacency_ is not None
        found: Any = graph._adjacency.data
        while isinstance(getattr(found, "base", None), np.ndarray):
            found = found.base
        assert isinstance(getattr(found, "base", None), mmap.mmap) == mapped
        np.testing.assert_array_equal(graph.to_scipy().data, model.item_adjacency_.data)


def test_what_is_written_to_an_array_stays_with_the_process(file):
    before = file.read_bytes()
    mapped = Recommender.load(file, mapped=True)
    mapped.item_factors_[:] = 7
    assert file.read_bytes() == before


def test_a_model_that_is_saved_anew_leaves_the_mapped_one(file):
    path = file.with_suffix(".copy")
    path.write_bytes(file.read_bytes())
    mapped = Recommender.load(path, mapped=True)
    before = mapped.item_factors_.copy()
    mapped.save(path)
    np.testing.assert_array_equal(mapped.item_factors_, before)


def test_a_damaged_file_is_refused(file, tmp_path):
    content = bytearray(file.read_bytes())
    content[-20] ^= 1
    (tmp_path / "damaged.air").write_bytes(content)
    with pytest.raises(ModelFileError, match="is damaged"):
        Recommender.load(tmp_path / "damaged.air", mapped=True)
    (tmp_path / "short.air").write_bytes(content[:-20])
    with pytest.raises(ModelFileError, match="expected tensors one behind the other"):
        Recommender.load(tmp_path / "short.air", mapped=True)


def test_arrays_without_entries_and_out_of_place(tmp_path):
    arrays = {"none": np.empty((0, 3)), "numbers": np.arange(5.0), "bytes": np.arange(3, dtype=np.uint8)}
    content = b"".join(map(bytes, tensor_chunks(arrays, {})))
    (tmp_path / "file").write_bytes(content)
    length = int.from_bytes(content[:8], "little")
    (tmp_path / "odd").write_bytes(
        (length + 1).to_bytes(8, "little") + content[8 : 8 + length] + b" " + content[8 + length :]
    )
    for name in ("file", "odd"):
        found = TensorFile.read(tmp_path / name, mapped=True).arrays
        assert {name: array.tolist() for name, array in found.items()} == {
            name: array.tolist() for name, array in arrays.items()
        }
        assert all(array.flags.aligned for array in found.values())


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs the memory maps of Linux")
def test_large_arrays_are_shared_with_the_file(tmp_path):
    pairs = np.random.default_rng(0).integers((300, 2000), size=(6000, 2))
    likes = pd.DataFrame(pairs, columns=["user", "item"]).drop_duplicates().assign(rating=1.0)
    model = AIR.for_likes(settings={"factor_weight": 0.0}, device="cpu").fit(likes)
    model.save(tmp_path / "large.air")
    weights = model._fitted().item_weights
    assert isinstance(weights, np.ndarray)

    def kibibytes(how: str) -> int:
        command = [sys.executable, "-c", PRIVATE, str(tmp_path / "large.air"), how]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    assert kibibytes("read") - kibibytes("mapped") > 0.8 * weights.nbytes / 1024
