# SPDX-License-Identifier: Apache-2.0
"""packages.py --build BUILD --tree TOP --work FOLDER: what cpack makes, by component too; what lintian says of it (where it is installed); that the
same tree gives the same bytes; the library's name and functions; uninstall."""
import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE / "../support"))
import steps  # noqa: E402
from steps import expect  # noqa: E402


def packed(a, name):
    """The packages, made in a folder of their own."""
    folder = a.work / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    env = dict(os.environ, SOURCE_DATE_EPOCH="1700000000")
    steps.run("cpack", ["cpack", "-B", folder, "--config", a.build / "CPackConfig.cmake"], cwd=a.build, env=env)
    return {path.name: path for path in folder.iterdir() if path.is_file()}


def works(prefix, work):
    """The tools of an unpacked package do their job, with its runtime."""
    kernel = work / "k.tdsl"
    kernel.write_text("kernel f(x: f64[n]) -> (y: f64[n]) { y[i] = 2 * x[i]; }\n", encoding="utf-8")
    printed = steps.run("tdsl-run", [prefix / "bin/tdsl-run", kernel, "-Dn=3", "x=ones", "--checksum"])
    expect("tdsl-run of the package", "sum=6" in printed, True)
    steps.run("tdslc", [prefix / "bin/tdslc", kernel, "-o", work / "k.c"])


def deb(a, path):
    lintian = shutil.which("lintian")
    if lintian:
        said = subprocess.run([lintian, "--allow-root", path], capture_output=True, text=True, check=False).stdout
        tags = [line for line in said.splitlines() if line[:2] in ("E:", "W:")]
        expect("lintian", tags, [])
    else:
        print("skipped: no lintian")
    top = a.work / "unpacked"
    shutil.rmtree(top, ignore_errors=True)
    steps.run("dpkg-deb", ["dpkg-deb", "-x", path, top])
    works(top / "usr", a.work)
    doc = top / "usr/share/doc/tdsl"
    for name in ("copyright", "changelog.gz", "changelog.Debian.gz", "docs/using.md"):
        expect(f"the package has {name}", (doc / name).exists(), True)
    library = top / "usr/lib/libtdsl.so"
    expect("SONAME", [word for word in steps.run("readelf", ["readelf", "-d", library]).split() if word.startswith("[libtdsl")], ["[libtdsl.so.0]"])
    listed = steps.run("nm", ["nm", "-D", "--defined-only", library]).split()[2::3]
    kept = (HERE / "symbols.txt").read_text(encoding="utf-8").split()
    expect("functions that programs are linked to (a new one: into symbols.txt; none may go without another SONAME)", sorted(listed), kept)


def tar(a, path):
    top = a.work / "untarred"
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    steps.run("tar", ["tar", "-xf", path, "-C", top, "--strip-components=1"])
    works(top, a.work)
    expect("the licence is in the tar.gz", (top / "share/doc/tdsl/LICENSE").exists(), True)


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())


def components(a):
    def installed(*names):
        prefix = a.work / "components"
        shutil.rmtree(prefix, ignore_errors=True)
        for name in names:
            steps.run("install", ["cmake", "--install", a.build, "--prefix", prefix, "--component", name])
        return files_below(prefix)
    expect("component runtime", [name for name in installed("runtime") if "so" in name], ["lib/libtdsl.so.0", "lib/libtdsl.so.0.1.0"])
    headers = installed("headers")
    expect("component headers", {"include/tdsl/abi.h", "include/tdsl/tdsl.h", "lib/libtdsl.a", "lib/libtdsl.so", "lib/pkgconfig/tdsl.pc"} - set(headers), set())
    expect("component tool", {"bin/tdslc", "bin/tdsl-run", "share/tdsl/nki_emulator/run.py", "share/cmake/Tdsl/TdslConfig.cmake"} - set(installed("tool")), set())
    whole = a.work / "whole"
    shutil.rmtree(whole, ignore_errors=True)
    steps.run("install", ["cmake", "--install", a.build, "--prefix", whole])
    expect("all components are all", installed("tool", "runtime", "headers", "doc"), files_below(whole))


def uninstall(a):
    """What was installed last goes, whole or in components; what others installed, elsewhere or in its place, stays."""
    prefix, other = a.work / "gone", a.work / "other"
    for folder in (prefix, other, a.work / "part", a.work / "again"):
        shutil.rmtree(folder, ignore_errors=True)
    steps.run("another place", ["cmake", "--install", a.build, "--prefix", prefix], env=dict(os.environ, DESTDIR=str(other)))
    steps.run("another component", ["cmake", "--install", a.build, "--prefix", a.work / "part", "--component", "runtime"])
    steps.run("a component", ["cmake", "--install", a.build, "--prefix", prefix, "--component", "tool"])
    steps.run("install", ["cmake", "--install", a.build, "--prefix", prefix])
    staged, part = files_below(other), files_below(a.work / "part")
    (prefix / "share/theirs").write_text("not ours\n", encoding="utf-8")
    (prefix / "bin/tdslc").write_text("a newer one\n", encoding="utf-8")
    build = a.work / "build"  # stands in for this one, where another test may install now
    (build / "installed").mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(str(prefix).encode()).hexdigest()[:16]
    shutil.copy(a.build / f"installed/{name}.txt", build / "installed")
    (build / "installed/last.txt").write_text(name, encoding="utf-8")
    script = ["cmake", f"-DBUILD={build}", "-P", a.tree / "compiler/cmake/uninstall.cmake"]
    steps.run("uninstall", script)
    expect("what uninstall leaves", files_below(prefix), ["bin/tdslc", "share/theirs"])
    expect("other places", [files_below(other), files_below(a.work / "part")], [staged, part])
    expect("and no folder of ours", [path.name for path in prefix.rglob("*") if path.is_dir() and "dsl" in path.name], [])
    steps.run("of one prefix", ["cmake", f"-DBUILD={a.build}", f"-DPREFIX={a.work / 'part'}", *script[2:]])
    expect("what is left of it", files_below(a.work / "part"), [])
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    expect("again", done.returncode != 0 and "nothing was installed" in done.stderr, True)


def main():
    p = argparse.ArgumentParser()
    for name in ("--build", "--tree", "--work"):
        p.add_argument(name, type=pathlib.Path, required=True)
    a = p.parse_args()
    a.build, a.tree = a.build.resolve(), a.tree.resolve()
    a.work.mkdir(parents=True, exist_ok=True)
    if not shutil.which("dpkg-deb"):
        print("skipped: no dpkg-deb")
        sys.exit(77)
    first, second = packed(a, "first"), packed(a, "second")
    expect("packages", sorted(name.split(".")[-1] for name in first), ["deb", "gz"])
    for name, path in sorted(first.items()):
        expect(f"{name} twice is the same bytes", path.read_bytes() == second[name].read_bytes(), True)
        deb(a, path) if name.endswith(".deb") else tar(a, path)
    components(a)
    uninstall(a)


main()
