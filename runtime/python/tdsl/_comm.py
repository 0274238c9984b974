# SPDX-License-Identifier: Apache-2.0
"""How ranks reach each other: by a communicator of mpi4py, or of anything that has its Get_rank, Get_size, Isend and Irecv, or as threads
of this process. Waits are polled, so that a rank that does not come ends in an error, not in a wait."""
from __future__ import annotations

import collections
import ctypes
import threading
import time

from ._errors import ArgumentError, Error, PeerError, RankTimeoutError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

_TAG = 26221  # of all messages: below the least limit of MPI, and unlikely to be a program's own
_PIECE = 1 << 30  # bytes of one message: MPI before 4 counts them in an int
_MOST = (1 << 63) - 1
E_TIMEOUT, E_PEER = -33, -51  # of tdsl/abi.h
OTHER = -1  # of a failure that has no number there

_lost: list[Any] = []  # communicators whose ranks are at different places
_pending: list[Any] = []  # requests that were given up, and their memory: MPI may still serve them


class _Bytes(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_int64)]


_EXCHANGE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(_Bytes), ctypes.POINTER(_Bytes))
_AGREE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64), ctypes.c_int32)


class CComm(ctypes.Structure):
    """tdsl_comm of tdsl/dist.h."""
    _fields_ = [("state", ctypes.c_void_p), ("rank", ctypes.c_int32), ("size", ctypes.c_int32), ("exchange", _EXCHANGE), ("agree", _AGREE)]


class Link:
    """The ranks of a call. `timeout`: seconds that this one waits for the others."""

    def __init__(self, comm, timeout=None):
        try:
            self.rank, self.size = comm.Get_rank(), comm.Get_size()
            self._isend, self._irecv = comm.Isend, comm.Irecv
        except AttributeError:
            raise ArgumentError(f"comm is a communicator of mpi4py, or of tdsl.thread_ranks, not {type(comm).__name__}", "comm") from None
        self._comm, self.timeout = comm, 600 if timeout is None else timeout
        if not self.timeout > 0:
            raise ArgumentError(f"timeout is {timeout}: seconds are expected", "timeout")
        self.fault = None  # what a rank raised while C was calling
        self.c = CComm(None, self.rank, self.size, _EXCHANGE(self._c_exchange), _AGREE(self._c_agree))

    def _wait(self, requests, kept):
        end, spins = time.monotonic() + self.timeout, 0
        try:
            for request in requests:
                while not request.Test():
                    spins += 1
                    if spins > 100:
                        time.sleep(0.00002)
                    if time.monotonic() > end:
                        raise RankTimeoutError(f"another rank did not come within {self.timeout} s")
        except BaseException:
            _lost.append(self._comm)
            _pending.append((requests, kept))
            raise

    def exchange(self, send, receive):
        """Sends and receives arrays of bytes, lists by rank; None or empty where nothing is."""
        if any(self._comm is lost for lost in _lost):
            raise PeerError("ranks have been lost in a call before", -1, E_PEER)
        requests = []
        for post, arrays in ((self._irecv, receive), (self._isend, send)):
            for rank, a in enumerate(arrays):
                for at in range(0, 0 if a is None else a.size, _PIECE):
                    requests.append(post(a[at:at + _PIECE], rank, _TAG))
        self._wait(requests, (send, receive))

    def least(self, numbers):
        """Each of the numbers becomes the least that a rank has. Rounds of doubling distance: a minimum may count a rank twice."""
        import numpy as np
        own, theirs, distance = np.array(numbers, np.int64), np.empty(len(numbers), np.int64), 1
        nobody = [None] * self.size
        while distance < self.size:
            send, receive = list(nobody), list(nobody)
            send[(self.rank + distance) % self.size] = own.copy().view(np.uint8)
            receive[(self.rank - distance) % self.size] = theirs.view(np.uint8)
            self.exchange(send, receive)
            own = np.minimum(own, theirs)
            distance *= 2
        return [int(n) for n in own]

    def agree(self, status, numbers=()):
        """The same of all, once all are well; else PeerError on those that are, with the least bad one."""
        first, *rest = self.least([status * (1 << 32) + self.rank, *numbers])
        rank, least = first & 0xffffffff, first >> 32
        if least != 0 and status == 0:
            raise PeerError(f"rank {rank} of {self.size} failed with status {least}", rank, least)
        return rest

    def every(self, numbers):
        """A list of all ranks' numbers, as many of each."""
        import numpy as np
        own = np.array(numbers, np.int64)
        all_ = np.empty((self.size, len(own)), np.int64)
        all_[self.rank] = own
        others = [r for r in range(self.size) if r != self.rank]
        self.exchange([own.view(np.uint8) if r in others else None for r in range(self.size)],
                      [all_[r].view(np.uint8) if r in others else None for r in range(self.size)])
        return all_.tolist()

    def _guarded(self, function, *arguments):
        try:
            function(*arguments)
            return 0
        except BaseException as error:  # noqa: BLE001  (C is between; it is raised when that returns)
            self.fault = error
            return E_TIMEOUT if isinstance(error, RankTimeoutError) else E_PEER

    def _c_exchange(self, _, send, receive):
        return self._guarded(lambda: self.exchange(*[[_array(p[r].data, p[r].bytes) for r in range(self.size)] for p in (send, receive)]))

    def _c_agree(self, _, numbers, n):
        def run():
            for k, least in enumerate(self.least(numbers[:n])):
                numbers[k] = least
        return self._guarded(run)


