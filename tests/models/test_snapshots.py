"""What can be seen of a training on its way: the graphs at chosen epochs, and the factors in callbacks."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from model_cases import CPU, ITEMS, USERS, by_paper, dense, fails, fitted, frame, trained_models

from air_recsys import AIR
from air_recsys.exceptions import NotFittedError, ParameterError
from air_recsys.models.learned import Factors
from air_recsys.testing import assert_same_answers

N_EPOCHS = 40
KINDS: dict[str, dict[str, Any]] = {
    "dense": {},
    "sparse": {"graph_neighbors": 3, "graph_refresh": 10},
    "factor width": {"n_factors": 3, "graph_neighbors": 3, "graph_refresh": 15, "biases": True, "center": True},
    "transforms": {"transforms": [("blocks:3", 1e-3), ("columns", 1e-3, 2)]},
    "one side": {"user_graph_reg": 0.0},
}
SHORT = {"init_std": 0.1, "learning_rate": 0.01, "schedule": "constant", "evaluate_every": 5, **CPU}
short = partial(by_paper, n_epochs=N_EPOCHS, **SHORT)


def matrices(graphs):
    """The graphs of a snapshot or of a model as arrays; None where there is none."""
    user_graph, item_graph, others = graphs
    return [None if graph is None else graph.to_scipy().toarray() for graph in (user_graph, item_graph, *others)]


def final(model):
    own = [None if each is None else each.toarray() for each in (model.user_adjacency_, model.item_adjacency_)]
    return [*own, *(graph.to_scipy().toarray() for graph in model.transform_graphs_)]


def assert_equal(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


# -------------------------------------------------------------------- snapshots


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_snapshots_change_nothing_and_are_where_a_training_that_ends_there_is(options):
    plain, watched = short(**options).fit(frame()), short(snapshot_epochs=range(N_EPOCHS + 1), **options).fit(frame())
    assert plain.snapshots_ == {}
    assert sorted(watched.snapshots_) == list(range(N_EPOCHS + 1))
    assert_same_answers(watched, plain)
    assert_equal(final(watched), final(plain))
    columns = plain.history_.columns.drop("seconds")
    np.testing.assert_array_equal(watched.history_[columns], plain.history_[columns])
    shots = {epoch: matrices(watched.snapshots_[epoch]) for epoch in (0, 17, N_EPOCHS)}
    assert_equal(shots[N_EPOCHS], final(plain))
    for one, other in ((0, 17), (17, N_EPOCHS), (0, N_EPOCHS)):
        for before, after in zip(shots[one], shots[other], strict=True):
            assert (before is None) is (after is None)
            if before is not None and after is not None:
                assert not np.array_equal(before, after)
    # At an epoch where no sparse graph chooses its edges anew.
    assert_equal(shots[17], final(short(**options).set_params(solver__n_epochs=17).fit(frame())))
    cut = short(snapshot_epochs=[0, 10, 11, N_EPOCHS], **options)
    cut.fit(frame(), callbacks=[lambda record: record.epoch == 10])
    assert cut.stopped_by_ == "callback"
    assert sorted(cut.snapshots_) == [0, 10]
    assert_equal(matrices(cut.snapshots_[10]), final(cut))


def test_snapshots_carry_the_ids_and_graphs_that_are_left_out_have_none():
    shot = short(snapshot_epochs=[3], transforms=[("blocks:3", 1e-3)]).fit(frame()).snapshots_[3]
    assert shot.user_graph is not None
    assert shot.item_graph is not None
    assert shot.user_graph.ids.tolist() == USERS
    assert shot.item_graph.ids.tolist() == ITEMS
    assert [len(graph) for graph in shot.transform_graphs] == [12]
    assert list(shot.user_graph.neighbors(USERS[0], 2).columns) == ["user", "weight"]
    model = short(user_graph_reg=0.0, item_graph_reg=0.0, snapshot_epochs=[0, 5]).fit(frame())
    assert all(shot == (None, None, []) for shot in model.snapshots_.values())


@pytest.mark.parametrize("epochs", [(4, 0, 4), np.array([4, 0]), range(0, 5, 4), [np.int64(4), 0]], ids=repr)
def test_epochs_come_in_any_order_and_form_and_can_be_saved(epochs, tmp_path):
    again = AIR.load(short(snapshot_epochs=epochs).fit(frame()).save(tmp_path / "model.air"))
    assert tuple(again.snapshot_epochs) == tuple(epochs)
    assert sorted(again.snapshots_) == [0, 4]
    assert sorted(again.fit(frame()).snapshots_) == [0, 4]


@pytest.mark.parametrize(
    ("epochs", "message"),
    [
        ([0, 41], "snapshot_epochs must be at most the last epoch or sweep, 40, found 41"),
        ([-1], "an entry of snapshot_epochs must be an integer >= 0, found -1"),
        ([2.5], "an entry of snapshot_epochs must be an integer >= 0, found 2.5"),
        ("10", "snapshot_epochs must be a list of epochs, found '10'"),
        ([True], "an entry of snapshot_epochs must be an integer >= 0, found True"),
        (5, "snapshot_epochs"),
        (None, "snapshot_epochs"),
    ],
)
def test_an_epoch_out_of_range_is_named_before_any_work(epochs, message):
    model = short(snapshot_epochs=epochs)
    with fails(ParameterError, message):
        model.fit(dense())
    assert not hasattr(model, "interactions_")


def test_a_validation_part_goes_back_but_snapshots_stay():
    model = short(
        validation_fraction=0.3, patience=2, learning_rate=0.1, n_epochs=400, snapshot_epochs=range(0, 401, 5)
    )
    model.fit(frame())
    assert model.stopped_by_ == "patience"
    last = model.history_["epoch"].iloc[-1]
    assert model.n_iter_ < last < 400
    assert sorted(model.snapshots_) == list(range(0, last + 1, 5))
    assert_equal(matrices(model.snapshots_[model.n_iter_]), final(model))


def test_a_second_fit_has_its_own_snapshots_unless_it_fails():
    model = short(snapshot_epochs=[0, 7]).fit(frame())

    def fail(record):
        raise KeyboardInterrupt

    model.set_params(snapshot_epochs=[3])
    with pytest.raises(KeyboardInterrupt):
        model.fit(frame(1), callbacks=[fail])
    assert sorted(model.snapshots_) == [0, 7]
    assert sorted(model.fit(frame()).snapshots_) == [3]


# -------------------------------------------------------------------- factors in callbacks


@trained_models
def test_current_factors_are_those_of_the_record_and_do_not_move_with_the_training(make):
    model, epochs, kept, copies = make(), [], [], []

    def keep(record):
        epochs.append(record.epoch)
        kept.append(model.current_factors())
        copies.append(Factors._make(np.copy(part) for part in kept[-1]))
        for part in model.current_factors()[:4]:
            part[:] = 0  # reaches neither the training nor what was kept

    for _ in range(2):
        with pytest.raises(NotFittedError, match="current_factors is for callbacks while fit runs"):
            model.current_factors()
        model.fit(frame(), callbacks=[keep])
    assert epochs[-1] == model.n_iter_
    own = model.user_factors_, model.item_factors_, model.user_biases_, model.item_biases_, model.global_mean_
    assert_equal(copies[-1], own)
    assert_same_answers(model, fitted(make))  # looking changes nothing
    assert not np.array_equal(copies[0].item_factors, copies[-1].item_factors)
    for one, other in zip(kept, copies, strict=True):
        assert_equal(one, other)
