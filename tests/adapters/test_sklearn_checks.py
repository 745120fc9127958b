"""scikit-learn's own checks of estimators, on `AIRImputer` in each of its forms."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from air_recsys.adapters.sklearn import AIRImputer

FORMS = [
    AIRImputer(n_epochs=20, device="cpu"),
    AIRImputer(n_epochs=20, device="cpu", sample_graph_reg=1.0, add_indicator=True),
    AIRImputer(n_epochs=20, device="cpu", n_factors=2, depth=3, keep_empty_features=True, feature_graph_reg=0.0),
]


@parametrize_with_checks(FORMS)
def test_estimator_check(estimator, check):
    check(estimator)