def _array(address, size):
    import numpy as np
    return np.frombuffer((ctypes.c_char * size).from_address(address), np.uint8) if size > 0 else None


# ---- threads ----


class _Team:
    def __init__(self, size):
        self.size, self.lock, self.gone = size, threading.Lock(), set()
        self.messages = collections.defaultdict(dict)  # of (from, to, tag): data by number
        self.sent = collections.Counter()
        self.posted = collections.Counter()


class _Sent:
    def Test(self):
        return True


class _Received:
    def __init__(self, team, channel, number, buffer):
        self._team, self._channel, self._number, self._buffer = team, channel, number, buffer

    def Test(self):
        if self._buffer is None:
            return True
        team, sender = self._team, self._channel[0]
        with team.lock:
            data = team.messages[self._channel].pop(self._number, None)
            gone = sender in team.gone
        if data is not None:
            self._buffer[...] = data
            self._buffer = None
        elif gone:
            raise PeerError(f"rank {sender} of {team.size} has returned", sender, E_PEER)
        return data is not None


class ThreadComm:
    """The communicator of one rank that is a thread: what `tdsl.thread_ranks` gives to each, in the place of one of mpi4py."""

    def __init__(self, team: Any, rank: int) -> None:
        self._team, self.rank, self.size = team, rank, team.size

    def Get_rank(self) -> int:
        """The number of this rank, from 0."""
        return self.rank

    def Get_size(self) -> int:
        """How many ranks there are."""
        return self.size

    def Isend(self, buffer: Any, dest: int, tag: int = 0) -> Any:
        """Sends an array of bytes, which may be changed at once."""
        channel = self.rank, dest, tag
        data = buffer.copy()
        with self._team.lock:
            self._team.messages[channel][self._team.sent[channel]] = data
            self._team.sent[channel] += 1
        return _Sent()

    def Irecv(self, buffer: Any, source: int, tag: int = 0) -> Any:
        """Receives as many bytes as the array has."""
        channel = source, self.rank, tag
        with self._team.lock:
            number = self._team.posted[channel]
            self._team.posted[channel] += 1
        return _Received(self._team, channel, number, buffer)


def thread_ranks(ranks: int, function: Callable[[ThreadComm], Any]) -> list[Any]:
    """Calls `function(comm)` on so many threads, each a rank with its communicator, and returns the list of results. What a rank raises is raised,
    of several first what is not told of another rank."""
    if ranks < 1:
        raise ArgumentError(f"{ranks} ranks", "ranks")
    team, results, faults = _Team(ranks), [None] * ranks, {}

    def run(rank):
        try:
            results[rank] = function(ThreadComm(team, rank))
        except BaseException as error:  # noqa: BLE001  (raised by the caller's thread)
            faults[rank] = error
        with team.lock:
            team.gone.add(rank)
    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(ranks)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for rank in sorted(faults, key=lambda r: (isinstance(faults[r], (PeerError, RankTimeoutError)), r)):
        raise faults[rank]
    return results
