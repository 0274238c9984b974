# SPDX-License-Identifier: Apache-2.0
"""Files of a folder that call each other in a circle can only be read together, so a circle has at most MOST files. Read from the
objects of the compiler's libraries."""
import argparse
import collections
import glob
import os
import subprocess
import sys

MOST = 6


def calls_of(library):
    """For each object of the library, the objects that define what it lacks."""
    defines, lacks = {}, collections.defaultdict(set)
    member, seen = None, collections.Counter()
    done = subprocess.run(["nm", "-A", "-P", library], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        where, name, kind = line.split()[:3]
        if where != member:  # rooms of a folder may have files of one name
            member = where
            seen[where] += 1
        file = where[where.rindex("[") + 1:where.rindex("]")] + "'" * (seen[where] - 1)
        if kind == "U":
            lacks[file].add(name)
        elif kind in "TDRB":
            defines[name] = file
    return {file: {defines[n] for n in names if n in defines} - {file} for file, names in lacks.items()}


def circles_of(calls):
    """Strongly connected components with more than one file (Tarjan), the largest first."""
    index, low, stack, found = {}, {}, [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in calls.get(v, ()):
            if w not in index:
                visit(w)
            if w in stack:
                low[v] = min(low[v], low[w])
        if low[v] == index[v]:
            at = stack.index(v)
            found.append(sorted(stack[at:]))
            del stack[at:]

    for v in calls:
        if v not in index:
            visit(v)
    return sorted((c for c in found if len(c) > 1), key=len, reverse=True)


def self_test():
    circles = circles_of({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}})
    assert circles == [["b", "c"]], circles


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--libraries", required=True, help="the folder of libtdsl_*.a")
    parser.add_argument("--list", action="store_true", help="print all circles")
    a = parser.parse_args()
    self_test()
    sys.setrecursionlimit(10000)
    breaches = n = 0
    for library in sorted(glob.glob(os.path.join(a.libraries, "libtdsl_*.a"))):
        folder = os.path.basename(library)[len("libtdsl_"):-len(".a")]
        n += 1
        for circle in circles_of(calls_of(library)):
            files = " ".join(f.replace(".c.o", "") for f in circle)
            if a.list:
                print(f"{folder}: {len(circle)}: {files}")
            if len(circle) > MOST:
                breaches += 1
                print(f"{folder}: {len(circle)} files call each other in a circle, at most {MOST}: {files}")
    print(f"{n} libraries, {breaches} breaches")
    return 1 if breaches or n == 0 else 0


sys.exit(main())
