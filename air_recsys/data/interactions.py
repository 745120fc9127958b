"""`Interactions`: ratings of users for items with the caller's own ids, from and to the usual containers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, get_args

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.columns import (
    FEW_COLUMNS,
    as_float,
    as_index,
    as_ratings,
    as_relations,
    as_timestamps,
    as_weights,
    check_axes,
    check_not_long,
    checked_kinds,
    has_limits,
    hint_at_columns,
    ids_or_range,
    narrowed,
    split_signs,
    tell_columns,
    usual_column,
    wide_frame,
)
from air_recsys.data.doubts import Read, doubts_about_ids, doubts_about_ratings, doubts_about_times
from air_recsys.data.features import Encoding, Features, as_table
from air_recsys.data.frames import as_pandas
from air_recsys.data.ids import IdIndex, encode_ids
from air_recsys.data.interactions_card import interactions_card
from air_recsys.data.repeated import Duplicates, RepeatedPairs, Rule, repeated_values
from air_recsys.data.scales import Scale, as_scale, check_no_code, check_stated, outside_of
from air_recsys.exceptions import DataError, DataWarning, quoted
from air_recsys.storage.reading import checked_sparse
from air_recsys.storage.validation import check_choice
from air_recsys.storage.writers import writer

if TYPE_CHECKING:
    from surprise import Dataset, Trainset


_UNKNOWN: Mapping[str, float] = {}


class Extent(Protocol):
    """The sizes of ratings, wherever these are."""

    @property
    def n_users(self) -> int:
        """Number of users, those without ratings included."""
        ...

    @property
    def n_items(self) -> int:
        """Number of items, those without ratings included."""
        ...

    @property
    def n_ratings(self) -> int:
        """Number of ratings."""
        ...

    @property
    def n_rated(self) -> tuple[int, int]:
        """Numbers of users and of items that have a rating."""
        ...

    @property
    def has_weights(self) -> bool:
        """Whether ratings have weights."""
        ...

    @property
    def n_features(self) -> tuple[int, int]:
        """Numbers of features of users and of items, dimensions of their places in given graphs included."""
        ...

    @property
    def has_places(self) -> tuple[bool, bool]:
        """Whether users and items have places in given graphs."""
        ...


class Kinds(NamedTuple):
    """Events of other kinds beside those that lists are for, as views beside purchases."""

    target: str
    """The kind of the interactions themselves."""
    beside: Mapping[str, Interactions]
    """By their kind the others, over the same users and items."""
    worths: Mapping[str, float] = _UNKNOWN
    """How much an event of a kind counts where one of the target counts 1, as far as that is known."""

    def each(self, change: Callable[[Interactions], Interactions]) -> Kinds:
        """Return the same kinds, each changed."""
        return self._replace(beside={name: change(part) for name, part in self.beside.items()})


class Interactions:
    """Ratings of users for items: index pairs, values, and the ids behind the indices.

    The rules, applied by every constructor:

    * A repeated pair is an error unless `duplicates` says which value counts (its weight likewise).
    * NaN and infinite ratings are errors (in a dense array NaN means "not rated"). Negative ratings are errors here,
      unless `allow_negative` or `rating_scale` has some. The constructors from tables and matrices take them, with a
      warning, where several values are negative or the only one is the largest with the other sign: a single one, as
      -1 beside 1..10, is mostly a code for "missing".
    * Ratings outside of `rating_scale` are errors. Where none is stated, 99, 999, ... are errors in a caller's table
      or matrix if they are further from all other ratings than these are from each other.
    * Users and items without ratings are kept where the container has them (matrix rows and columns); a table of
      ratings does not. A stored zero in a sparse matrix is a rating of zero.
    * Ids are sorted where they can be compared, so the order of the ratings does not matter to a model.

    A rating takes 12 bytes: 32-bit positions, up to 2**31 users and items, and a value of 32 bits where all ratings
    are such numbers, as whole and half stars are. Other ratings are held in 64 bits, and `ratings` is always float64.

    Parameters
    ----------
    user_index, item_index : array_like of int, shape (n_ratings,)
        Positions in `user_ids` and `item_ids`.
    ratings : array_like of float, shape (n_ratings,)
    user_ids, item_ids : iterable of hashable, or IdIndex
        Distinct ids.
    timestamps : array_like of float, shape (n_ratings,), optional
        Time of each rating, in any unit that grows with time.
    weights : array_like of float, shape (n_ratings,), optional
        How much each rating counts in training, >= 0: the confidence of implicit feedback; 1 where not given.
    relations : array_like of str or int, shape (n_ratings,), optional
        What each rating is of the true value: "=" or "~" (0), ">" or ">=" (1) where that is only known to be larger,
        as of an assay whose range ends there, "<" or "<=" (-1) where smaller. Models that cannot use them refuse them.
    duplicates : {"error", "first", "last", "mean", "sum"}
        The value of a repeated pair. With "mean" and "sum" its time is the latest. None where all pairs are known to
        be distinct, which saves a sort.
    allow_negative : bool, optional
        Accept negative ratings; None accepts them with a warning where they are part of the scale, see the rules.
    rating_scale : tuple of float, optional
        Lowest and highest possible rating: models clip to it and refuse new ratings outside of it. By default the
        range of the data.
    empty : bool
        Accept that there is no rating, as of new rows that have features alone.
    copy : bool
        False keeps arrays that already have the right type, such as int32 and float32, without a copy; the caller must
        not change them.

    Attributes
    ----------
    user_features, item_features : Features or None
        Features of users and items, see `with_features`.
    kinds : Kinds or None
        Events of other kinds, see `air_recsys.data.likes`. They are no ratings, and follow these into parts: those of
        a pair that is left out are left out, too.

    Raises
    ------
    DataError
        If a rule is broken; the message names the first such row.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"user": ["ann", "bob"], "item": ["x", "y"], "rating": [5, 3]})
    >>> data = Interactions.from_frame(frame)
    >>> data
    Interactions(n_users=2, n_items=2, n_ratings=2, density=50.00 %, ratings 3..5)
    >>> data.to_csr().toarray()
    array([[5., 0.],
           [0., 3.]])
    """

    def __init__(
        self,
        user_index: Any,
        item_index: Any,
        ratings: Any,
        user_ids: Iterable[Hashable] | IdIndex,
        item_ids: Iterable[Hashable] | IdIndex,
        *,
        timestamps: Any = None,
        weights: Any = None,
        relations: Any = None,
        duplicates: Duplicates | None = "error",
        allow_negative: bool | None = False,
        rating_scale: Scale | None = None,
        empty: bool = False,
        copy: bool = True,
    ) -> None:
        check_choice("duplicates", duplicates, (*get_args(Duplicates), None))
        self.users = user_ids if isinstance(user_ids, IdIndex) else IdIndex(user_ids, "user")
        self.items = item_ids if isinstance(item_ids, IdIndex) else IdIndex(item_ids, "item")
        self.user_index = as_index(user_index, len(self.users), "user", copy=copy)
        self.item_index = as_index(item_index, len(self.items), "item", copy=copy)
        self.rating_scale = None if rating_scale is None else as_scale(rating_scale)
        if self.rating_scale is not None:
            allow_negative = allow_negative or self.rating_scale[0] < 0
        self._ratings = as_ratings(ratings, self.user_index.size, allow_negative, copy=copy)
        if self.rating_scale is not None:
            check_stated(self._ratings, self.rating_scale)
        self.timestamps = None if timestamps is None else as_timestamps(timestamps, self.n_ratings, copy=copy)
        self.weights = None if weights is None else as_weights(weights, self.n_ratings)
        self.relations = None if relations is None else as_relations(relations, self.n_ratings)
        if self.item_index.size != self.user_index.size:
            sizes = f"{self.user_index.size} users and {self.item_index.size} items"
            raise DataError(f"expected a user and an item for each rating, found {sizes}")
        self.user_features: Features | None = None
        self.item_features: Features | None = None
        self.kinds: Kinds | None = None
        if not empty and self.n_ratings == 0:
            raise DataError("expected at least one rating, found none")
        if duplicates is not None:
            self._resolve_duplicates(duplicates)

    # ---------------------------------------------------------------- from other containers

    @classmethod
    def from_frame(
        cls,
        df: Any,
        user: str = "user",
        item: str = "item",
        rating: str | None = "rating",
        *,
        timestamp: str | None = None,
        weight: str | None = None,
        relation: str | None = None,
        kind: str | None = None,
        target: Hashable = None,
        duplicates: Duplicates = "error",
        allow_negative: bool | None = None,
        rating_scale: Scale | None = None,
    ) -> Interactions:
        """Read a table of pandas, Polars, PyArrow, ... with one rating per row; ``rating=None`` means 1 in every row.

        Upper and lower case in names of columns do not matter, unless two columns differ only in them. A rating may be
        a text with a relation in front, ``"< 5"``, where no column has these. With a column
        `kind`, and ``rating=None``, each row is an event: those of the kind `target` are the interactions, the others
        stand beside them as `kinds`, and `duplicates` is for the events of a pair of one kind.

        Examples
        --------
        >>> events = pd.DataFrame({"user": [1, 1, 2], "item": [7, 7, 8], "kind": ["view", "buy", "view"]})
        >>> data = Interactions.from_frame(events, rating=None, kind="kind", target="buy")
        >>> data.n_ratings, {name: each.n_ratings for name, each in data.kinds.beside.items()}
        (1, {'view': 2})
        """
        names = {"user": user, "item": item, "rating": rating, "timestamp": timestamp, "weight": weight, "kind": kind}
        names["relation"] = relation
        df = as_pandas(df)
        if not isinstance(df, pd.DataFrame):
            raise DataError(f"expected a table with one rating per row, found {type(df).__name__}")
        named = _columns_of(df, {role: name for role, name in names.items() if name is not None})
        if df.empty:
            raise DataError("expected at least one rating, found an empty table")
        users, user_ids = encode_ids(named["user"], "user")
        items, item_ids = encode_ids(named["item"], "item")
        ratings = np.ones(len(df)) if rating is None else named["rating"].to_numpy()
        relations = None if relation is None else named["relation"].to_numpy()
        if relation is None and has_limits(ratings):
            ratings, relations = split_signs(ratings)
        _tell_flags([pd.Series(ratings).infer_objects().dtype])
        kinds = None if kind is None else checked_kinds(named["kind"], target, has_ratings=rating is not None)
        read = cls(
            users,
            items,
            ratings,
            user_ids,
            item_ids,
            timestamps=None if timestamp is None else named["timestamp"].to_numpy(),
            weights=None if weight is None else named["weight"].to_numpy(),
            relations=relations,
            duplicates=duplicates if kinds is None else None,
            allow_negative=allow_negative,
            rating_scale=rating_scale,
        ).checked(named["user"].name, named["item"].name)
        return read if kinds is None else read.divided(kinds, str(target), duplicates)

    @classmethod
    def from_csr(
        cls,
        matrix: Any,
        user_ids: Iterable[Hashable] | None = None,
        item_ids: Iterable[Hashable] | None = None,
        *,
        duplicates: Duplicates = "error",
        allow_negative: bool | None = None,
        rating_scale: Scale | None = None,
        missing: float | None = None,
    ) -> Interactions:
        """Read any SciPy sparse matrix or array (users x items); stored entries other than `missing` are the ratings.

        Ids default to the row and column numbers. No dense copy is made. A matrix whose arrays do not fit each other
        is a `DataError`.
        """
        coo = checked_sparse("ratings", matrix).tocoo()
        n_users, n_items = coo.shape
        given = slice(None) if missing is None else coo.data != missing
        return cls(
            coo.row[given],
            coo.col[given],
            coo.data[given],
            ids_or_range(user_ids, n_users, "user"),
            ids_or_range(item_ids, n_items, "item"),
            duplicates=duplicates,
            allow_negative=allow_negative,
            rating_scale=rating_scale,
        ).checked(is_sparse=True)

    @classmethod
    def from_dense(
        cls,
        matrix: Any,
        user_ids: Iterable[Hashable] | None = None,
        item_ids: Iterable[Hashable] | None = None,
        *,
        allow_negative: bool | None = None,
        rating_scale: Scale | None = None,
        missing: float | None = None,
    ) -> Interactions:
        """Read a 2-D array (users x items) in which NaN, and the number `missing`, mean "not rated".

        The index and the columns of a wide DataFrame are the ids, unless ids are given.

        Examples
        --------
        >>> Interactions.from_dense([[5, float("nan")], [2, 1]]).n_ratings
        3
        >>> Interactions.from_dense(pd.DataFrame({"x": [5, None], "y": [2, 1]}, ["ann", "bob"])).item_ids.tolist()
        ['x', 'y']
        """
        matrix = as_pandas(matrix)
        if isinstance(matrix, pd.DataFrame):
            user_ids = matrix.index if user_ids is None else user_ids
            item_ids = matrix.columns if item_ids is None else item_ids
            check_axes(matrix)
            _tell_flags(matrix.dtypes.tolist() if missing is None else [])
            matrix = _with_nan(matrix)
        elif missing is None:
            _tell_flags([getattr(matrix, "dtype", None)])
        array = as_float(matrix)
        if array.ndim != 2:
            raise DataError(f"expected a 2-D array (users x items), found {array.ndim} dimension(s)")
        if missing is not None:
            array[array == missing] = np.nan
        users, items = np.nonzero(~np.isnan(array))
        return cls(
            users,
            items,
            array[users, items],
            ids_or_range(user_ids, array.shape[0], "user"),
            ids_or_range(item_ids, array.shape[1], "item"),
            allow_negative=allow_negative,
            rating_scale=rating_scale,
        ).checked()

    @classmethod
    def from_surprise(
        cls, data: Trainset | Dataset | Sequence[tuple[Any, ...]], *, duplicates: Duplicates = "mean"
    ) -> Interactions:
        """Read a Surprise trainset, all ratings of a dataset, or a test set (a list of user, item, rating).

        Raw ids are kept. The inner ids of a trainset are the indices. Timestamps of a dataset are kept. Surprise keeps
        duplicates, so their mean is the default. The scale of its `Reader` is kept where all ratings lie in it.
        Ratings that leave it, or are filled in, are told.

        Raises
        ------
        DataError
            If there is no rating, and for a dataset of predefined folds, which share ratings.
        """
        source: Any = data
        if hasattr(source, "folds_files"):
            raise DataError(
                "expected one set of ratings, found the folds of load_from_folds: read each trainset and test set of "
                "surprise.model_selection.PredefinedKFold().split(data)"
            )
        is_trainset = hasattr(source, "all_ratings")
        rows = list(source.all_ratings()) if is_trainset else getattr(source, "raw_ratings", source)
        if not isinstance(rows, list) or not rows or not all(map(_is_rating, rows)):
            given = "none" if isinstance(rows, list) and not rows else type(data).__name__
            raise DataError(f"expected a trainset, a dataset or a list of (user, item, rating), found {given}")
        users, items, ratings, *times = zip(*rows, strict=True)
        if is_trainset:
            user_ids = [source.to_raw_uid(index) for index in range(source.n_users)]
            item_ids = [source.to_raw_iid(index) for index in range(source.n_items)]
        else:
            (users, user_ids), (items, item_ids) = encode_ids(users, "user"), encode_ids(items, "item")
        scale = getattr(getattr(source, "reader", source), "rating_scale", None)
        leaves = scale is not None and outside_of(np.asarray(ratings), scale).size > 0
        read = cls(
            users,
            items,
            ratings,
            user_ids,
            item_ids,
            timestamps=times[0] if times and times[0][0] is not None else None,
            duplicates=duplicates,
            allow_negative=True,
            rating_scale=None if leaves else scale,
        )
        _tell_values(source, read.ratings, scale if leaves else None)
        return read

    # ---------------------------------------------------------------- properties

    @property
    def user_ids(self) -> np.ndarray:
        """Ids of the users in index order, shape (n_users,)."""
        return self.users.ids

    @property
    def item_ids(self) -> np.ndarray:
        """Ids of the items in index order, shape (n_items,)."""
        return self.items.ids

    @property
    def n_users(self) -> int:
        """Number of users, those without ratings included."""
        return len(self.users)

    @property
    def n_items(self) -> int:
        """Number of items, those without ratings included."""
        return len(self.items)

    @property
    def n_ratings(self) -> int:
        """Number of ratings."""
        return self._ratings.size

    @property
    def n_rated(self) -> tuple[int, int]:
        """Numbers of users and of items that have a rating."""
        return self._n_rated

    @cached_property
    def _n_rated(self) -> tuple[int, int]:  # a training asks again and again
        users, items = (int(np.count_nonzero(np.bincount(index))) for index in (self.user_index, self.item_index))
        return users, items

    @property
    def has_weights(self) -> bool:
        """Whether ratings have weights."""
        return self.weights is not None

    @property
    def n_features(self) -> tuple[int, int]:
        """Numbers of features of users and of items, dimensions of their places in given graphs included."""
        sides = self.user_features, self.item_features
        users, items = (0 if side is None else side.values.shape[1] + side.places.shape[1] for side in sides)
        return users, items

    @property
    def has_places(self) -> tuple[bool, bool]:
        """Whether users and items have places in given graphs."""
        users, items = (
            side is not None and side.places.shape[1] > 0 for side in (self.user_features, self.item_features)
        )
        return users, items

    @property
    def ratings(self) -> np.ndarray:
        """Values of the ratings in float64, shape (n_ratings,): a new array at each call where 32 bits hold them."""
        return self._ratings.astype(np.float64, copy=False)

    @property
    def pair_index(self) -> np.ndarray:
        """Place of each rating in the matrix, counted row by row in int64: ``user_index * n_items + item_index``."""
        pairs = self.user_index * np.int64(self.n_items)
        pairs += self.item_index
        return pairs

    @property
    def density(self) -> float:
        """Share of the user-item pairs that are rated."""
        return self.n_ratings / (self.n_users * self.n_items)

    def __repr__(self) -> str:
        sizes = f"n_users={self.n_users}, n_items={self.n_items}, n_ratings={self.n_ratings}"
        if not self.n_ratings:
            return f"Interactions({sizes})"
        low, high = self._ratings.min(), self._ratings.max()
        limits = "" if self.relations is None else f", {np.count_nonzero(self.relations)} of them limits"
        return f"Interactions({sizes}, density={self.density:.2%}, ratings {low + 0:g}..{high + 0:g}{limits})".replace(
            "%", " %"
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows: what was read, and how the ratings are spread."""
        return interactions_card(self)

    # ---------------------------------------------------------------- to other containers

    def select(self, mask: Any) -> Interactions:
        """Return the ratings under a boolean mask or at given positions; all users and items are kept."""
        chosen = np.asarray(mask)
        if isinstance(mask, pd.Series) and chosen.dtype == bool and not mask.index.is_monotonic_increasing:
            told = (
                "a mask counts row by row, and its index not, which is in another order: mask.to_numpy() if so meant"
            )
            warnings.warn(told, DataWarning, stacklevel=2)
        if chosen.dtype != bool and chosen.size == self.n_ratings > 2 and np.isin(chosen, (0, 1)).all():
            raise DataError("expected a mask of booleans, or positions, found a 0 or 1 for each rating: mask == 1")
        if chosen.dtype != bool:
            chosen = as_index(chosen, self.n_ratings, "rating")
        elif chosen.shape != self._ratings.shape:
            raise DataError(f"expected a mask of {self.n_ratings} ratings, found shape {chosen.shape}")
        part = Interactions(
            self.user_index[chosen],
            self.item_index[chosen],
            self._ratings[chosen],
            self.users,
            self.items,
            timestamps=None if self.timestamps is None else self.timestamps[chosen],
            weights=None if self.weights is None else self.weights[chosen],
            relations=None if self.relations is None else self.relations[chosen],
            allow_negative=True,
            copy=False,
        )
        part.rating_scale = self.rating_scale
        part.user_features, part.item_features = self.user_features, self.item_features
        if self.kinds is not None:
            left_out = np.setdiff1d(self.pair_index, part.pair_index)
            part.kinds = self.kinds.each(lambda each: each._kept(~np.isin(each.pair_index, left_out)))
        return part

    def alike(self) -> Interactions:
        """Return the same pairs, each with a rating of 1."""
        same = copy(self)
        same._ratings, same.relations = np.ones_like(self._ratings), None
        return same

    def measured_as(self, ratings: np.ndarray) -> Interactions:
        """Return the same pairs with these ratings, all of them measured."""
        same = copy(self)
        same._ratings, same.relations, same.rating_scale = ratings, None, self.rating_scale or self.rating_range
        return same

    @property
    def measured(self) -> np.ndarray:
        """Which ratings are no limits, (n_ratings,); all of them where there are only limits."""
        measured = np.ones(self.n_ratings, dtype=bool) if self.relations is None else self.relations == 0
        return measured if measured.any() else ~measured

    def measured_alone(self) -> Interactions:
        """Return the ratings that are no limits, for models and measures that know none."""
        if self.relations is not None and self.relations.all():
            self.check_measured()
        return self if self.relations is None else self.select(self.relations == 0)

    def misses(self, predicted: np.ndarray) -> np.ndarray:
        """Return predictions less ratings, (n_ratings,); 0 where they lie on the known side of a limit."""
        missed = predicted - self.ratings
        return missed if self.relations is None else np.where(self.relations * missed > 0, 0.0, missed)

    def without_ratings(self) -> Interactions:
        """Return the same users and items, and no ratings."""
        return self._kept(np.zeros(self.n_ratings, dtype=bool))

    def _kept(self, mask: np.ndarray) -> Interactions:
        """The ratings under a mask, of which there may be none."""
        same = copy(self)
        vars(same).pop("_n_rated", None)
        for name in ("user_index", "item_index", "_ratings", "timestamps", "weights", "relations"):
            if (values := getattr(self, name)) is not None:
                setattr(same, name, values[mask])
        return same

    def over(self, users: np.ndarray, items: np.ndarray) -> Interactions:
        """Return the same ratings over some users and items, by ascending positions, which have all of them."""
        same = copy(self)
        for side, rows in (("user", users), ("item", items)):
            index, ids, known = (getattr(self, f"{side}_{name}") for name in ("index", "ids", "features"))
            setattr(same, f"{side}_index", np.searchsorted(rows, index).astype(index.dtype))
            setattr(same, f"{side}s", IdIndex(ids[rows], side))
            setattr(same, f"{side}_features", known and known.of_rows(rows))
        if self.kinds is not None:
            same.kinds = self.kinds.each(
                lambda each: each._kept(np.isin(each.user_index, users) & np.isin(each.item_index, items)).over(
                    users, items
                )
            )
        return same

    def with_features(self, *, user: Any = None, item: Any = None) -> Interactions:
        """Return the same ratings with features of users and items.

        Numbers are standardised. 0/1 columns and text become flags, one for each level that two rows or more have; a
        list, or text with "|" in it, has several levels. A missing value, and an id without a row, count as the
        average. Ids that are not in the data are added at the end, as users and items without ratings; a model
        predicts them from their features.

        Parameters
        ----------
        user, item : DataFrame, ndarray or SciPy sparse, optional
            A table indexed by id, or with a column ``user`` (``item``) of ids; a matrix has a row for each user
            (item), in the order of the ids. If a side is not given, its present features stay.

        Raises
        ------
        DataError
            For a table that cannot be read, see `air_recsys.data.features`.

        Examples
        --------
        >>> import pandas as pd
        >>> data = Interactions.from_dense([[5, 1], [2, 4]], item_ids=["x", "y"])
        >>> films = pd.DataFrame({"year": [1990, 2000, 2010]}, index=["x", "y", "new"])
        >>> known = data.with_features(item=films)
        >>> known.item_ids.tolist(), known.item_features.names
        (['x', 'y', 'new'], ['year'])
        """
        return with_features(self, user, item, stacklevel=2)

    def on_scale(self, rating_scale: Scale) -> Interactions:
        """Return the same ratings with this rating scale, see `Interactions`.

        Raises
        ------
        DataError
            If a rating is outside of the scale.

        Examples
        --------
        >>> Interactions.from_dense([[4, 2]]).on_scale((1, 5)).rating_scale
        (1.0, 5.0)
        """
        same = copy(self)
        same.rating_scale = as_scale(rating_scale)
        check_stated(self._ratings, same.rating_scale)
        return same

    def among(self, users: IdIndex, items: IdIndex) -> Interactions:
        """Return the same ratings over more users and items; the first ids are the present ones.

        Examples
        --------
        >>> data = Interactions.from_dense([[5.0]])
        >>> data.among(IdIndex([0, 1], "user"), data.items).n_users
        2
        """
        for own, wider in ((self.users, users), (self.items, items)):
            if not np.array_equal(own.ids, wider.ids[: len(own)]):
                raise DataError(f"expected the present {len(own)} {own.kind} ids first, found others")
        same = copy(self)
        same.users, same.items = users, items
        same.user_features = same.item_features = None
        same.kinds = self.kinds and self.kinds.each(lambda each: each.among(users, items))
        return same

    def to_csr(self) -> sp.csr_array:
        """Return the ratings as a SciPy CSR array, shape (n_users, n_items); ratings of zero stay stored."""
        return self._to_csr(self.ratings)

    def weights_to_csr(self) -> sp.csr_array | None:
        """Return the weights where `to_csr` has the ratings; None where all are 1."""
        return None if self.weights is None else self._to_csr(self.weights)

    def times_to_csr(self) -> sp.csr_array | None:
        """Return the timestamps where `to_csr` has the ratings; None without any."""
        return None if self.timestamps is None else self._to_csr(self.timestamps)

    def relations_to_csr(self) -> sp.csr_array | None:
        """Return the relations where `to_csr` has the ratings; None where all are measured."""
        return None if self.relations is None else self._to_csr(self.relations)

    def _to_csr(self, values: np.ndarray) -> sp.csr_array:
        pairs = (self.user_index, self.item_index)
        return sp.csr_array((values, pairs), shape=(self.n_users, self.n_items))

    def to_dense(self) -> np.ndarray:
        """Return a float64 array (n_users, n_items) with NaN where there is no rating; for small data."""
        array = np.full((self.n_users, self.n_items), np.nan)
        array[self.user_index, self.item_index] = self.ratings
        return array

    def to_frame(self) -> pd.DataFrame:
        """Return one row per rating: user, item, rating, and timestamp, weight and relation where there are any."""
        columns = {
            "user": self.user_ids[self.user_index],
            "item": self.item_ids[self.item_index],
            "rating": self.ratings,
            "timestamp": self.timestamps,
            "weight": self.weights,
            "relation": None if self.relations is None else np.array(["=", ">", "<"])[self.relations],
        }
        return pd.DataFrame({name: values for name, values in columns.items() if values is not None})

    def to_surprise(self) -> Trainset:
        """Return a Surprise trainset with the same raw ids (needs the extra ``surprise``)."""
        self.check_measured()
        return writer("surprise")(self)

    def check_measured(self) -> None:
        """Raise `DataError` where some ratings are limits, at a door that takes all of them as measured."""
        if self.relations is not None:
            raise DataError(
                f"expected measured ratings, found {np.count_nonzero(self.relations)} limits (relation < or >): leave "
                "them out, or fit AIR.for_ratings(), which knows them"
            )

    @property
    def rating_range(self) -> tuple[float, float]:
        """The range of the ratings, and as much again beyond limits."""
        low, high = float(self._ratings.min()), float(self._ratings.max())
        if self.relations is None:
            return low, high
        beyond = high - low or 1.0
        return low - beyond * bool((self.relations < 0).any()), high + beyond * bool((self.relations > 0).any())

    # ---------------------------------------------------------------- internals

    def checked(self, *header: Hashable, is_sparse: bool = False) -> Self:
        """Return the ratings of a caller's table, and warn of what it may mean otherwise; `header` names its ids."""
        doubts = list(doubts_about_ids(self.users, self.items, header))
        if self.rating_scale is None:
            check_no_code(self._ratings)
        arrays = self.users, self.items, self.user_index, self.item_index, self._ratings, self.timestamps
        doubts += doubts_about_ratings(Read(*arrays, bool(header), is_sparse), on_scale=self.rating_scale is not None)
        if self.timestamps is not None:
            doubts += doubts_about_times(self.timestamps)
        for doubt in doubts:
            warnings.warn(doubt, DataWarning, stacklevel=6)
        return self

    def divided(self, kinds: np.ndarray, target: str, rule: Duplicates) -> Interactions:
        """Return the rows of a target as interactions, with those of other kinds beside; each has its weight, or 1."""

        def of(name: str) -> Interactions:
            part = self._kept(kinds == name)
            part.weights = np.ones(part.n_ratings) if part.weights is None else part.weights  # repeated ones add up
            part._resolve_duplicates(rule)
            return part.alike()

        whole = of(target)
        whole.kinds = Kinds(target, {name: of(name) for name in np.unique(kinds).tolist() if name != target})
        return whole

    def _resolve_duplicates(self, rule: Duplicates) -> None:
        repeated = repeated_values(self.pair_index)
        if not repeated.size:
            return
        if self.relations is not None and rule in ("mean", "sum"):
            raise DataError(
                f"duplicates={rule!r} does not know the relations < and >, found some: air_recsys.dti.as_p_affinity "
                "merges the measurements of a pair"
            )
        pairs = RepeatedPairs(self.pair_index, repeated)
        if rule == "error":
            row = pairs.rows[0]
            user, item = self.user_ids.item(self.user_index[row]), self.item_ids.item(self.item_index[row])
            raise DataError(
                f"expected one rating per pair, found {pairs.n_surplus} duplicate(s), the first for "
                f"user {user!r} and item {item!r}; choose duplicates='first', 'last', 'mean' or 'sum' "
                "(in the shell --duplicates)"
            )
        place: Duplicates = "last" if rule == "last" else "first"  # of what has no mean
        moment: Rule = "latest" if rule in ("mean", "sum") else place  # the order of the rows does not count
        self.user_index, self.item_index = (
            pairs.resolve(index, place) for index in (self.user_index, self.item_index)
        )
        self._ratings = narrowed(pairs.resolve(self._ratings, rule))
        self.weights = None if self.weights is None else pairs.resolve(self.weights, rule)
        self.timestamps = None if self.timestamps is None else pairs.resolve(self.timestamps, moment)
        self.relations = None if self.relations is None else pairs.resolve(self.relations, place)


