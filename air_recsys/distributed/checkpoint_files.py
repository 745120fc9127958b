"""The files of a checkpoint: those of `torch.distributed.checkpoint`, with JSON in place of a pickle.

torch's own index is a pickle, which can run any code when it is read. Here it is ``index.json``, and the tensors are
read by `torch.load` with ``weights_only=True``, so that no code in a checkpoint is run. The index holds its own digest
and one of every piece of a tensor, each of which is compared before it is read.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter, _StorageInfo
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.futures import Future

from air_recsys.storage.tensor_files import DamagedError, digest_of, parse_sealed_json, to_sealed_json
from air_recsys.storage.writing import replace_file

INDEX = "index.json"
_SUFFIX = ".distcp"


class Kept(NamedTuple):
    """Where a piece of a tensor lies, and the digest of its bytes."""

    place: _StorageInfo
    digest: str


class Writer(FileSystemWriter):
    """Writes tensors as torch does, and their types, shapes, places and digests as JSON."""

    def write_data(self, *args: Any, **kwargs: Any) -> Future[Any]:
        """Write the own tensors; the results have the digests of what lies in the files."""
        written = super().write_data(*args, **kwargs).value()
        folder, done = Path(self.path), Future()
        done.set_result(
            [replace(one, storage_data=Kept(one.storage_data, _digest(folder, one.storage_data))) for one in written]
        )
        return done

    def finish(self, metadata: Metadata, results: Any) -> None:
        """Write the index; called on one rank, after all tensors are written."""
        tensors = {name: _described(tensor) for name, tensor in metadata.state_dict_metadata.items()}
        places = [
            [one.index.fqn, one.index.offset, one.index.index, place.relative_path, place.offset, place.length, digest]
            for of_rank in results
            for one in of_rank
            for place, digest in [one.storage_data]
        ]
        replace_file(Path(self.path) / INDEX, to_sealed_json({"tensors": tensors, "places": places}))


class Reader(FileSystemReader):
    """Reads what `Writer` wrote, or raises `ValueError` for any damage of the index."""

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Return the index in torch's form."""
        folder = Path(self.path)
        try:
            index = parse_sealed_json((folder / INDEX).read_bytes(), INDEX)
            tensors: dict[str, Any] = {name: _tensor(entry) for name, entry in index["tensors"].items()}
            places = dict(_place(folder, *entry[:-1]) for entry in index["places"])
            digests = [entry[-1] for entry in index["places"]]
        except (TypeError, LookupError, AttributeError, OverflowError, RuntimeError) as error:
            raise ValueError(f"{INDEX} is no index of tensors: {error}") from None
        self._digests = dict(zip(places, digests, strict=True))
        return Metadata(tensors, storage_data=places, storage_meta=StorageMeta(load_id=self.load_id))

    def read_data(self, plan: Any, planner: Any) -> Future[None]:
        """Read the own tensors, each of whose pieces has to be as it was written."""
        for item in plan.items:
            place = self.storage_data[item.storage_index]
            if _digest(Path(self.path), place) != self._digests[item.storage_index]:
                raise DamagedError(f"tensor {item.storage_index.fqn} differs from its digest")
        return super().read_data(plan, planner)


def _digest(folder: Path, place: _StorageInfo) -> str:
    with (folder / place.relative_path).open("rb") as file:
        file.seek(place.offset)
        return digest_of(file.read(place.length))


def _described(tensor: Any) -> dict[str, Any]:
    if not isinstance(tensor, TensorStorageMetadata):
        raise TypeError(f"expected tensors only, found {type(tensor).__name__}")
    chunks = [[list(chunk.offsets), list(chunk.sizes)] for chunk in tensor.chunks]
    kind = str(tensor.properties.dtype).removeprefix("torch.")
    return {"dtype": kind, "size": list(tensor.size), "chunks": chunks}


def _tensor(entry: dict[str, Any]) -> TensorStorageMetadata:
    kind = getattr(torch, entry["dtype"])
    if not isinstance(kind, torch.dtype):
        raise ValueError(f"expected the type of a tensor, found {entry['dtype']!r}")
    chunks = [ChunkStorageMetadata(_size(offsets), _size(sizes)) for offsets, sizes in entry["chunks"]]
    return TensorStorageMetadata(TensorProperties(kind), _size(entry["size"]), chunks)


def _place(
    folder: Path, name: str, offset: list[int] | None, index: int | None, file: str, start: int, length: int
) -> tuple[MetadataIndex, _StorageInfo]:
    """Return the place of a shard of a tensor in a file of this folder."""
    if file != Path(file).name or not file.endswith(_SUFFIX):
        raise ValueError(f"expected a file *{_SUFFIX} of the checkpoint, found {file!r}")
    start, length = _size([start, length])
    if start + length > (folder / file).stat().st_size:
        raise ValueError(f"expected {length} bytes from byte {start} of {file}, found fewer")
    key = MetadataIndex(str(name), None if offset is None else _size(offset), None if index is None else int(index))
    return key, _StorageInfo(file, start, length)


def _size(values: Any) -> torch.Size:
    if any(type(value) is not int or not 0 <= value < 2**63 for value in values):
        raise ValueError(f"expected sizes, found {values!r}")
    return torch.Size(values)
