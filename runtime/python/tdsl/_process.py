# SPDX-License-Identifier: Apache-2.0
"""Runs a program to its end, or to the user's interrupt, after which nothing of it is left."""
import os
import signal

from ._errors import CompileError, Error


def _end(process):
    """Ends a process and those it started: they have a session of their own."""
    import subprocess
    for number in signal.SIGTERM, signal.SIGKILL:
        try:
            os.killpg(process.pid, number)
        except OSError:
            pass
        try:
            process.wait(1)
            break
        except subprocess.TimeoutExpired:
            continue
    process.wait()
    for pipe in process.stdin, process.stdout, process.stderr:
        if pipe is not None:
            pipe.close()


_TICK = 0.5  # seconds


def _wait(process, given, tick, every):
    """What the program prints; `tick` is called now and then."""
    import subprocess
    if tick is None:
        return process.communicate(given)
    while True:
        try:
            return process.communicate(given, timeout=every)
        except subprocess.TimeoutExpired:
            given = None
            tick()


def run(command, text=None, env=None, keeps_best=False, tick=None, every=_TICK, cwd=None):
    """(exit status, standard output, standard error as text, whether the user interrupted). tick: what is called while it runs, every so many
    seconds; what it raises ends the program.

    The program has a session of its own, so a Ctrl-C reaches this process alone. It ends the program, and KeyboardInterrupt goes on;
    with `keeps_best` the program is told once, and gives the best that it has so far.
    """
    import subprocess
    try:
        given = None if text is None else text.encode()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL if text is None else subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=env, cwd=cwd, start_new_session=True)
    except ValueError as error:  # a NUL, half of a surrogate pair
        raise CompileError(f"a text that no program can be given: {error}") from None
    except OSError as error:
        raise Error(f"{command[0]} cannot be run: {error.strerror}") from None
    interrupted = False
    try:
        try:
            out, err = _wait(process, given, tick, every)
        except KeyboardInterrupt:
            if not keeps_best:
                raise
            interrupted = True
            process.send_signal(signal.SIGINT)
            out, err = process.communicate()
            if process.returncode == -signal.SIGINT:  # there was nothing yet
                raise
    except BaseException:
        _end(process)
        raise
    return process.returncode, out, err.decode(errors="replace"), interrupted
