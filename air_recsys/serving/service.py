"""What a model answers to requests, as plain values: `Service` knows no HTTP."""

from __future__ import annotations

import copy
import unicodedata
from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd

from air_recsys import __version__
from air_recsys.data.doubts import doubts_about_new
from air_recsys.data.ids import IdIndex, as_id_array, integer_of
from air_recsys.data.interactions import Interactions
from air_recsys.data.scales import told_of_new
from air_recsys.exceptions import DataError, ParameterError, UnknownIdError
from air_recsys.models import GraphRanker, Recommender
from air_recsys.models.deviations import PredictsDeviations
from air_recsys.models.explain import Labels, check_labels, label_of
from air_recsys.models.listing import ListsByTaking, RankedBy
from air_recsys.models.partial_fit import OLDER, are_older
from air_recsys.models.ranking.reranking import CHOICE, rerank
from air_recsys.models.trained import TrainedRecommender
from air_recsys.serving.changes import catch_up, learned, make
from air_recsys.serving.limits import MOST_EXPLAINED
from air_recsys.storage.journal import Journal

Row = dict[str, Any]
_GUEST = "guest"
Answer = TypeVar("Answer", bound=Callable[..., Any])


def _of_one_state(answer: Answer) -> Answer:
    """A method of `Service` that answers from the state that the model has when it is called."""

    @wraps(answer)
    def of_present_state(service: Service, *args: Any, **kwargs: Any) -> Any:
        return answer(service._at_present(), *args, **kwargs)

    return cast(Answer, of_present_state)


