"""The main job on embedded data: complete ratings, and find the hidden groups of users and items."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from air_recsys.data.sets.syn_netflix import make_syn_netflix
from air_recsys.evaluation.completion import complete, hide, recovery
from air_recsys.evaluation.results import ResultTable
from air_recsys.models import AIR, DMF, BiasModel, GlobalMean
from air_recsys.storage.threads import torch_threads
from air_recsys.storage.validation import import_extra

DMF_SETTINGS: dict[str, Any] = {
    "schedule": "cooldown",
    "learning_rate": 1e-3,
    "init_mean": 1e-3,
    "init_std": 1e-3,
    "n_epochs": 16_000,
}
"""Settings of DMF in place of AIR's: its regularization is a small start. The paper's recipe has 20,000 epochs."""


class Demo(NamedTuple):
    """The fitted model, the comparison, and how well the groups were found."""

    model: AIR
    comparison: ResultTable
    groups: ResultTable


def run_demo(seed: int = 0, missing: float = 0.7, device: str = "auto", verbose: bool = True) -> Demo:
    """Train AIR and its baselines on generated Syn-Netflix data of which a part is hidden."""
    import_extra("networkx", "viz")  # before anything is trained
    data = make_syn_netflix(random_state=seed)
    hidden = hide(data.matrix, missing, seed)
    # The preset would search its settings first; the job is the same without.
    model = AIR.for_completion(settings="fixed", random_state=seed, device=device, verbose=verbose)
    protocol = (
        f"generated data: {data.matrix.shape[0]} users x {data.matrix.shape[1]} items, {missing:.0%} of the ratings "
        f"hidden, seed {seed}"
    )
    comparison = ResultTable("Error on the hidden ratings (NMAE: share of the rating range)", protocol)
    for name, contender in (
        ("AIR", model),
        ("DMF", DMF.like(model).set_params(**DMF_SETTINGS)),
        ("BiasModel", BiasModel()),
        ("Mean", GlobalMean()),
    ):
        with torch_threads(1):  # of matrices this small more save little, and lose much where the machine is busy
            comparison.rows.append({"model": name} | complete(contender, hidden))
    groups = ResultTable("Hidden groups, found by communities of the learned graphs", protocol)
    measures = recovery(model, data.user_groups, data.item_groups)
    for kind, truth, graph in (
        ("user", data.user_groups, model.user_graph_),
        ("item", data.item_groups, model.item_graph_),
    ):
        assert graph is not None
        groups.rows.append(
            {
                "graph": f"{kind}s",
                "true groups": int(np.unique(truth).size),
                "communities": int(graph.communities().nunique()),
                "NMI": measures[f"{kind}_nmi"],
                "AUC": measures[f"{kind}_auc"],
            }
        )
    return Demo(model, comparison, groups)