def with_features(data: Interactions, user: Any, item: Any, stacklevel: int) -> Interactions:
    """Return interactions with features, see `Interactions.with_features`; `stacklevel` is that of warnings."""
    same = copy(data)
    if user is not None:
        same.users, same.user_features = _known(data.users, user, data.user_features, stacklevel + 3)
    if item is not None:
        same.items, same.item_features = _known(data.items, item, data.item_features, stacklevel + 3)
    same.kinds = data.kinds and data.kinds.each(lambda each: each.among(same.users, same.items))
    return same


def _known(index: IdIndex, features: Any, before: Features | None, stacklevel: int) -> tuple[IdIndex, Features]:
    """Return an index with the further ids of a table, and the features of all of them; a given graph stays."""
    table = as_table(features, index.kind, index.ids)
    whole, n_known = index.joined(table.index.to_numpy()), int(table.index.isin(index.ids).sum())
    if 2 * n_known < min(len(index), len(table)):
        told = f"features of {n_known} of {len(index)} {index.kind}s of the data, and of {len(table) - n_known} others"
        warnings.warn(f"{told}: are their ids those of the data?", DataWarning, stacklevel=stacklevel)
    found = Features.of(table, Encoding.of(table, index.kind, stacklevel=stacklevel), whole)
    return whole, found if before is None else replace(
        before.grown(len(whole)), n_later=0, encoding=found.encoding, values=found.values
    )


