"""The processes of a training, the rows that each owns, and the few exchanges between them."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate, pairwise
from typing import Any, Self, TypeVar

import numpy as np

from air_recsys.exceptions import AirRecsysError, DeviceError, DistributedError, ParameterError
from air_recsys.nn.devices import resolve_device
from air_recsys.storage.lazy import Tensor, dist, torch
from air_recsys.training.ranks import Ranks

Found = TypeVar("Found")
_COUNTED: ContextVar[Traffic | None] = ContextVar("traffic", default=None)


@dataclass
class Traffic:
    """The bytes of tensors that one rank has received, and the exchanges of tensors that brought them."""

    n_bytes: int = 0
    n_messages: int = 0

    def add(self, n_bytes: int) -> None:
        """Count one exchange."""
        self.n_bytes += n_bytes
        self.n_messages += 1


@contextmanager
def counted() -> Iterator[Traffic]:
    """Count the traffic of all groups that are made within the context, such as those of `fit`."""
    traffic = Traffic()
    token = _COUNTED.set(traffic)
    try:
        yield traffic
    finally:
        _COUNTED.reset(token)


class Group(Ranks):
    """All ranks of a training, with tensors on the `device` of this rank.

    `traffic` is that of this rank so far. A sum over all ranks counts as in the ring that computes it, 2 (size - 1) /
    size times its bytes.
    """

    def __init__(self, handle: dist.ProcessGroup, device: torch.device) -> None:
        self.handle, self.device = handle, device
        self.rank, self.size = dist.get_rank(handle), dist.get_world_size(handle)
        self.traffic = _COUNTED.get() or Traffic()

    def gather(self, own: Tensor, cut: Cut) -> Tensor:
        """The rows of all ranks, shape (n, ...), from those of each, shape (n_own, ...)."""
        if self.size == 1:
            return own
        sizes = cut.sizes
        largest, rest = max(sizes), own.shape[1:]
        # Every rank sends as many rows as the largest has, as the collective exchanges tensors of one shape.
        sent = own if len(own) == largest else torch.cat([own, own.new_zeros(largest - len(own), *rest)])
        received = own.new_empty(self.size * largest, *rest)
        with self.contact():
            dist.all_gather(list(received.split(largest)), sent.contiguous(), group=self.handle)
        self.traffic.add(received.nbytes - sent.nbytes)
        if len(received) == cut.n_rows:
            return received
        return torch.cat([rows[:size] for rows, size in zip(received.split(largest), sizes, strict=True)])

    def spread(self, cut: Cut, *own: Tensor) -> list[Tensor]:
        """The same as `gather`, for rows that are long or shared unevenly: sent as they are, all at a time."""
        wholes, arrive = self.begin_spread(cut, *own)
        arrive()
        return wholes

    def begin_spread(self, cut: Cut, *own: Tensor) -> tuple[list[Tensor], Callable[[], None]]:
        """What `spread` returns, whole once the function beside it has been called."""
        if self.size == 1:
            return list(own), lambda: None
        wholes = [part.new_empty(cut.n_rows, *part.shape[1:]) for part in own]
        for whole, part in zip(wholes, own, strict=True):
            whole[cut.of(self.rank)] = part
            self.traffic.add(whole.nbytes - part.nbytes)
        filled = [rank for rank, size in enumerate(cut.sizes) if size]
        parts = [(whole[cut.of(rank)], rank) for whole in wholes for rank in filled]
        with self.contact():
            sent = [dist.broadcast(rows, group=self.handle, group_src=rank, async_op=True) for rows, rank in parts]

        def arrive() -> None:
            with self.contact():
                for each in sent:
                    each.wait()  # pyright: ignore[reportOptionalMemberAccess]  # what is asynchronous has one

        return wholes, arrive

    def in_line(self, own: np.ndarray) -> np.ndarray:
        """The rows of all ranks, in rank order, however many each has."""
        sizes = self.of_all(len(own))
        return self.spread(Cut((0, *accumulate(sizes))), torch.from_numpy(own))[0].numpy()

    def shared(self, work: Callable[[slice], np.ndarray], n: int) -> np.ndarray:
        """What the work finds of n rows, of which each rank does an equal range."""
        cut = Cut.even(n, self.size)
        return self.spread(cut, torch.from_numpy(work(cut.of(self.rank))))[0].numpy()

    def as_first(self, tensor: Tensor) -> Tensor:
        """The tensor of rank 0, of the shape of that of this rank."""
        if self.size == 1:
            return tensor
        sent = tensor.contiguous()
        with self.contact():
            dist.broadcast(sent, group=self.handle, group_src=0)
        self.traffic.add(0 if self.rank == 0 else sent.nbytes)
        return sent

    def scatter_sum(self, partial: Tensor, cut: Cut) -> Tensor:
        """The own rows (n_own, ...) of the sum over the ranks of `partial` (n, ...), added in rank order."""
        if self.size == 1:
            return partial
        own = cut.sizes[self.rank]
        received = partial.new_empty(self.size * own, *partial.shape[1:])
        with self.contact():
            dist.all_to_all_single(received, partial.contiguous(), [own] * self.size, cut.sizes, group=self.handle)
        self.traffic.add(received.nbytes // self.size * (self.size - 1))
        return received.view(self.size, own, *partial.shape[1:]).sum(dim=0)

    def sum(self, *tensors: Tensor) -> list[Tensor]:
        """The sums over the ranks of tensors of one type, in one exchange."""
        if self.size == 1:
            return list(tensors)
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        with self.contact():
            dist.all_reduce(flat, group=self.handle)
        self.traffic.add(2 * flat.nbytes * (self.size - 1) // self.size)
        sums = flat.split([tensor.numel() for tensor in tensors])
        return [total.view_as(tensor) for total, tensor in zip(sums, tensors, strict=True)]

    def deal(self, rows: Tensor, sizes: list[int]) -> Tensor:
        """Send ``sizes[0]`` rows to rank 0, the next ones to rank 1 and so on; return those sent to this one."""
        if self.size == 1:
            return rows
        due = [sent[self.rank] for sent in self.of_all(sizes)]
        received = rows.new_empty(sum(due), *rows.shape[1:])
        with self.contact():
            dist.all_to_all_single(received, rows.contiguous(), due, sizes, group=self.handle)
        self.traffic.add(received.nbytes // max(len(received), 1) * (len(received) - due[self.rank]))
        return received

    def collect(self, own: Tensor) -> Tensor | None:
        """The rows of all ranks, in rank order, on rank 0, and None on the others."""
        sizes = self.of_all(len(own))
        if self.rank:
            with self.contact():
                dist.send(own.contiguous(), group=self.handle, group_dst=0)
            return None
        whole = own.new_empty(sum(sizes), *own.shape[1:])
        for rank, part in enumerate(whole.split(sizes)):
            if rank == 0:
                part.copy_(own)
                continue
            with self.contact():
                dist.recv(part, group=self.handle, group_src=rank)
            self.traffic.add(part.nbytes)
        return whole

    def together(self, work: Callable[[], Found]) -> Found:
        """The result of the work of this rank, once it has gone well on all; else the error of one is raised."""
        found, failure = None, None
        try:
            found = work()
        except AirRecsysError as error:
            failure = error
        failures = [each for each in self.of_all(failure) if each is not None]
        if failures:
            raise failures[0]
        return found  # pyright: ignore[reportReturnType]  # the work has gone well

    def of_all(self, value: Any) -> list[Any]:
        """The small values of all ranks."""
        values = [None] * self.size
        with self.contact():
            dist.all_gather_object(values, value, group=self.handle)
        return values

    def of_first(self, value: Any) -> Any:
        """The small value of rank 0."""
        return self.of_all(value if self.rank == 0 else None)[0]

    @contextmanager
    def contact(self) -> Iterator[None]:
        """Turn torch's error where a rank is gone into a `DistributedError`."""
        try:
            yield
        except RuntimeError as error:
            raise DistributedError(
                f"rank {self.rank} of {self.size} lost contact with another rank, which died or gave no answer in "
                f"time: {str(error).splitlines()[0]}"
            ) from error


