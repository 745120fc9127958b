"""Make the checkpoints beside this file; run by commit 8470773, which wrote version 2, with tests/models and
tests/models/storage on the path."""

from __future__ import annotations

from pathlib import Path


def main() -> None:
    from test_release_0_1_0 import CUT, MODELS, data

    for name in ("ratings", "langevin", "watched"):
        path = Path(__file__).parent / f"{name}.ckpt"
        stop = [lambda record, last=CUT[name]: record.epoch >= last]
        MODELS[name]().fit(data(), checkpoint=path, every=CUT[name], callbacks=stop)


if __name__ == "__main__":
    main()
