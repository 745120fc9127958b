"""Does filling gaps with AIR help my classifier?

Hides entries of scikit-learn's breast cancer table, fills them with four imputers inside a pipeline, and prints for
each how far the filled values are from the hidden ones and how well a classifier does after it:

    python examples/imputer_pipeline.py
"""

import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from air_recsys.adapters.sklearn import AIRImputer

IMPUTERS: dict[str, Any] = {
    "SimpleImputer (mean)": SimpleImputer(),
    "KNNImputer": KNNImputer(),
    "IterativeImputer": IterativeImputer(),
    "AIRImputer": AIRImputer(random_state=0, device="cpu"),
}


def hide(table: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the table with NaN at hidden entries, and a mask of those entries."""
    hidden = np.random.default_rng(seed).random(table.shape) < share
    return np.where(hidden, np.nan, table), hidden


def error(imputer: Any, table: np.ndarray, gappy: np.ndarray, hidden: np.ndarray) -> float:
    """Return the RMSE of the hidden entries."""
    return float(np.sqrt(np.mean((imputer.fit_transform(gappy) - table)[hidden] ** 2)))


def compare(table: np.ndarray, labels: np.ndarray, share: float, seed: int = 0, cv: int = 3) -> pd.DataFrame:
    """Return one row an imputer: error in standard deviations, accuracy of the classifier, and seconds for both."""
    table = StandardScaler().fit_transform(table)  # KNNImputer needs features of one unit, AIRImputer does not
    gappy, hidden = hide(table, share, seed)
    rows = []
    for name, imputer in IMPUTERS.items():
        start = time.perf_counter()
        rmse = error(imputer, table, gappy, hidden)
        pipeline = make_pipeline(imputer, LogisticRegression(C=0.1, max_iter=1000))
        accuracy = cross_val_score(pipeline, gappy, labels, cv=cv).mean()
        rows.append({"imputer": name, "hidden": share, "rmse": rmse, "accuracy": accuracy})
        rows[-1]["seconds"] = time.perf_counter() - start
    return pd.DataFrame(rows)


def main() -> pd.DataFrame:
    data: Any = load_breast_cancer()
    table, labels = data.data[:200], data.target[:200]  # a part, for a short run
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of IterativeImputer
        results = pd.concat([compare(table, labels, share) for share in (0.2, 0.5)], ignore_index=True)
    print(results.round({"rmse": 3, "accuracy": 3, "seconds": 1}).to_string(index=False))

    gappy, _ = hide(table, 0.2, seed=0)
    named = pd.DataFrame(gappy, columns=data.feature_names)
    imputer = AIRImputer(random_state=0, device="cpu").fit(named)
    print("\nFeatures like 'mean radius', by the graph that AIR has learned:")
    assert imputer.feature_graph_ is not None
    print(imputer.feature_graph_.neighbors("mean radius", 4).round(2).to_string(index=False))
    return results


if __name__ == "__main__":
    main()