@contextmanager
def joined(device: str, timeout: float) -> Iterator[Group]:
    """Join the ranks that torchrun or Ray started, each with its device, or make a group of this process alone.

    A process group that exists already is used. torchrun's stays until the process ends, for the next training of the
    script, since ranks can be joined only once. Ranks meet on their CPUs, so that one that has no GPU can say so.
    """
    alone = not (dist.is_initialized() or ("RANK" in os.environ and "WORLD_SIZE" in os.environ))
    if alone:
        store = dist.HashStore()  # pyright: ignore[reportPrivateImportUsage]
        dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    elif not dist.is_initialized():
        dist.init_process_group("gloo")
        atexit.register(dist.destroy_process_group)
    # A separate group, as ranks may take longer to start than to answer.
    group = meeting = Group(_handle("gloo", timeout), torch.device("cpu"))
    ends = True
    try:
        own, handle = _own_devices(meeting, device), meeting.handle
        if own.type == "cuda" and meeting.size > 1:
            os.environ.setdefault("TORCH_NCCL_BLOCKING_WAIT", "1")  # else its watchdog ends a rank that waits in vain
            handle = _handle("cpu:gloo,cuda:nccl", timeout)
        group = Group(handle, own)
        yield group
    except BaseException as error:
        ends = isinstance(error, AirRecsysError) and not isinstance(error, DistributedError)
        raise
    finally:
        if ends:  # together: what a rank has sent may be lost where it leaves while another one still reads
            with suppress(DistributedError):
                group.of_all(None)
        for handle in {None} if alone else {meeting.handle, group.handle}:
            dist.destroy_process_group(handle)


