# SPDX-License-Identifier: Apache-2.0
"""Random command lines of outputs and modes: all that a command names is written, or nothing is changed.

    command_lines.py --tdslc TDSLC [--seed N] [--count N] [--verbose]

Each command stands before a folder with files, links and folders at the places that it may name. What holds of every one, whatever it asks for:
it ends with 0 to 4 and says why; one that fails leaves the folder byte for byte as it was, and nothing beside; one that succeeds writes no place
that it does not name, each that it names (none with --stop-after), leaves links links and modes as they were; said again, it touches nothing.
"""
import argparse
import os
import random
import shutil
import stat
import subprocess
import sys
import tempfile

GOOD = "kernel f(A: f32[n, 3], B: f32[3, n]) -> (R: f32[n, n], s: f32) {\n    R[i, j] = A[i, k] * B[k, j];\n    s = sum[i, j](R[i, j]);\n}\n"
INPUTS = {
    "good.tdsl": GOOD + "kernel g(X: inout f64[4]) { X[i] += 1; }\n",
    "warns.tdsl": "dim unused;\n" + GOOD,
    "wrong.tdsl": GOOD.replace("B[k, j]", "B[k, k, j]"),
    "broken.tdsl": GOOD[:60],
    "includes.tdsl": 'include "good.tdsl";\nkernel h(X: f32[5]) -> (Y: f32[5]) { Y[i] = 2 * X[i]; }\n',
}
PLACES = ["a.c", "b.c", "new.c", "h.h", "d.d", "r.html", "p.json", "sub/x.c", "none/x.c", "sub", "link.c", "dangling.c", "round.c", "good.tdsl", "./a.c", "-"]
STAGES = "tokens ast checked graph path nest loop legal simplify fuse hoist factor tea".split()


def furnish(rng, folder):
    """Inputs, and files, links and folders of random modes at some of the places."""
    for name, text in INPUTS.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    os.mkdir(os.path.join(folder, "sub"))
    for name in ("a.c", "b.c", "h.h", "d.d", "target"):
        if rng.random() < 0.5:
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"old {name}\n")
            os.chmod(path, rng.choice((0o600, 0o640, 0o644, 0o755)))
    os.symlink("target", os.path.join(folder, "link.c"))
    os.symlink("sub/nowhere", os.path.join(folder, "dangling.c"))
    os.symlink("round.c", os.path.join(folder, "round.c"))


def command(rng):
    """Words, and the places that they name."""
    words, named = [], []
    if rng.random() < 0.75:
        words.append(rng.choices(list(INPUTS), (8, 3, 1, 1, 2))[0])
    else:
        words += ["-e", rng.choice(("ij,jk->ik", "ij,jk->ik", "i$,j")), "--shape=4x5", f"--shape=5x{rng.choice(('6', '?', 'y'))}"]

    def place(option):
        where = rng.choice(PLACES)
        words.extend(option(where))
        named.append(where)
    if rng.random() < 0.85:
        place(lambda p: ["-o", p])
    for chance, option in ((0.3, lambda p: [f"--header={p}"]), (0.2, lambda p: ["-MD", "-MF", p]), (0.15, lambda p: [f"--plan-out={p}"])):
        if rng.random() < chance:
            place(option)
    for chance, more in ((0.1, ["-MD"]), (0.15, [rng.choice(("--report", "--report=json", "--report=html", "--report=tea"))]),
                         (0.15, [f"--dump={rng.choice(STAGES)}"]), (0.15, [f"--emit={rng.choice(('c', 'path', 'dot', 'json', 'tea'))}"]),
                         (0.1, [f"--stop-after={rng.choice(STAGES)}"]), (0.2, ["-W", "error"]), (0.1, ["-w"]), (0.1, ["--check-each"]),
                         (0.1, ["--time"]), (0.1, ["-D", rng.choice(("n=4", "n=0", "n=-1", "q=2"))]), (0.1, [f"--target={rng.choice(('c', 'null', 'trn2'))}"]),
                         (0.03, ["--nothing"]), (0.03, ["more.tdsl"]), (0.05, ["--memory-limit=1"])):
        if rng.random() < chance:
            words += more
    return words, named


