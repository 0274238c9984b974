# SPDX-License-Identifier: Apache-2.0
"""Locks that are free in the child of a fork, whichever thread of the parent held them: that thread is not in the child, and never releases them."""
import contextlib
import os
import threading
import weakref

_all = weakref.WeakSet()  # type: ignore[var-annotated]


class Lock:
    """A re-entrant lock, for `with`. What it guards has to be whole at each moment: tables that are looked up, and filled by one assignment."""
    __slots__ = "_lock", "__weakref__"

    def __init__(self):
        self._lock = threading.RLock()
        _all.add(self)

    def __enter__(self):
        self._lock.acquire()

    def __exit__(self, *error):
        self._lock.release()


def _renew():
    for lock in list(_all):
        if not lock._lock._is_owned():  # type: ignore[attr-defined]  # by the thread that forked, which releases it
            lock._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


class Once:
    """Work by key: `with once.of(key):` waits for another thread that does the same."""

    def __init__(self):
        self._guard, self._users = Lock(), {}

    @contextlib.contextmanager
    def of(self, key):
        with self._guard:
            entry = self._users.setdefault(key, [Lock(), 0])
            entry[1] += 1
        try:
            with entry[0]:
                yield
        finally:
            with self._guard:
                entry[1] -= 1
                if entry[1] == 0:
                    self._users.pop(key, None)
