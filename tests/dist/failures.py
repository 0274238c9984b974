#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rank over MPI that fails, hangs, does not come or is killed ends the others within a limit, with a status or an ended job. No command here hangs.

usage: failures.py TDSLC TDSL-RUN-MPI FAILURES CC MPIRUN"""
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compiled import compiled
from mpi import environment, launch

PROGRAM = "kernel sum(x: f64[n] shard(n)) -> (s: f64) { s = sum[i](x[i]); }\n"


def timed(command, most, **options):
    begin = time.monotonic()
    done = subprocess.run(command, env=environment(), timeout=60, capture_output=True, text=True, **options)
    seconds = time.monotonic() - begin
    assert seconds < most, (command, seconds, done)
    return done


def library_calls(folder, tdslc, failures, cc, mpirun):
    """Statuses of tdsl_dist_call."""
    run = [*launch(mpirun, 3), failures, compiled(tdslc, cc, folder / "sum.tdsl")]
    done = timed([*run, "refuse"], 20)
    assert done.returncode == 0 and "rank" not in done.stdout, done
    for way in ("absent", "no-communicator"):
        done = timed([*run, way], 20)
        assert done.returncode != 0 and done.stdout.count("timeout") == 2 and "rank" not in done.stdout, (way, done)
    done = timed([*run, "killed"], 5)
    assert done.returncode != 0, done


def tool_calls(folder, over, mpirun):
    """tdsl-run-mpi, of which rank 1 waits for a file that nobody writes: as a rank that hangs."""
    os.mkfifo(folder / "nothing.npy")
    script = ('case ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} in 1) x=nothing.npy; echo $$ >pid.new; mv pid.new pid;; *) x=ones;; esac\n'
              f'exec "{over}" sum.tdsl -D n=10 x=$x -o s=s.npy "$@"\n')
    (folder / "rank.sh").write_text(script)
    run = [*launch(mpirun, 3), "sh", "rank.sh"]
    done = timed([*run, "--timeout=2"], 15, cwd=folder)
    assert done.returncode != 0 and "--timeout" in done.stderr and not (folder / "s.npy").exists(), done
    (folder / "pid").unlink(missing_ok=True)
    job = subprocess.Popen([str(word) for word in run], cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (folder / "pid").exists():
        assert job.poll() is None
        time.sleep(0.05)
    time.sleep(1)  # the others are in the call
    begin = time.monotonic()
    os.kill(int((folder / "pid").read_text()), signal.SIGKILL)
    status = job.wait(timeout=30)
    assert status != 0 and time.monotonic() - begin < 5 and not (folder / "s.npy").exists(), (status, time.monotonic() - begin)


def main():
    tdslc, over, failures, cc, mpirun = sys.argv[1:6]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "sum.tdsl").write_text(PROGRAM)
        library_calls(folder, tdslc, failures, cc, mpirun)
        tool_calls(folder, over, mpirun)
    print("no rank waits for one that is gone")


main()
