"""The application: paths, bounds of their parameters, and errors of the library as JSON."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from hmac import compare_digest
from importlib.resources import files
from typing import Annotated, Any, TypeVar

from air_recsys import __version__
from air_recsys.exceptions import AirRecsysError, DataError, DataFileError, UnknownIdError, quoted
from air_recsys.serving import schemas
from air_recsys.serving.limits import MOST_IDS, MOST_ITEMS, Guard, Limits
from air_recsys.serving.service import Service
from air_recsys.storage.validation import needs_extra

with needs_extra("serve"):
    from fastapi import Body, Depends, FastAPI, HTTPException, Path, Query, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse, Response
    from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

_NAME, _FAULT = 40, 200  # characters of a name in a request, of which an answer repeats five, and of a fault
Answer = TypeVar("Answer")
Length = Annotated[int, Query(ge=1, le=MOST_ITEMS, description="Length of the list.")]
OneId = Annotated[str, Query(max_length=1000, description="An id of the model.")]
Ids = Annotated[list[str] | None, Query(max_length=MOST_IDS, description="May be repeated.")]
Text = Annotated[str, Query(max_length=200, description="A part of a title, or an id; empty for what is popular.")]
Many = Body(min_length=1, max_length=MOST_IDS)
_Given = Annotated[
    HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False, description="The token of the service."))
]
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": schemas.Problem, "description": description}
    for status, description in {
        400: "What the model cannot answer",
        404: "An unknown id",
        408: "The body came too slowly",
        413: "The body is too long",
        415: "The body is not said to be JSON, or is packed",
        422: "A parameter out of its range",
        503: "Too busy",
        401: "Without the token of the service",
        403: "The service takes no changes",
    }.items()
}
_OF_CHANGES = {status: _PROBLEMS.pop(status) for status in (401, 403)}


def make_app(
    service: Service, limits: Limits | None = None, hosts: Collection[str] | None = None, token: str | None = None
) -> FastAPI:
    """Return the web application of a service (FastAPI).

    Parameters
    ----------
    service : Service
    limits : Limits, optional
        What requests may take.
    hosts : collection of str, optional
        Names and addresses under which it may be asked for, by default any.
    token : str, optional
        Who gives it may change the model; by default nobody.

    Examples
    --------
    >>> import numpy as np
    >>> from air_recsys import AIR
    >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
    >>> app = make_app(Service(AIR.for_ratings(random_state=0, device="cpu").fit(ratings)))
    >>> print(*app.openapi()["paths"])
    /health /recommend /fold-in /predict /explain /similar /items /ratings /likes /users/{id}
    """
    limits = Limits() if limits is None else limits
    pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="answer")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        pool.shutdown(wait=False, cancel_futures=True)

    app = FastAPI(
        title="air-recsys",
        summary="Recommendations of a trained model",
        version=__version__,
        docs_url=None,  # pages that load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # to an address that a proxy's client does not know
        dependencies=[Depends(_check_names)],
        lifespan=lifespan,
        responses=_PROBLEMS,
    )
    app.add_middleware(Guard, limits=limits, hosts=hosts)  # type: ignore[arg-type]
    app.add_exception_handler(AirRecsysError, _of_library)
    app.add_exception_handler(RequestValidationError, _of_request)
    answers = Answers(pool, limits.answer_seconds)
    _add_paths(app, service, answers)
    _add_changes(app, service, answers, token)
    add_page(app)
    return app


class Answers:
    """Computes answers in threads, so that the others' requests go on, and gives up after a time."""

    def __init__(self, pool: ThreadPoolExecutor, seconds: float) -> None:
        self._pool, self._seconds = pool, seconds

    async def __call__(self, work: Callable[[], Answer]) -> Answer:
        """Return what some work returns; a thread that is given up goes on until its end."""
        computed = asyncio.get_running_loop().run_in_executor(self._pool, work)
        try:
            return await asyncio.wait_for(computed, self._seconds)
        except TimeoutError:
            detail = f"expected an answer within {self._seconds:g} seconds: ask for less, or later"
            raise HTTPException(503, detail, {"Retry-After": "1"}) from None


def _given(**arguments: Any) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value}


def _add_paths(app: FastAPI, service: Service, answer: Answers) -> None:
    @app.get("/health")
    async def health() -> schemas.Health:
        """Say that the service answers, and what it serves."""
        return schemas.Health(**service.about())

    @app.get("/recommend")
    async def recommend(
        user: OneId,
        n: Length = 10,
        include_seen: bool = False,
        item: Ids = None,
        exclude: Ids = None,
        rank_by: schemas.RankBy = "auto",
        diversity: schemas.Share = 0.0,
        novelty: schemas.Share = 0.0,
        calibration: schemas.Share = 0.0,
        per_group: schemas.PerGroup = None,
    ) -> schemas.ItemList:
        """Return the best items of a known user that are not rated: of all, or of those named."""
        again = _given(diversity=diversity, novelty=novelty, calibration=calibration, per_group=per_group)
        chosen = {"include_seen": include_seen, "items": item, "exclude": exclude, "rank_by": rank_by, "again": again}
        return schemas.ItemList(**await answer(partial(service.recommend, user, n, **chosen)))

    @app.post("/fold-in")
    async def fold_in(user: schemas.NewUser) -> schemas.ItemList:
        """Return the best items of a new user by ratings or likes; nothing of it is kept."""
        ratings = {each.item: each.rating for each in user.ratings}
        if len(ratings) < len(user.ratings):
            raise DataError("expected each item once, found one again")
        chosen = user.model_dump(include={"n", "include_seen", "items", "exclude", "rank_by", "reasons"})
        chosen["again"] = _given(**user.model_dump(include={"diversity", "novelty", "per_group"}))
        return schemas.ItemList(**await answer(partial(service.fold_in, ratings, user.likes, **chosen)))

    @app.get("/predict")
    async def predict(user: OneId, item: Annotated[list[str], Query(max_length=MOST_IDS)]) -> schemas.Predictions:
        """Return scores of a known user, with standard deviations where the model knows them."""
        return schemas.Predictions(**await answer(partial(service.predict, user, item)))

    @app.get("/explain")
    async def explain(user: OneId, item: OneId, n: Length = 10) -> schemas.Explained:
        """Return the parts of a score, which add up to it."""
        return await answer(partial(service.explain, user, item, n))

    @app.get("/similar")
    async def similar(user: OneId | None = None, item: OneId | None = None, n: Length = 10) -> schemas.AlikeList:
        """Return the users most alike to a user, or the items most alike to an item."""
        if (user is None) == (item is None):
            raise DataError("expected either user or item")
        side, id = ("item", item) if user is None else ("user", user)
        return schemas.AlikeList(**await answer(partial(service.similar, side, id, n)))

    @app.get("/items")
    async def items(query: Text = "", n: Length = 10) -> list[schemas.Found]:
        """Return items by a part of their title, or by their id."""
        return [schemas.Found(**row) for row in await answer(partial(service.search, query, n))]


