# SPDX-License-Identifier: Apache-2.0
"""A project outside the tree uses TDSL: found as an installed package on both generators, or below it with
add_subdirectory. What a rebuild does is counted: a tool that stands before tdslc notes each of its runs, and the
times of the object files tell what was compiled. `options`: with which flags kernels are compiled; `cross`: a project for
another machine."""
import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
import steps  # noqa: E402
from steps import expect  # noqa: E402
WRAPPER = """#!/bin/sh
echo "$*" >>'{log}'
exec '{tdslc}' "$@"
"""


def run(*argv, env=None, cwd=None):
    r = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, cwd=cwd)
    if r.returncode != 0:
        sys.exit(steps.report("package", argv, r))
    return r.stdout


HAS_RUNTIME = 'file(GENERATE OUTPUT has_runtime CONTENT "$<TARGET_EXISTS:Tdsl::runtime>")'


class Project:
    """A copy of the example project, and what its last build did."""

    def __init__(self, work, generator, cc, options, tdslc=None, targets=(), links=None):
        self.source = os.path.join(work, "source")
        self.build_dir = os.path.join(work, "build")
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(os.path.join(HERE, "project"), self.source)
        for name in os.listdir(links) if links else ():
            if not name.startswith((".", "build")):
                os.symlink(os.path.join(links, name), os.path.join(work, name))
        self.log = os.path.join(work, "runs")
        self.counts = bool(tdslc)
        self.targets = ["--target", *targets] if targets else []
        self.shared = any("TDSL_SHARED" in o for o in options)
        if tdslc:
            wrapper = os.path.join(work, "tdslc")
            with open(wrapper, "w") as f:
                f.write(WRAPPER.format(log=self.log, tdslc=tdslc))
            os.chmod(wrapper, 0o755)
            options = [*options, f"-DTDSLC_EXECUTABLE={wrapper}"]
        self.configure("-G", generator, f"-DCMAKE_C_COMPILER={cc}", "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror",
                       "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *options)

    def configure(self, *options):
        run("cmake", "-S", self.source, "-B", self.build_dir, *options)

    def optimisation(self, file):
        """The option that decides how a file is optimised."""
        with open(os.path.join(self.build_dir, "compile_commands.json")) as f:
            command = next(c["command"] for c in json.load(f) if c["file"].endswith("/" + file))
        return ([""] + [word for word in shlex.split(command) if word.startswith("-O")])[-1]

    def objects(self):
        found = {}
        for folder, _, names in os.walk(self.build_dir):
            for name in names:
                path = os.path.join(folder, name)
                # objects of TDSL itself, where the project has it as a subdirectory, do not count
                if name.endswith(".o") and "/tdsl/" not in path[len(self.build_dir):]:
                    name += " of the shared runtime" if "use_device_shared" in path else ""
                    found[name] = os.stat(path).st_mtime_ns
        return found

    def build(self):
        """(sources the tool was run for, objects compiled), both sorted."""
        before = self.objects()
        open(self.log, "w").close()
        run("cmake", "--build", self.build_dir, "-j2", *self.targets)
        with open(self.log) as f:
            ran = sorted(os.path.basename(w) for line in f for w in line.split() if w.endswith(".tdsl"))
        after = self.objects()
        return ran, sorted(n for n in after if after[n] != before.get(n))

    def has_runtime(self):
        with open(os.path.join(self.build_dir, "has_runtime")) as f:
            return f.read()

    def edit(self, path, old=None, new=None):
        time.sleep(1.1)  # make compares whole seconds on some file systems
        path = os.path.join(self.source, path)
        with open(path) as f:
            text = f.read()
        if old is not None:
            assert old in text
            text = text.replace(old, new)
        with open(path, "w") as f:
            f.write(text)

    def outputs(self):
        return [run(os.path.join(self.build_dir, p)).strip() for p in ("use_vectors", "use_fixed")]


def rebuilds(p):
    every = ["device.tdsl", "device.tdsl", "fixed.tdsl", "norms.tdsl", "prefixed.tdsl", "prefixed.tdsl", "vectors.tdsl"]
    objects = ["device.c.o", "device_trn2.c.o", "fixed.c.o", "norms.c.o", "prefixed.c.o", "prefixed_trn2.c.o",
               "use_device.c.o", "use_fixed.c.o", "use_prefixed.c.o",
               "use_vectors.c.o", "vectors.c.o"]
    if p.shared:
        objects.append("use_device.c.o of the shared runtime")
    expect("first build", p.build(), (every, sorted(objects)))
    expect("results", p.outputs(), ["56", "10"])
    expect("nothing changed", p.build(), ([], []))
    p.edit("tensors/constants.tdsl")
    expect("the include was touched", p.build(), (["vectors.tdsl"], []))
    expect("nothing changed since", p.build(), ([], []))
    p.edit("tensors/constants.tdsl", "2.0", "3.0")
    ran, compiled = p.build()
    # The header holds the digest of the program, so its consumer is compiled too where that changed.
    expect("the include was changed: runs", ran, ["vectors.tdsl"])
    expect("the include was changed: compiled", [n for n in compiled if n != "use_vectors.c.o"], ["vectors.c.o"])
    expect("new results", p.outputs(), ["126", "10"])
    expect("nothing changed at last", p.build(), ([], []))
    p.edit("norms.tdsl", "X[i] * X[i]", "2 * X[i] * X[i]")
    ran, compiled = p.build()
    expect("one source was changed: runs", ran, ["norms.tdsl"])
    expect("one source was changed: compiled", [n for n in compiled if n != "use_vectors.c.o"], ["norms.c.o"])
    run("cmake", "--build", p.build_dir, "--target", "clean")
    expect("after clean", p.build(), (every, sorted(objects)))
    expect("results after clean", p.outputs(), ["252", "10"])


def terms(p):
    """Every generated file that can say so says that its terms are the user's own, and none that they are TDSL's."""
    said, count = "terms of use are yours: TDSL's licence asks nothing of generated files.", 0
    for folder, _, names in os.walk(p.build_dir):
        for name in names:
            if ".tdsl" in os.path.basename(folder) + os.path.basename(os.path.dirname(folder)) and name.endswith((".c", ".h", ".py")):
                with open(os.path.join(folder, name)) as f:
                    text = f.read()
                if text[:1500].count(said) != 1 or "SPDX" in text or "Apache" in text:
                    expect("terms of " + name, text[:1500], said)
                count += 1
    expect("generated files whose terms were read", count, 21)


def broken_source_leaves_nothing(p):
    p.edit("fixed.tdsl", "sum[i](X[i])", "sum[i](X[")
    r = subprocess.run(["cmake", "--build", p.build_dir], capture_output=True, text=True)
    expect("a broken source fails the build", r.returncode != 0, True)
    expect("its message names the file", "fixed.tdsl:" in r.stdout + r.stderr, True)
    p.edit("fixed.tdsl", "sum[i](X[", "sum[i](X[i])")
    p.build()
    expect("mended", p.outputs()[1], "10")


def tuned(p):
    """A plan is made when it is asked for, taken by the next build, and refused once its source is another one."""
    plan = os.path.join(p.source, "plans", "fixed.nest")
    expect("no build tunes", os.path.exists(plan), False)
    run("cmake", "--build", p.build_dir, "--target", "fixed_tune")
    expect("a plan", os.path.exists(plan), True)
    expect("the plan is taken", p.build()[0], ["fixed.tdsl"])
    with open(p.log) as f:
        expect("as a nest", f"--nest={plan}" in f.read(), True)
    expect("results with a plan", p.outputs()[1], "10")
    expect("nothing changed with a plan", p.build(), ([], []))
    p.edit("fixed.tdsl", "sum[i](X[i])", "max[i](X[i])")
    r = subprocess.run(["cmake", "--build", p.build_dir], capture_output=True, text=True)
    expect("a stale plan fails the build", r.returncode != 0 and "another program" in r.stdout + r.stderr, True)
    p.edit("fixed.tdsl", "max[i](X[i])", "sum[i](X[i])")
    os.unlink(plan)
    p.build()
    expect("results without", p.outputs()[1], "10")


def device(p, a):
    """The kernels of device.tdsl in their two forms: in C, in the emulator, and, once the NEFFs are made by a stand-in for the
    Neuron tools, on the stub of libnrt."""
    stub = os.path.join(a.build, "tests", "stub_nrt")
    with open(os.path.join(p.build_dir, "emulator.txt")) as f:
        emulator = f.read()

    def result(program="use_device", **environment):
        env = {k: v for k, v in os.environ.items() if not k.startswith("TDSL_")}
        return run(os.path.join(p.build_dir, program), env=dict(env, TDSL_PYTHON=sys.executable, **environment)).strip()
    number = result(TDSL_BACKEND="c").split()[0]
    expect("in C", result(), f"{number} on c")
    expect("in the emulator", result(TDSL_BACKEND="emulator", TDSL_NKI_EMULATOR=emulator), f"{number} on emulator")
    if p.shared:
        expect("in the emulator that the library finds by itself", result("use_device_shared", TDSL_BACKEND="emulator"),
               f"{number} on emulator")
    expect("two kernels of one name, by a prefix", result("use_prefixed", TDSL_BACKEND="c"), "10 20 20 on c")
    expect("the prefixed one in the emulator", result("use_prefixed", TDSL_BACKEND="emulator", TDSL_NKI_EMULATOR=emulator),
           "10 20 20 on emulator")
    tools = os.path.join(a.tree, "tests", "runtime", "fake_neuron")
    run("cmake", "--build", p.build_dir, "--target", "device_neff",
        env=dict(os.environ, PYTHONPATH=tools, FAKE_EMULATOR=emulator, PYTHONDONTWRITEBYTECODE="1",
                 FAKE_MAKE_NEFF=os.path.join(stub, "make_stub_neff")))
    if p.counts:
        expect("with the NEFFs: runs, compiled", p.build(), ([], ["device_trn2.c.o"]))
        expect("nothing changed with the NEFFs", p.build(), ([], []))
    else:
        p.build()
    nrt = os.path.join(stub, "libnrt.so.1")
    expect("on the stub of libnrt", result(TDSL_BACKEND="nki", TDSL_NRT_LIBRARY=nrt), f"{number} on nki")
    expect("too little work for it", result(TDSL_NRT_LIBRARY=nrt), f"{number} on c")
    expect("one flop too little", result(TDSL_NRT_LIBRARY=nrt, TDSL_MIN_NKI_FLOPS="241"), f"{number} on c")
    expect("enough work for it", result(TDSL_NRT_LIBRARY=nrt, TDSL_MIN_NKI_FLOPS="240"), f"{number} on nki")


def installed_emulator(prefix):
    """The installed tdsl-run takes the installed emulator, not the source tree's."""
    script = os.path.join(prefix, "share", "tdsl", "nki_emulator", "run.py")
    command = [os.path.join(prefix, "bin", "tdsl-run"), "--target=emulator", "-e", "ij,jk->ik", "--dtype=f32",
               "--shape=3x4", "--shape=4x2", "fill", "fill", "--checksum"]
    env = {k: v for k, v in os.environ.items() if not k.startswith("TDSL_")}
    expect("the installed emulator runs", "sum=" in run(*command, env=env), True)
    with open(script) as f:
        text = f.read()
    with open(script, "w") as f:
        f.write("import sys\nsys.exit('this is the installed one')\n")
    r = subprocess.run(command, env=env, capture_output=True, text=True)
    expect("and no other", "this is the installed one" in r.stderr, True)
    with open(script, "w") as f:
        f.write(text)


def kernel_options(prefix, work, a):
    """Kernels are optimised where nothing is said of it; what is said, and where ever, wins."""
    own = "set(CMAKE_C_FLAGS ${CMAKE_C_FLAGS}\\ -O1)"
    p = Project(os.path.join(work, "options"), a.generator, a.cc, [f"-DCMAKE_PREFIX_PATH={prefix}", "-DTDSL_VECTORS_ONLY=ON"])
    for name, want, options in [
            ("nothing said", "-O2", []),
            ("a build type", "-O3", ["-DCMAKE_BUILD_TYPE=Release"]),
            ("a build type without", "", ["-DCMAKE_BUILD_TYPE=Debug"]),
            ("flags", "-O1", ["-DCMAKE_C_FLAGS=-g -O1"]),
            ("other flags", "-O2", ["-DCMAKE_C_FLAGS=-g -Wno-O"]),
            ("flags set before", "-O1", ["-DTDSL_BEFORE=" + own]),
            ("flags set after", "-O1", ["-DTDSL_AFTER=" + own]),
            ("options of the folder", "-O3", ["-DTDSL_BEFORE=add_compile_options(-O3)"]),
            ("options of the library", "-Os", ["-DTDSL_AFTER=target_compile_options(vectors PRIVATE -Os)"])]:
        p.configure("-DCMAKE_BUILD_TYPE=", "-DCMAKE_C_FLAGS=", "-DTDSL_BEFORE=", "-DTDSL_AFTER=", *options)
        expect(f"kernels are compiled with, {name}", p.optimisation("vectors.c"), want)
    for size, want in [(4, "0"), (8, "1")]:  # of this machine's 64 bits
        p.configure(f"-DTDSL_BEFORE=set(CMAKE_SIZEOF_VOID_P {size})", f"-DTDSL_AFTER={HAS_RUNTIME}")
        expect(f"the runtime is there for pointers of {size} bytes", p.has_runtime(), want)


def cross(prefix, work, a):
    """Kernels for another machine, made by the tools of this one."""
    if not (shutil.which("aarch64-linux-gnu-gcc") and shutil.which("qemu-aarch64")):
        print("skipped: no aarch64-linux-gnu-gcc, or no qemu-aarch64")
        sys.exit(77)
    os.makedirs(work, exist_ok=True)
    toolchain = os.path.join(work, "aarch64.cmake")
    with open(toolchain, "w") as f:
        f.write("set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_PROCESSOR aarch64)\nset(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)\n"
                "set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)\nset(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)\n")
    p = Project(os.path.join(work, "project"), a.generator, "aarch64-linux-gnu-gcc",
                [f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", f"-DCMAKE_PREFIX_PATH={prefix}", "-DTDSL_VECTORS_ONLY=ON",
                 f"-DTDSL_AFTER={HAS_RUNTIME}"])
    expect("the runtime of this machine is not there", p.has_runtime(), "0")
    p.build()
    p.configure(f"-DTDSL_AFTER=add_subdirectory({a.tree}/runtime tdsl EXCLUDE_FROM_ALL)")
    p.targets = ["--target", "tdsl_runtime"]
    p.build()  # the runtime for the other machine, from its sources
    program = os.path.join(p.build_dir, "use_vectors")
    with open(program, "rb") as f:
        expect("machine of the program (183: aarch64)", int.from_bytes(f.read(20)[18:], "little"), 183)
    expect("results under qemu", run("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", program).strip(), "56")


def pkg_config(prefix, work, cc):
    libdir = next(d for d, _, names in os.walk(prefix) if "tdsl.pc" in names)
    env = dict(os.environ, PKG_CONFIG_PATH=libdir)

    def ask(*options):
        return shlex.split(run("pkg-config", *options, "tdsl", env=env))
    tdslc = ask("--variable=tdslc")[0]
    expect("pkg-config finds tdslc", os.access(tdslc, os.X_OK), True)
    expect("pkg-config finds the emulator", os.access(ask("--variable=nki_emulator")[0], os.R_OK), True)
    project = os.path.join(HERE, "project")
    run(tdslc, os.path.join(project, "fixed.tdsl"), "-D", "n=4", "-o", os.path.join(work, "fixed.c"))
    program = os.path.join(work, "use_fixed")
    run(cc, "-o", program, os.path.join(project, "use_fixed.c"), os.path.join(work, "fixed.c"), f"-I{work}",
        *ask("--cflags"), *ask("--static", "--libs"), "-lm",
        "-Wl,-rpath," + ask("--variable=libdir")[0])
    expect("a program built with pkg-config", run(program).strip(), "10")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("mode", choices=["installed", "subdirectory", "options", "cross"])
    p.add_argument("--generator", default="Ninja")
    p.add_argument("--build", required=True, help="build folder of TDSL")
    p.add_argument("--tree", required=True, help="source folder of TDSL")
    p.add_argument("--work", required=True)
    p.add_argument("--cc", default="cc")
    a = p.parse_args()
    if a.mode != "subdirectory":
        prefix = os.path.join(a.work, "prefix")
        shutil.rmtree(prefix, ignore_errors=True)
        run("cmake", "--install", a.build, "--prefix", prefix)
        moved = prefix + ".moved"  # an installed tree can be moved
        shutil.rmtree(moved, ignore_errors=True)
        os.rename(prefix, moved)
    if a.mode == "options":
        kernel_options(moved, a.work, a)
    elif a.mode == "cross":
        cross(moved, a.work, a)
    elif a.mode == "installed":
        project = Project(os.path.join(a.work, "project"), a.generator, a.cc,
                          [f"-DCMAKE_PREFIX_PATH={moved}", "-DTDSL_SHARED=ON", f"-DTDSL_PYTHON={sys.executable}"],
                          os.path.join(moved, "bin", "tdslc"))
        rebuilds(project)
        terms(project)
        device(project, a)
        installed_emulator(moved)
        tuned(project)
        broken_source_leaves_nothing(project)
        pkg_config(moved, a.work, a.cc)
    else:
        # Built in a folder of TDSL's tree, as the release preset is, and with its flags: paths from there are the same, so ccache has most objects.
        tree = os.path.join(a.work, "project")
        project = Project(tree, a.generator, a.cc, [f"-DTDSL_TREE={tree}", f"-DTDSL_PYTHON={sys.executable}"],
                          targets=["use_vectors", "use_fixed", "use_device", "use_prefixed"], links=a.tree)
        os.environ.update(CCACHE_BASEDIR=tree, CCACHE_NOHASHDIR="1")
        expect("optimised", {f: project.optimisation(f) for f in ("vectors.c", "driver/main.c", "src/dispatch.c")},
               {f: "-O2" for f in ("vectors.c", "driver/main.c", "src/dispatch.c")})
        project.configure("-DCMAKE_C_FLAGS=", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_FLAGS_RELEASE=-O2")
        project.build()
        expect("results", project.outputs(), ["56", "10"])
        expect("nothing changed", project.build()[1], [])
        prefix = os.path.join(a.work, "prefix")
        shutil.rmtree(prefix, ignore_errors=True)
        run("cmake", "--install", project.build_dir, "--prefix", prefix)
        expect("installed with the project", [os.path.join(d, n) for d, _, names in os.walk(prefix) for n in names],
               [os.path.join(prefix, "bin", "use_vectors")])
        device(project, a)


main()