_LONG_FRAME = (
    "name them, as in Interactions.from_frame(df, user=, item=, rating=), or state the other form by "
    "Interactions.from_dense(df)"
)
_LONG_ARRAY = (
    "make it a table, as in Interactions.from_frame(pd.DataFrame(array, columns=['user', 'item', 'rating'])), or "
    "state the other form by Interactions.from_dense(array)"
)


def as_interactions(
    data: Any,
    *,
    allow_negative: bool | None = None,
    rating_scale: Scale | None = None,
    reads: Sequence[str] = (),
    missing: float | None = None,
) -> Interactions:
    """Return `Interactions`, SciPy sparse, a DataFrame, or an array with NaN for missing as `Interactions`.

    A DataFrame, of pandas, Polars, PyArrow, ..., has one rating per row, in the columns user, item and rating, or one
    user per row and one item per column, with missing values for unrated items, see
    `air_recsys.data.columns.wide_frame`; `missing` is as in `Interactions.from_dense`. `reads` names further columns,
    "timestamp", "weight" and "relation", that are read where there are such; others are named in a warning. Limits
    that are not read are an error. Any other type is a `DataError` that lists the accepted ones.
    """
    if isinstance(data, Interactions):
        if "relation" not in reads:
            data.check_measured()
        return data if rating_scale is None else data.on_scale(rating_scale)
    data = as_pandas(data)
    how: dict[str, Any] = {"allow_negative": allow_negative, "rating_scale": rating_scale}
    if isinstance(data, pd.DataFrame):
        wide = wide_frame(data)
        if wide is None:
            roles = present_columns(data, reads) | _signs_of(data)
            return as_interactions(Interactions.from_frame(data, **roles, **how), reads=reads)
        check_not_long([data[name] for name in data.columns], _LONG_FRAME)
        return Interactions.from_dense(wide, missing=missing, **how)
    if sp.issparse(data):
        return Interactions.from_csr(data, missing=missing, **how)
    if isinstance(data, (np.ndarray, list, tuple)):
        if not isinstance(data, np.ndarray) or data.dtype.kind in "OV" or data.shape[-1:] <= (FEW_COLUMNS,):
            try:
                array = np.atleast_2d(as_float(data))
            except DataError as error:
                raise DataError(f"{error}; if a row is one rating, {_LONG_ARRAY}") from None
            check_not_long(list(array.T) if array.ndim == 2 else [], _LONG_ARRAY)
        return Interactions.from_dense(data, missing=missing, **how)
    raise DataError(
        "expected Interactions, a SciPy sparse matrix, a DataFrame with the columns user, item and rating, or a "
        f"2-D array with NaN for missing ratings, found {type(data).__name__}"
    )


