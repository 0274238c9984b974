# SPDX-License-Identifier: Apache-2.0
"""reproducible.py --tree TOP --work FOLDER --cc CC: the tools and the runtime, built in two folders without a compiler cache, are the same bytes; and they
know neither folder."""
import argparse
import hashlib
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "../support"))
import steps  # noqa: E402

FILES = ["bin/tdslc", "bin/tdsl-run", "runtime/libtdsl.a", "runtime/libtdsl.so"]


def built(tree, folder, generator, cc):
    shutil.rmtree(folder, ignore_errors=True)
    source = folder / "source"
    for part in ("CMakeLists.txt", "LICENSE", "README.md", "compiler", "runtime", "grammar", "docs"):
        copy = shutil.copytree if (tree / part).is_dir() else shutil.copy
        (folder / "source").mkdir(parents=True, exist_ok=True)
        copy(tree / part, source / part)
    made = folder / "made"
    steps.run("configure", ["cmake", "-S", source, "-B", made, "-G", generator, "-DCMAKE_BUILD_TYPE=Release", "-DTDSL_TESTS=OFF",
                            f"-DCMAKE_C_COMPILER={cc}", "-DCMAKE_C_FLAGS_RELEASE=-O1", "-DCMAKE_C_COMPILER_LAUNCHER="])
    steps.run("build", ["cmake", "--build", made, "-j2", "--target", "tools"], timeout=900)
    found = {}
    for name in FILES:
        data = (made / name).read_bytes()
        if str(folder).encode() in data:
            sys.exit(f"{name} names the folder that it was built in")
        found[name] = hashlib.sha256(data).hexdigest()
    return found


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tree", type=pathlib.Path, required=True)
    p.add_argument("--work", type=pathlib.Path, required=True)
    p.add_argument("--cc", default="cc")
    a = p.parse_args()
    generator = "Ninja" if shutil.which("ninja") else "Unix Makefiles"
    first, second = (built(a.tree, a.work / name, generator, a.cc) for name in ("one", "another folder/below"))
    for name in FILES:
        if first[name] != second[name]:
            sys.exit(f"{name} differs: {a.work}")
        print(f"ok: {name} {first[name][:16]} twice")
    shutil.rmtree(a.work)


main()
