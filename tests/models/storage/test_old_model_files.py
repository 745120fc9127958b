"""Files of the previous format version: they load, answer as they did, and go on from there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from model_cases import ITEMS, MODELS, all_scores, assert_same_answers, frame
from safetensors.numpy import save_file
from sealing import parts_of

from air_recsys import AIR
from air_recsys.exceptions import ModelFileError, NotFittedError
from air_recsys.models import Recommender
from air_recsys.models.storage import files

POSTERIOR = ("solver", "n_sweeps", "pattern_features")  # came with version 2
LATER = (*POSTERIOR, "graph_every", "n_batches", "transforms", "tv_reg", "snapshot_epochs", "pattern_graphs")
AT_FIRST = (*LATER, "max_memory")  # what the first files of version 1 did not know yet
SEARCH = ("settings", "search_budget")  # came with version 3, and so did the values "auto" of the completion preset

# `GraphRanker` and posteriors came with version 2.
YOUNGER = ("AIR-completion", "AIR-variational", "AIR-langevin", "GraphRanker")
OF_VERSION_1 = [name for name in MODELS if name not in YOUNGER]
OF_THE_FIRST = ["AIR-dense", "AIR-sparse", "BiasModel", "GlobalMean"]


def as_version_1(model: Recommender, path: Path, absent: tuple[str, ...] = POSTERIOR) -> Path:
    """Write a model as version 1 did: fewer parameters, no spread; the first files named no graphs of transforms."""
    model.save(path)
    metadata, arrays = parts_of(path)
    del metadata["digest"], metadata["digests"]  # which came with version 3
    parameters, attributes = (json.loads(metadata[name]) for name in ("parameters", "attributes"))
    flat = parameters | parameters.get("solver", {})
    if flat.get("graph_refresh", 100) is None:
        flat["graph_refresh"] = 100
    kept = {name: value for name, value in flat.items() if name not in (*absent, *SEARCH, "solver", "name")}
    if absent is AT_FIRST:
        del attributes["transform_graphs"]
    metadata |= {"format_version": "1", "parameters": json.dumps(kept), "attributes": json.dumps(attributes)}
    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items() if not name.startswith("spread_")}
    save_file(plain, path, metadata)
    return path


def make(name: str, absent: tuple[str, ...]) -> Callable[[], Recommender]:
    """Return what makes a model of version 1, for the first files one whose later parameters are the defaults."""
    return MODELS[name] if absent is POSTERIOR or "AIR" not in name else lambda: MODELS[name](pattern_graphs=False)


CASES = [(name, POSTERIOR) for name in OF_VERSION_1] + [(name, AT_FIRST) for name in OF_THE_FIRST]


def test_the_generator_is_that_of_the_version_before():
    assert files.FORMAT_VERSION == 3  # a new version needs a generator of files of this one


@pytest.mark.parametrize(("name", "absent"), CASES, ids=[f"{name}-{len(absent)}" for name, absent in CASES])
def test_a_file_of_version_1_answers_as_it_did_and_can_be_fitted_and_saved_anew(name, absent, tmp_path):
    model = make(name, absent)().fit(frame())
    again = Recommender.load(as_version_1(model, tmp_path / "old.air", absent))
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    assert_same_answers(again, model)
    assert_same_answers(Recommender.load(again.save(tmp_path / "new.air")), model)
    assert_same_answers(again.fit(frame()), model)


@pytest.mark.parametrize("name", ["AIR-dense", "AIR-sparse", "AIR-ratings"])
def test_a_file_of_version_1_takes_new_ratings(name, tmp_path):
    model: Any = MODELS[name]().fit(frame())
    again = AIR.load(as_version_1(model, tmp_path / "old.air"))
    new = pd.DataFrame({"user": ["eve", "eve"], "item": ITEMS[:2], "rating": [5.0, 1.0]})
    np.testing.assert_array_equal(again.fold_in(new).factors, model.fold_in(new).factors)
    expected = model.partial_fit(new).predict("eve", ITEMS)
    np.testing.assert_array_equal(again.partial_fit(new).predict("eve", ITEMS), expected)
    with pytest.raises(NotFittedError, match="deviations and probabilities need a posterior"):
        again.predict("eve", ITEMS, return_std=True)


def test_a_file_of_version_1_that_lacks_a_part_is_no_whole_file(tmp_path):
    path = as_version_1(MODELS["AIR-sparse"]().fit(frame()), tmp_path / "old.air")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelFileError, match="is not a whole air_recsys model file"):
        AIR.load(path)
    assert np.isfinite(all_scores(AIR.load(as_version_1(MODELS["AIR-sparse"]().fit(frame()), path)))).all()
