"""A plain server: implicit's ALS behind FastAPI, as one writes it first. Run as a module, it serves a file."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.storage.validation import needs_extra

with needs_extra("serve"):
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel


class Likes(BaseModel):
    """The items of a new user, by position."""

    likes: list[int]
    n: int = 10


def plain_app(likes: sp.csr_matrix) -> FastAPI:
    """An application with two paths around ALS with the library's defaults; ids are positions."""
    from air_recsys.adapters.implicit_peer import AlternatingLeastSquares

    assert likes.shape is not None  # SciPy types it as optional
    n_items = likes.shape[1]
    model = AlternatingLeastSquares(num_threads=1, random_state=0)
    model.fit(likes, show_progress=False)
    app = FastAPI()

    def answer(found: tuple[np.ndarray, np.ndarray]) -> dict[str, Any]:
        return {"items": [{"item": int(item), "score": float(score)} for item, score in zip(*found, strict=True)]}

    @app.get("/recommend")
    def recommend(user: int, n: int = 10) -> dict[str, Any]:
        return answer(model.recommend(user, likes[user], N=n))

    @app.post("/fold-in")
    def fold_in(user: Likes) -> dict[str, Any]:
        row = sp.csr_matrix((np.ones(len(user.likes), np.float32), user.likes, [0, len(user.likes)]), (1, n_items))
        return answer(model.recommend(0, row, N=user.n, recalculate_user=True))

    return app


if __name__ == "__main__":
    application = plain_app(sp.csr_matrix(sp.load_npz(Path(sys.argv[1])), dtype=np.float32))
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listening:
        sys.stdout.write(f"serving at http://127.0.0.1:{listening.getsockname()[1]}/ with implicit\n")
        sys.stdout.flush()
        uvicorn.Server(uvicorn.Config(application, log_level="error", access_log=False)).run([listening])