def is_matrix(data: Any) -> bool:
    """Return whether data have numbers alone for rows and columns, and no ids."""
    return sp.issparse(data) or isinstance(data, np.ndarray | list | tuple)


def present_columns(frame: pd.DataFrame, roles: Sequence[str]) -> dict[str, Any]:
    """Return which of some columns a table has, as `Interactions.from_frame` takes them."""
    header = list(frame.columns)
    return {role: role for role in roles if usual_column(role, role, header) is not None}


def _signs_of(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the column of relations where it has limits, whoever reads it: they are no measured values."""
    named = usual_column("relation", "relation", list(frame.columns))
    return {"relation": named} if named is not None and has_limits(frame[named]) else {}


def _tell_flags(kinds: Sequence[Any]) -> None:
    """Warn where all columns of ratings are flags."""
    if kinds and all(str(kind) in ("bool", "boolean") for kind in kinds):
        warnings.warn("ratings of True and False are taken as 1 and 0", DataWarning, stacklevel=3)


def _with_nan(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with NaN in place of None and of pandas' missing value."""
    plain = all(isinstance(kind, np.dtype) and kind.kind != "O" for kind in frame.dtypes)
    return frame if plain else frame.astype(object).where(frame.notna(), np.nan)


def _columns_of(frame: pd.DataFrame, names: dict[str, str]) -> dict[str, pd.Series]:
    """Return the columns of a long table by what they hold, or raise `DataError` for those that are not there."""
    header = list(frame.columns)
    found = {role: usual_column(role, name, header) for role, name in names.items()}
    absent = {role: names[role] for role, name in found.items() if name is None}
    if absent:
        hint = hint_at_columns(absent, header)
        if not hint and {"user", "item"} <= set(absent):
            hint = ": a table with one user per row and one item per column is read by Interactions.from_dense"
        elif not hint and set(absent) == {"rating"}:
            hint = ": likes without ratings are read with rating=None, and AIR.for_likes() takes them as they are"
        if isinstance(frame.index, pd.MultiIndex) or (set(absent) == {"user"} and frame.index.name is not None):
            hint = f": its index holds {quoted(list(frame.index.names))}, which frame.reset_index() makes columns"
        raise DataError(f"expected the column(s) {list(absent.values())}, found {quoted(header)}{hint}")
    tell_columns(names, found, header, stacklevel=7)
    return {role: pd.Series(frame[name]) for role, name in found.items()}


def _tell_values(source: Any, ratings: np.ndarray, scale: Scale | None) -> None:
    """Warn where ratings of Surprise leave the scale of their reader, which is then given, or are those of no one."""
    low, high, told = ratings.min(), ratings.max(), ""
    if scale is not None:
        told = f"ratings of {low:g}..{high:g} leave rating_scale={scale} of the Reader, to which Surprise clips"
    elif isinstance(source, list) and ratings.size > 1 and low == high != 1:
        told = f"all {ratings.size} ratings are {low:g}: build_anti_testset fills pairs that nobody rated"
    if told:
        warnings.warn(told, DataWarning, stacklevel=3)


def _is_rating(row: Any) -> bool:
    """Whether a row is (user, item, rating), with or without a timestamp, as Surprise writes it."""
    return isinstance(row, (tuple, list)) and len(row) in (3, 4)
