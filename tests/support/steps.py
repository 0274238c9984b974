# SPDX-License-Identifier: Apache-2.0
"""Compilers and programs that a test starts: where one fails, the test says which step ended how and what it printed."""
import shlex
import signal
import subprocess


def ending(status):
    """A return code as subprocess gives it, in words."""
    number = -status if status < 0 else status - 128 if 128 < status < 160 else 0
    if number:
        return f"ended by signal {number} ({signal.strsignal(number)})"
    return f"ended with exit status {status}"


def report(step, command, done):
    printed = "".join(text if isinstance(text, str) else text.decode("utf-8", "replace") for text in (done.stdout, done.stderr) if text)
    return f"{step}: {shlex.join(map(str, command))}\n{ending(done.returncode)}\n{printed or 'and printed nothing'}"


def run(step, command, timeout=300, **options):
    """What it prints; the test ends with a message where it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=timeout, **options)
    if done.returncode != 0:
        raise SystemExit(report(step, command, done))
    return done.stdout


def expect(what, got, want):
    """One line where they are equal; else the test ends with both."""
    if got != want:
        raise SystemExit(f"{what}:\n{got}\nexpected:\n{want}")
    print(f"ok: {what}")
