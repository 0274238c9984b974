# SPDX-License-Identifier: Apache-2.0
"""No external name of the compiler is defined twice, in one library or in two: siblings are linked together only in the
tools, where such a clash would otherwise surface last."""
import glob
import os
import subprocess
import tree


def main():
    a = tree.arguments()
    home = {}
    found = []
    for library in sorted(glob.glob(os.path.join(os.path.dirname(a.generated), "compiler", "libtdsl_*.a"))):
        listing = subprocess.run(["nm", "-A", "--defined-only", library], capture_output=True, text=True).stdout
        for line in listing.splitlines():
            place, _, rest = line.rpartition(":")
            kind, name = rest.split()[1:3]
            if kind not in "TDBR" or name.startswith("__"):
                continue
            place = ":".join(os.path.basename(p) for p in place.split(":"))
            if name in home:
                found.append(f"{name}: in {home[name]} and in {place}")
            home[name] = place
    tree.verdict(found, len(home))


main()
