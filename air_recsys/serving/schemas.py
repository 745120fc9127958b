"""Requests and answers as JSON: their fields, types and bounds, which the OpenAPI description shows."""

from __future__ import annotations

from typing import Annotated, Any

from air_recsys.models.listing import RankedBy
from air_recsys.serving.limits import MOST_EXPLAINED, MOST_IDS, MOST_ITEMS
from air_recsys.storage.validation import needs_extra

with needs_extra("serve"):
    from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, StrictInt, StrictStr

Id = StrictInt | StrictStr
RankBy = Annotated[RankedBy, Field(description="Of a model of ratings: what the list goes by.")]
Length = Annotated[int, Field(ge=1, le=MOST_ITEMS)]
Share = Annotated[float, Field(ge=0, le=1, description="How much it counts in a list made again, 0 for not.")]
PerGroup = Annotated[int | None, Field(ge=1, description="Most items of any group, where the service has groups.")]


class Posted(BaseModel):
    """What a request has in its body."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Rating(Posted):
    """A rating of the posted user."""

    item: Id
    rating: FiniteFloat


class NewUser(Posted):
    """A user whom the model does not know: ratings, or likes, and what to answer."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"ratings": [{"item": "Heat", "rating": 5}], "n": 5, "reasons": 3}]}
    )

    ratings: list[Rating] = Field([], max_length=MOST_IDS, description="On the scale of the model; see /health.")
    likes: list[Id] = Field([], max_length=MOST_IDS, description="A model of ratings takes each for its best rating.")
    n: Length = Field(10, description="Length of the list.")
    include_seen: bool = Field(False, description="Also items that are rated or liked.")
    items: list[Id] | None = Field(None, max_length=MOST_IDS, description="Only these items.")
    exclude: list[Id] | None = Field(None, max_length=MOST_IDS, description="Not these items.")
    rank_by: RankBy = "auto"
    diversity: Share = 0.0
    novelty: Share = 0.0
    per_group: PerGroup = None
    reasons: int = Field(0, ge=0, le=10, description=f"Reasons of each item, with n up to {MOST_EXPLAINED}.")


KeptId = (
    Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)] | Annotated[StrictStr, Field(min_length=1, max_length=1000)]
)


class Like(Posted):
    """A like of a known or a new user, for a known or a new item."""

    user: KeptId
    item: KeptId
    timestamp: FiniteFloat | None = Field(None, description="In the unit of the training data, where these have some.")


class Event(Like):
    """A like, or an event of another kind."""

    kind: str | None = Field(None, description="Of a model of several kinds; by default the one that lists are for.")


class KeptRating(Like):
    """A rating of a known or a new user, for a known or a new item."""

    rating: FiniteFloat = Field(description="On the scale of the model; it replaces an older one of the pair.")
    weight: FiniteFloat | None = Field(None, ge=0, le=1e9)


class Found(BaseModel):
    """An item that a search found."""

    item: Id
    title: str | None


class Prediction(Found):
    """The score of a pair."""

    score: float
    deviation: float | None = Field(description="Standard deviation of a rating around the score, where known.")


class Reason(Found):
    """What an item of the user adds to a score."""

    contribution: float


class ListedItem(Prediction):
    """An item of a list."""

    rank: int
    liking: float | None = Field(None, description="Probability that the user likes it, where lists go by it.")
    reasons: list[Reason] | None = None


class ItemList(BaseModel):
    """The best items of a user, best first."""

    user: Id | None = Field(description="None for a posted user.")
    items: list[ListedItem]


class Alike(BaseModel):
    """A user or an item that is like another one."""

    id: Id
    title: str | None
    weight: float


class AlikeList(BaseModel):
    """The users or items most alike to one."""

    side: str
    id: Id
    alike: list[Alike]


class Predictions(BaseModel):
    """Scores of a user."""

    user: Id
    predictions: list[Prediction]


class Health(BaseModel):
    """That the service answers, and what it serves."""

    status: str
    version: str
    model: str
    learned_from: str = Field(description='"ratings" or "likes"')
    n_users: int
    n_items: int
    rating_scale: tuple[float, float]
    deviations: bool = Field(description="Whether scores come with a standard deviation.")
    new_users: bool = Field(description="Whether /fold-in and /explain have answers.")
    notes: list[str] = Field([], description="What of an update was not taken, or may be meant otherwise.")


class Problem(BaseModel):
    """Why a request was not answered."""

    detail: str


Explained = dict[str, Any]
"""`Explanation.to_dict`, or `ListExplanation.to_dict`."""
