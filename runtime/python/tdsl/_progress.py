# SPDX-License-Identifier: Apache-2.0
"""A line on the terminal while kernels are compiled, from the second second on: `tdsl: compiling kernel 3 of 49, 2 s`."""
import os
import sys
import threading
import time

_PAUSE = 2.0  # seconds after which kernels are of another line
_lock = threading.Lock()


class _Line:
    """Kernels that are compiled one after the other, or side by side."""

    def __init__(self):
        self.running = self.begun = self.expected = 0
        self.first = self.last = 0.0
        self.shown = False

    def enter(self):
        now = time.monotonic()
        if self.running == 0 and now - self.last > _PAUSE:
            self.first, self.begun = now, 0
        self.running += 1
        self.begun += 1

    def leave(self):
        self.running -= 1
        self.last = time.monotonic()
        if self.running == 0 and self.shown:
            self.shown = False
            _write("\r\x1b[K")

    def show(self):
        seconds = time.monotonic() - self.first
        if seconds >= 1 and _is_wanted():
            of = f" of {self.expected}" if self.expected >= self.begun else ""
            self.shown = True
            _write(f"\rtdsl: compiling kernel {self.begun}{of}, {seconds:.0f} s\x1b[K")


_line = _Line()


def _is_wanted():
    return os.environ.get("TDSL_PROGRESS", "1") not in ("", "0") and sys.stderr is not None and sys.stderr.isatty()


def _write(text):
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        pass  # a terminal that is closed


class Compiling:
    """`with Compiling() as tick:` around the compiler, `tick()` now and then."""

    def __enter__(self):
        with _lock:
            _line.enter()
            _line.show()
        return self.tick

    def tick(self):
        with _lock:
            _line.show()

    def __exit__(self, *error):
        with _lock:
            _line.leave()


class Expected:
    """`with Expected(49):` says how many kernels there may be at most."""

    def __init__(self, number):
        self.number = number

    def __enter__(self):
        _line.expected = self.number

    def __exit__(self, *error):
        _line.expected = 0


if hasattr(os, "register_at_fork"):
    def _renew():
        global _lock, _line
        _lock, _line = threading.Lock(), _Line()
    os.register_at_fork(after_in_child=_renew)