def snapshot(folder):
    found = {}
    for root, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(root, name)
            facts = os.lstat(path)
            kind = stat.S_IFMT(facts.st_mode)
            data = os.readlink(path) if stat.S_ISLNK(facts.st_mode) else None
            if stat.S_ISREG(facts.st_mode):
                with open(path, "rb") as file:
                    data = file.read()
            found[os.path.relpath(path, folder)] = (kind, stat.S_IMODE(facts.st_mode), data, (facts.st_ino, facts.st_mtime_ns) if data is not None else None)
    return found


def plain(found):
    """Without what only says whether a file was touched."""
    return {path: facts[:3] for path, facts in found.items()}


def allowed(folder, named):
    """The places that a command may write: those it names, what they lead to, and what stands beside by default."""
    places = set()
    for name in named:
        beside = name[:-2] if name.endswith(".c") else name
        for path in (name, beside + ".h", name + ".d"):
            places.add(os.path.relpath(os.path.realpath(os.path.join(folder, path)), os.path.realpath(folder)))
    return places


def check(tdslc, folder, words, named):
    """Why a command is wrong, or None; and its exit status."""
    before = snapshot(folder)
    done = subprocess.run([tdslc, *words], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    after = snapshot(folder)
    changed = {p for p in before.keys() | after.keys() if plain(before).get(p) != plain(after).get(p)}
    status = done.returncode
    if status not in (0, 1, 2, 3, 4):
        return f"ends with {status}: {done.stderr[-300:]!r}", status
    if status != 0:
        if not done.stderr:
            return "fails without a message", status
        return (f"ends with {status} and changed {sorted(changed)}" if before.keys() != after.keys() or changed else None), status
    folders = [p for p in named if p != "-" and os.path.isdir(os.path.join(folder, p))]
    odd = {p for p in changed - allowed(folder, named) if not any(p.startswith(os.path.normpath(f)) for f in folders)}
    if odd:
        return f"wrote {sorted(odd)}, which it does not name", status
    for name in named:
        path = os.path.join(folder, name)
        if name != "-" and not os.path.exists(path) and not any(w.startswith("--stop-after") for w in words):
            return f"did not write {name}", status
    for path, (kind, mode, _, _) in before.items():
        if path not in after or after[path][0] != kind or after[path][1] != mode:
            return f"{path} is of another kind or mode", status
    for name in INPUTS:
        if name not in named and before[name] != after[name]:
            return f"changed its input {name}", status
    if "--time" in words or "--emit=path" in words:   # these print seconds
        return None, status
    again = subprocess.run([tdslc, *words], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    if again.returncode != 0 or again.stdout != done.stdout or snapshot(folder) != after:
        return "does something else when it is said again", status
    return None, status


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdslc", required=True, type=os.path.abspath)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    failed, ends = 0, {}
    for seed in range(options.seed, options.seed + options.count):
        rng = random.Random(seed)
        folder = tempfile.mkdtemp(prefix="tdsl-lines-")
        try:
            furnish(rng, folder)
            words, named = command(rng)
            why, status = check(options.tdslc, folder, words, named)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        ends[status] = ends.get(status, 0) + 1
        if why is not None:
            failed += 1
        if why is not None or options.verbose:
            print(f"{'FAILED' if why else 'ok'} seed {seed}: tdslc {' '.join(words)}: {why or status}", flush=True)
    print(f"{options.count} command lines, exit status {dict(sorted(ends.items()))}, {failed} failed")
    return 1 if failed or ends.get(0, 0) * 8 < options.count else 0


if __name__ == "__main__":
    sys.exit(main())
