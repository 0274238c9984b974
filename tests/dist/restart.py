#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of slices: a run that is killed at random moments and goes on with another number of ranks ends in the same bits, and computes no leaf
again whose file is whole. Files that are damaged, and those of another program, other sizes or other arguments, are refused by name.

usage: restart.py TDSLC TDSL-RUN RESTART CC [--kills=N] [--seed=N]"""
import argparse
import random
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from compiled import compiled
from quick import share

RING = "A: c128[9, 13], B: c128[13, 4], C: c128[4, 9]"
PROGRAM = f"""
kernel ring({RING}) -> (t: c128) {{ t = A[i,j] * B[j,k] * C[k,i]; }}
kernel rows(A: c128[50, 3], B: c128[3, 4], C: c128[4, 5]) -> (R: c128[50, 5], N: c128[50, 5]) {{ R[i,l] = A[i,j] * B[j,k] * C[k,l]; N[i,l] = R[i,l] * R[i,l]; }}
kernel twice({RING}) -> (t: c128) {{ t = 2 * (A[i,j] * B[j,k] * C[k,i]); }}
"""
LEAVES = 9 * 13


def stamps(folder):
    """Of each whole leaf what changes when it is written again."""
    return {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in folder.glob("leaf-*.part")}


def run(a, library, ranks, folder, kernel="ring", seed=1):
    return subprocess.run([a.restart, library, kernel, str(ranks), folder, str(seed)], capture_output=True, text=True, timeout=100)


def kills(a, rng, library, scratch, bits, seconds):
    """Kills until so many have hit a run that was under way; each whole file stays as it is."""
    folder, hit, tries = scratch / "parts", 0, 0
    while hit < a.kills:
        tries += 1
        assert tries < 40 * a.kills, "the runs are over before they are killed"
        before = stamps(folder)
        if len(before) > LEAVES * 2 // 3:  # most is done: begin anew
            assert run(a, library, rng.randint(1, 8), folder).stdout.split()[2] == bits
            for p in folder.iterdir():
                p.unlink()
            before = {}
        child = subprocess.Popen([a.restart, library, "ring", str(rng.randint(1, 8)), folder, "1"], stdout=subprocess.PIPE, text=True)
        time.sleep(rng.random() * seconds)
        child.send_signal(signal.SIGKILL)
        out = child.communicate()[0]
        hit += child.returncode == -signal.SIGKILL
        assert child.returncode == -signal.SIGKILL or out.split()[2] == bits, out
        after = stamps(folder)
        assert all(after.get(name) == stamp for name, stamp in before.items()), "a leaf was computed again whose file was whole"
    whole = stamps(folder)
    done = run(a, library, 5, folder)
    found, computed, got = done.stdout.split()
    assert (int(found), int(computed), got) == (len(whole), LEAVES - len(whole), bits), done
    assert all(stamps(folder)[name] == stamp for name, stamp in whole.items())


def refused(done, *texts):
    assert done.returncode in (1, 3) and all(text in done.stdout + done.stderr for text in texts), done


def damage(a, rng, library, folder, bits):
    """Any byte, and any length, is noticed; what is refused is whole again when the file is."""
    names = sorted(p.name for p in folder.glob("leaf-*.part"))
    for k in range(12):
        path = folder / rng.choice(names)
        good = bytearray(path.read_bytes())
        bad = bytearray(good)
        if k % 3 == 0:
            bad = bad[:rng.randrange(len(bad))]
        elif k % 3 == 1:
            bad += b"\0" * rng.choice([1, 8, 4096])
        else:
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        path.write_bytes(bad)
        refused(run(a, library, rng.randint(1, 8), folder), f"'{path}'", ":")
        path.unlink()
        assert run(a, library, rng.randint(1, 8), folder).stdout.split() == [str(LEAVES - 1), "1", bits]
        assert path.read_bytes() == good, "a leaf is the same file whoever computes it"
    one, other = folder / names[0], folder / names[1]
    keep = other.read_bytes()
    other.write_bytes(one.read_bytes())
    refused(run(a, library, 3, folder), f"'{other}'", "is another leaf than its name says")
    other.write_bytes(keep)
    (folder / "leaf-0-0.part.17.0.unfinished").write_bytes(b"half")  # of a run that was killed
    (folder / "leaf-1.part").mkdir()
    assert run(a, library, 3, folder).stdout.split() == [str(LEAVES), "0", bits]


def owned(a, library, folder):
    """Leaves of a label that results have own their parts, which a run with other ranks finds."""
    once = run(a, library, 1, folder, "rows").stdout.split()
    assert once[:2] == ["0", "50"], once
    for ranks in (3, 8):
        for path in sorted(folder.glob("leaf-*.part"))[5 * ranks:]:
            path.unlink()
        assert run(a, library, ranks, folder, "rows").stdout.split() == [str(5 * ranks), str(50 - 5 * ranks), once[2]]


def foreign(a, library, folder):
    refused(run(a, library, 3, folder, seed=2), f"'{folder}/leaf-", "was computed from other arguments")
    refused(run(a, library, 3, folder, kernel="twice"), f"'{folder}/leaf-", "is of another program or plan")
    other = folder.parent / "open.tdsl"
    other.write_text("kernel open(A: f64[n, n], B: f64[n, n], C: f64[n, n]) -> (t: f64) { t = A[i,j] * B[j,k] * C[k,i]; }\n")
    for n in (6, 7):
        for name in "ABC":
            subprocess.run([a.run, "-e", "ij->ij", f"--shape={n}x{n}", "--dtype=f64", f"random:{ord(name)}", "-o", folder.parent / f"{name}{n}.npy"], check=True, stdout=subprocess.DEVNULL)
    arrays = lambda n: [f"{name}={folder.parent}/{name}{n}.npy" for name in "ABC"]
    call = [a.run, other, "-w", "--memory-limit=20", "--ranks=3", f"--checkpoint={folder.parent}/open"]
    tool = lambda *more: subprocess.run([*call, *more], capture_output=True, text=True, timeout=100)
    first = tool(*arrays(6))
    assert first.returncode == 0 and "0 leaves found" in first.stderr, first
    again = tool("--ranks=2", *arrays(6))
    assert again.stdout == first.stdout and " 0 computed" in again.stderr, again
    refused(tool(*arrays(7)), "is of other sizes", f"'{folder.parent}/open/leaf-")
    refused(tool(*arrays(6), f"--checkpoint={other}"), "cannot read", str(other))
    refused(tool(*arrays(6), f"--checkpoint={folder.parent}/no/where"), "cannot make")
    assert tool(*arrays(6), "--time").returncode == 2


def main():
    parser = argparse.ArgumentParser()
    for name in ("tdslc", "run", "restart", "cc"):
        parser.add_argument(name)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    a = parser.parse_args()
    a.kills = len(share(range(a.kills), 4))
    print("seed", a.seed)
    rng = random.Random(a.seed)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        (scratch / "net.tdsl").write_text(PROGRAM)
        library = compiled(a.tdslc, a.cc, scratch / "net.tdsl", "--memory-limit=4", "--ranks=2")
        begin = time.time()
        done = run(a, library, 1, scratch / "once")
        seconds = time.time() - begin
        found, computed, bits = done.stdout.split()
        assert (found, computed) == ("0", str(LEAVES)), done
        kills(a, rng, library, scratch, bits, seconds)
        damage(a, rng, library, scratch / "parts", bits)
        foreign(a, library, scratch / "parts")
        owned(a, library, scratch / "rows")
    print(f"{a.kills} kills: the same bits")


main()