class Service:
    """The answers of a fitted model, for several threads at a time.

    An answer is that of the model at the time of the question, after `partial_fit` and `forget` that have ended.

    Parameters
    ----------
    model : Recommender
    titles : mapping or Series, optional
        Item id to title.
    journal : Journal, optional
        Where the changes of the model are, those by other processes too.
    groups : optional
        Of items, as of `air_recsys.rerank`.

    Examples
    --------
    >>> from air_recsys import AIR
    >>> frame = pd.DataFrame({"user": ["ann", "ann", "bob"], "item": ["x", "y", "x"], "rating": [5, 1, 4]})
    >>> service = Service(AIR.for_ratings(random_state=0, device="cpu").fit(frame), {"y": "The Yard"})
    >>> [row["title"] for row in service.recommend("bob", 1)["items"]]
    ['The Yard']
    >>> service.fold_in({"x": 4.5}, [], 1)["items"][0]["item"]
    'y'
    """

    def __init__(
        self, model: Recommender, titles: Labels | None = None, journal: Journal | None = None, groups: Any = None
    ) -> None:
        model.check_fitted()
        self._model, self._data, self._guest = model, model.interactions_, None
        self._titles = check_labels(titles, self._data.item_ids)
        self._journal, self._is_live, self._groups = journal, True, groups
        self._present: Service | None = None

    def _at_present(self) -> Service:
        """The service of the model as it is now, which stays as it is."""
        if not self._is_live:
            return self
        if self._journal is not None:
            catch_up(self._model, self._journal)
        present = self._present
        if present is None or present._model._fitted() is not self._model._fitted():
            present, model = copy.copy(self), copy.copy(self._model)
            present._model, present._data, present._is_live, present._present = model, model.interactions_, False, None
            present._guest = _stranger(present._data.users)
            self._present = present
        return present

    @property
    def _learned_from(self) -> str:
        return "likes" if self.learned_from_likes else "ratings"

    @cached_property
    def _searched(self) -> tuple[list[Any], list[str], list[str], list[int]]:
        """What searches read: ids, their texts, titles, and places in order of popularity."""
        ids = self._data.item_ids.tolist()
        titles = [_plain(self._title(id) or str(id)) for id in ids]
        counts = np.bincount(self._data.item_index, minlength=self._data.n_items)
        return ids, [_plain(str(id)) for id in ids], titles, np.argsort(-counts, kind="stable").tolist()

    @property
    def learned_from_likes(self) -> bool:
        """Whether the model knows who took what, and no ratings."""
        return isinstance(self._model, GraphRanker)

    @cached_property
    def takes_new_users(self) -> bool:
        """Whether the model folds users in and explains its scores."""
        if not isinstance(self._model, TrainedRecommender):
            return self.learned_from_likes
        try:
            self._model.row_solver()
        except ParameterError:  # rows are tied to each other
            return False
        return True

    @property
    def knows_deviations(self) -> bool:
        """Whether scores come with standard deviations."""
        return isinstance(self._model, PredictsDeviations) and self._model.knows_deviations_

    def about(self) -> Row:
        """Return what is served, without waiting for what other processes have changed."""
        data = self._model.interactions_
        return {
            "status": "ok",
            "version": __version__,
            "model": type(self._model).__name__,
            "learned_from": self._learned_from,
            "n_users": data.n_users,
            "n_items": data.n_items,
            "rating_scale": self._model.rating_scale_,
            "deviations": self.knows_deviations,
            "new_users": self.takes_new_users,
        }

    @_of_one_state
    def prepare(self) -> None:
        """Compute what requests share, which the first of them would wait for."""
        user, item = self._data.user_ids.tolist()[0], self._data.item_ids.tolist()[0]
        self.recommend(user, 1)
        self.similar("user", user, 1)
        self.similar("item", item, 1)
        if self.takes_new_users:
            self.fold_in({}, [item], 1, reasons=1)

    @_of_one_state
    def recommend(
        self,
        user: Any,
        n: int = 10,
        *,
        include_seen: bool = False,
        items: Sequence[Any] | None = None,
        exclude: Sequence[Any] | None = None,
        rank_by: RankedBy = "auto",
        again: Row | None = None,
    ) -> Row:
        """Return the best n items of a known user.

        Parameters
        ----------
        user : int or str
            An id of the model; digits are one of integers, too.
        n : int
        include_seen : bool
            Also items that the user has rated.
        items, exclude : sequence of ids, optional
            Only these items; not these.
        rank_by : str
            As in `AIR.recommend`.
        again : dict, optional
            What `air_recsys.rerank` is to do with the list: its arguments beside list, model, n and groups.

        Raises
        ------
        UnknownIdError
        """
        known = self._user(user)
        chosen = self._choice(include_seen, items, exclude, rank_by)
        return {"user": known, "items": self._listed(self._model, known, n, chosen, again)}

    @_of_one_state
    def fold_in(
        self,
        ratings: dict[Any, float],
        likes: Sequence[Any],
        n: int = 10,
        *,
        include_seen: bool = False,
        items: Sequence[Any] | None = None,
        exclude: Sequence[Any] | None = None,
        rank_by: RankedBy = "auto",
        again: Row | None = None,
        reasons: int = 0,
    ) -> Row:
        """Return the best n items of a new user with these ratings or likes; the model stays as it is.

        Parameters
        ----------
        ratings : dict
            Item id to rating, on the scale of the model.
        likes : sequence of ids
            Each counts as the best rating.
        n, include_seen, items, exclude, rank_by, again
            As in `recommend`.
        reasons : int
            How many of the items given, those with the largest contributions, come with each one listed; n is at most
            50 then.

        Raises
        ------
        DataError, UnknownIdError
        """
        if reasons and n > MOST_EXPLAINED:
            raise DataError(f"expected n of at most {MOST_EXPLAINED} with reasons, found {n}")
        new = self._new_user(self._taken(ratings, likes))
        chosen = self._choice(include_seen, items, exclude, rank_by)
        assert isinstance(self._model, TrainedRecommender | GraphRanker)
        alone = self._model.fold_in(new)
        listed = self._listed(alone, self._guest, n, chosen, again)
        return {"user": None, "items": self._with_reasons(listed, alone, reasons)}

    @_of_one_state
    def similar(self, side: str, id: Any, n: int = 10) -> Row:
        """Return the n users or items most alike to one."""
        if side == "user":
            known = self._user(id)
            frame = self._model.similar_users(known, n)
        else:
            known = self._known(self._data.items, [id])[0]
            frame = self._model.similar_items(known, n)
        ids, weights = frame[side].tolist(), frame["weight"].tolist()
        alike = [
            {"id": other, "title": self._title(other) if side == "item" else None, "weight": weight}
            for other, weight in zip(ids, weights, strict=True)
        ]
        return {"side": side, "id": known, "alike": alike}

    @_of_one_state
    def explain(self, user: Any, item: Any, n: int = 10) -> Row:
        """Return the parts of a score."""
        self._check_kind("explain their scores")
        known, other = self._user(user), self._known(self._data.items, [item])[0]
        model: Any = self._model
        return model.explain(known, other, n, labels=self._titles).to_dict()

    @_of_one_state
    def predict(self, user: Any, items: Sequence[Any]) -> Row:
        """Return scores of a user, with standard deviations where these are known."""
        known, ids = self._user(user), self._known(self._data.items, items)
        table = self._model.predict_table([known] * len(ids), ids)
        deviations = table["deviation"].tolist() if "deviation" in table else [None] * len(ids)
        rows = [
            {"item": id, "title": self._title(id), "score": score, "deviation": deviation}
            for id, score, deviation in zip(ids, table["score"].tolist(), deviations, strict=True)
        ]
        return {"user": known, "predictions": rows}

    @_of_one_state
    def search(self, text: str, n: int = 10) -> list[Row]:
        """Return items by their id, then by the begin of their title or another part; the most rated ones first."""
        wanted, (ids, texts, names, popular) = _plain(text.strip()), self._searched
        exact, first, others = [], [], []
        for place in popular:
            if texts[place] == wanted:
                exact.append(place)
            elif names[place].startswith(wanted):
                first.append(place)
            elif wanted in names[place]:
                others.append(place)
        places = [*exact, *first, *others][:n]
        return [{"item": ids[place], "title": self._title(ids[place])} for place in places]

    def add(self, kind: str, pairs: Sequence[Row]) -> Row:
        """Let the model take in "ratings" or "likes": user, item, rating, and timestamp and weight where known."""
        now = self._at_present()
        now._check_kind("take ratings or likes in")
        if kind != now._learned_from:
            raise DataError(f"expected {now._learned_from}, as this model was trained on those, found {kind}")
        given: dict[str, Any] = {name: [pair.get(name) for pair in pairs] for name in sorted(set().union(*pairs))}
        given = {name: values for name, values in given.items() if values.count(None) < len(values)}
        if "weight" in given:
            given["weight"] = [1.0 if weight is None else weight for weight in given["weight"]]
        if "timestamp" in given and now._data.timestamps is None:
            raise DataError("expected no timestamps, as this model was trained without, found some")
        if (kinds := now._data.kinds) is not None:
            given["target"] = kinds.target
            given["kind"] = [each or kinds.target for each in given.get("kind", [None] * len(pairs))]
        elif "kind" in given:
            raise DataError("expected likes without a kind, as this model was trained on one kind, found some")
        told = told_of_new(np.array(given["rating"]), now._data.ratings) if kind == "ratings" else ""
        notes = [told] if told else []
        try:
            for index in (now._data.users, now._data.items):
                for is_slip, doubt in doubts_about_new(index, as_id_array(given[index.kind])):
                    if is_slip:
                        raise DataError(doubt)
                    notes.append(doubt)
            make(self._model, self._journal, {"learn": given})
        except UnknownIdError as error:
            raise DataError(str(error)) from None
        if n_older := np.count_nonzero(are_older(self._model.interactions_, learned(given))):
            notes.append(OLDER.format(n_older))
        return self.about() | {"notes": notes}

    def forget(self, user: Any, items: Sequence[Any] | None = None) -> Row:
        """Let the model forget a user; with items only what it knows of the user and these."""
        now = self._at_present()
        known = now._known(now._data.users, [user])[0]
        pairs = None if items is None else [[known, item] for item in now._known(now._data.items, items)]
        make(self._model, self._journal, {"forget": {"users": [known]} if pairs is None else {"pairs": pairs}})
        return self.about()

    # ---------------------------------------------------------------- internals

    def _listed(self, model: Recommender, user: Any, n: int, chosen: Row, again: Row | None) -> list[Row]:
        if not again:
            return self._best(model, user, n, chosen)
        rows = self._best(model, user, max(n, CHOICE), chosen)
        listed = pd.DataFrame({"user": user, "item": [row["item"] for row in rows], "place": range(len(rows))})
        kept = rerank(listed, self._model, n, groups=self._groups, **again)["place"].tolist()
        return [rows[place] | {"rank": rank} for rank, place in enumerate(kept, start=1)]

    def _best(self, model: Recommender, user: Any, n: int, chosen: Row) -> list[Row]:
        if not isinstance(model, PredictsDeviations):
            frame = model.recommend([user], n, **chosen)
            return self._ranked(frame["item"].tolist(), frame["score"].tolist(), None)
        best = model.best_items(user, n, **chosen)
        deviations = None if best.deviations is None else best.deviations.tolist()
        rows = self._ranked(best.items.tolist(), best.scores.tolist(), deviations)
        liking = [] if best.liking is None else best.liking.tolist()
        return [row | {"liking": each} for row, each in zip(rows, liking, strict=True)] if liking else rows

    def _ranked(self, ids: list[Any], scores: list[float], deviations: list[float] | None) -> list[Row]:
        """Return the rows of a list, best first, with None for deviations that are not known."""
        found = zip(ids, scores, deviations or [None] * len(ids), strict=True)
        return [
            {"item": id, "title": self._title(id), "score": score, "deviation": deviation, "rank": rank}
            for rank, (id, score, deviation) in enumerate(found, start=1)
        ]

    def _with_reasons(self, rows: list[Row], lists: Any, reasons: int) -> list[Row]:
        for row in rows if reasons else []:
            row["reasons"] = self._reasons(lists.explain(self._guest, row["item"], reasons).items)
        return rows

    def _reasons(self, table: pd.DataFrame) -> list[Row]:
        pairs = zip(table["item"].tolist(), table["contribution"].tolist(), strict=True)
        return [{"item": id, "title": self._title(id), "contribution": part} for id, part in pairs]

    def _new_user(self, taken: dict[Any, float]) -> Interactions:
        """Return ratings of a stranger, given at the end of the training where the model knows of time."""
        timed = isinstance(self._model, TrainedRecommender) and self._model.drift_ is not None
        size, times = len(taken), self._data.timestamps if timed else None
        found = Interactions(
            np.zeros(size, np.int32),
            np.arange(size),
            list(taken.values()),
            [self._guest],
            list(taken),
            timestamps=None if times is None else np.full(size, times.max()),
            allow_negative=True,
        )
        found.kinds = self._data.kinds and self._data.kinds._replace(beside={})
        return found

    def _taken(self, ratings: dict[Any, float], likes: Sequence[Any]) -> dict[Any, float]:
        """Return the ratings of a new user by known ids; a like is the best rating."""
        self._check_kind("fold users in")
        if ratings and self.learned_from_likes:
            raise DataError("expected likes, as this model was trained on likes, found ratings")
        if not ratings and not likes:
            raise DataError("expected at least one rating or like, found none")
        best = 1.0 if self.learned_from_likes else self._model.rating_scale_[1]
        ids = self._known(self._data.items, [*ratings, *likes])
        taken = dict(zip(ids, [*ratings.values(), *[best] * len(likes)], strict=True))
        if len(taken) < len(ids):
            raise DataError(f"expected each item once, found {len(ids) - len(taken)} item(s) again")
        return taken

    def _check_kind(self, what: str) -> None:
        if not isinstance(self._model, TrainedRecommender | GraphRanker):
            kind = type(self._model).__name__
            raise DataError(f"only AIR, DMF and GraphRanker {what}, found a model of class {kind}")

    def _choice(
        self, include_seen: bool, items: Sequence[Any] | None, exclude: Sequence[Any] | None, rank_by: RankedBy
    ) -> Row:
        named = {"items": items, "exclude": exclude}
        known = {name: ids if ids is None else self._known(self._data.items, ids) for name, ids in named.items()}
        of_ratings = {"rank_by": rank_by} if isinstance(self._model, ListsByTaking) else {}
        return {"exclude_seen": not include_seen} | known | of_ratings

    def _user(self, id: Any) -> Any:
        return self._known(self._data.users, [id], "POST /fold-in takes the ratings of a new user")[0]

    def _known(self, index: IdIndex, ids: Sequence[Any], hint: str = "") -> list[Any]:
        """Return ids in the kind of the model's: integers where all its ids are."""
        found: list[Any] = [str(id) for id in ids]
        if index.ids.dtype != object:
            found = [integer_of(text) for text in found]
            foreign = [id for id, number in zip(ids, found, strict=True) if number is None]
            if foreign:
                shown = ", ".join(repr(str(id)[:40]) for id in foreign[:5])
                raise DataError(f"the {index.kind} ids of this model are integers, found {shown}")
        places = index.lookup(found)
        if (places < 0).any():
            raise UnknownIdError(index.kind, [id for id, place in zip(found, places, strict=True) if place < 0], hint)
        return found

    def _title(self, id: Any) -> str | None:
        return label_of(self._titles, id)


def _stranger(users: IdIndex) -> Any:
    """Return an id that no user has."""
    if users.ids.dtype != object:
        return min(int(users.ids.min()), 0) - 1
    name = _GUEST
    while users.lookup([name])[0] >= 0:
        name += "'"
    return name


def _plain(text: str) -> str:
    """Return a text as searches compare it: without regard to case, and to the form of Unicode."""
    return unicodedata.normalize("NFC", text).casefold()