def _add_changes(app: FastAPI, service: Service, answer: Answers, token: str | None) -> None:
    async def check(given: _Given) -> None:
        if token is None:
            raise HTTPException(403, "this service takes no changes: it was started without --allow-updates")
        if given is None or not compare_digest(given.credentials.encode(), token.encode()):
            expected = "expected the header Authorization: Bearer TOKEN, with the token of this service"
            raise HTTPException(401, expected, {"WWW-Authenticate": "Bearer"})

    how: dict[str, Any] = {"dependencies": [Depends(check)], "responses": _OF_CHANGES}

    @app.post("/ratings", **how)
    async def rate(new: Annotated[list[schemas.KeptRating], Many]) -> schemas.Health:
        """Take ratings of known and new users and items into the model; they count in the next answer."""
        return schemas.Health(**await answer(partial(service.add, "ratings", list(map(dict, new)))))

    @app.post("/likes", **how)
    async def like(new: Annotated[list[schemas.Event], Many]) -> schemas.Health:
        """Take likes of known and new users and items into the model; they count in the next answer."""
        return schemas.Health(**await answer(partial(service.add, "likes", list(map(dict, new)))))

    @app.delete("/ratings", **how)
    @app.delete("/likes", **how)
    async def forget_pairs(user: OneId, item: Annotated[list[str], Query(max_length=MOST_IDS)]) -> schemas.Health:
        """Let the model forget ratings or likes of a user: those of the items named."""
        return schemas.Health(**await answer(partial(service.forget, user, item)))

    @app.delete("/users/{id:path}", **how)
    async def forget_user(id: Annotated[str, Path(max_length=1000)]) -> schemas.Health:
        """Let the model forget a user and all of its ratings or likes."""
        return schemas.Health(**await answer(partial(service.forget, id)))


async def _check_names(request: Request) -> None:
    """Refuse what nothing reads: unknown parameters of an address, and all but the last of what stands twice."""
    taken = {each.alias: str(each.field_info.annotation) for each in request.scope["route"].dependant.query_params}
    if not taken and request.method == "GET":  # one answer, whatever is added to pass a cache
        return
    for name, number in Counter(name for name, _ in request.query_params.multi_items()).items():
        if name not in taken:
            elsewhere = "parameters in the body alone" if request.method == "POST" else "no parameters"
            expected = f"the parameters {', '.join(taken)}" if taken else elsewhere
            raise HTTPException(422, f"expected {expected}, found {quoted(name)}")
        if number > 1 and "list" not in taken[name]:
            raise HTTPException(422, f"expected {name} once, found it {number} times")
    if request.method == "POST" and (body := await request.body()):  # which has been parsed before
        json.loads(body, object_pairs_hook=_check_keys)


def _check_keys(pairs: list[tuple[str, Any]]) -> None:
    name, number = Counter(name for name, _ in pairs).most_common(1)[0] if pairs else ("", 1)
    if number > 1:
        raise HTTPException(422, f"body: expected each key once, found {quoted(name)} {number} times")


def _of_library(request: Request, error: Exception) -> JSONResponse:
    status = {UnknownIdError: 404, DataFileError: 503}.get(type(error), 400)
    return JSONResponse({"detail": str(error)}, status)


def _of_request(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    faults = [f"{'.'.join(map(str, fault['loc']))[:_NAME]}: {fault['msg'][:_FAULT]}" for fault in error.errors()[:5]]
    return JSONResponse({"detail": "; ".join(faults)}, 422)


_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_TYPES = {"page.html": "text/html", "page.css": "text/css", "page.js": "text/javascript"}


def add_page(app: FastAPI) -> None:
    """Add the page to an application; its addresses are relative, so it may be mounted anywhere."""
    for name, kind in _TYPES.items():
        path = "/" if name == "page.html" else f"/{name}"
        app.add_api_route(path, _answer(name, kind), methods=["GET"], include_in_schema=False)


def _answer(name: str, kind: str):  # noqa: ANN202, FastAPI would take the type for that of the answer's content
    content = files("air_recsys.serving").joinpath("assets", name).read_bytes()

    async def asset() -> Response:
        return Response(content, media_type=kind, headers=_HEADERS)

    return asset