def _handle(backend: str, timeout: float) -> dist.ProcessGroup:
    handle = dist.new_group(backend=backend, timeout=timedelta(seconds=timeout))
    assert isinstance(handle, dist.ProcessGroup)
    return handle


def _own_devices(group: Group, name: str) -> torch.device:
    """The device of this rank; all ranks raise `DeviceError` where one has none, or another kind than the others."""

    def find() -> torch.device:
        try:
            return own_device(name)
        except DeviceError as error:
            raise DeviceError(f"rank {group.rank} of {group.size}: {error}") from None

    device = group.together(find)
    kinds = group.of_all(device.type)
    if len(set(kinds)) > 1:
        without = [rank for rank, kind in enumerate(kinds) if kind == "cpu"]
        raise DeviceError(
            f"expected a CUDA device for each of {group.size} ranks or device='cpu', found none on {without}"
        )
    return device


def own_device(name: str) -> torch.device:
    """The device of this rank: with "auto" and "cuda" the ranks of a machine take one GPU each."""
    device, local = resolve_device(name), os.environ.get("LOCAL_RANK")
    if device.type != "cuda" or local is None:
        return device
    if device.index is not None and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ParameterError(f"device must be 'auto', 'cpu' or 'cuda' with several ranks, found {name!r}")
    count = torch.cuda.device_count()
    if int(local) >= count:
        raise DeviceError(
            f"expected a CUDA device for each rank of a machine, found {count} for local rank {local}: start at most "
            f"{count} there, or train with device='cpu'"
        )
    own = torch.device("cuda", int(local))
    torch.cuda.set_device(own)
    return own


@dataclass(frozen=True)
class Cut:
    """Rank p owns rows ``starts[p]`` to ``starts[p + 1] - 1``, at least one."""

    starts: tuple[int, ...]  # ascending from 0 to the number of rows, one more entry than ranks

    @classmethod
    def balanced(cls, weights: np.ndarray, n_ranks: int) -> Self:
        """Cut n >= n_ranks rows so that the sums of their weights (n,), > 0, are as equal as ranges allow."""
        total = np.cumsum(weights, dtype=np.float64)
        shares = np.arange(1, n_ranks) * (total[-1] / n_ranks)
        inner = np.searchsorted(total, shares - weights.min() / 2) + 1
        step = np.arange(1, n_ranks)
        # Each rank has a row, whatever the weights: the ranks before and behind a start leave room for it.
        inner = np.maximum.accumulate(np.maximum(inner, step) - step) + step
        inner = np.minimum(inner, weights.size - n_ranks + step)
        return cls((0, *inner.tolist(), weights.size))

    @classmethod
    def even(cls, n_rows: int, n_parts: int) -> Self:
        """Cut rows into ranges that differ by one row at most, the larger ones first."""
        return cls((0, *accumulate(n_rows // n_parts + (rank < n_rows % n_parts) for rank in range(n_parts))))

    @property
    def n_rows(self) -> int:
        """Rows of all ranks."""
        return self.starts[-1]

    @property
    def sizes(self) -> list[int]:
        """Rows of each rank."""
        return [stop - start for start, stop in pairwise(self.starts)]

    def of(self, rank: int) -> slice:
        """The rows of a rank."""
        return slice(self.starts[rank], self.starts[rank + 1])

    def within(self, rows: slice) -> list[slice]:
        """The ranges of this cut in an array of some of the rows only, empty for those outside."""
        inside = [min(max(start, rows.start), rows.stop) - rows.start for start in self.starts]
        return [slice(*pair) for pair in pairwise(inside)]
