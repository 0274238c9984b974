#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""build_neff.py, the script printed beside the kernels, with stand-ins for nki and neuronx-cc that note how they are
called: it follows the documented route, and what goes wrong is said, spoils nothing and stops no other kernel.

    build_neff.py TDSLC CC INCLUDE"""
import base64
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import steps  # noqa: E402

TDSLC, CC, INCLUDE = sys.argv.pop(1), sys.argv.pop(1), sys.argv.pop(1)

# `json` is also a module that the script needs, `build_neff` the script itself.
PROGRAM = """
kernel matmul(A: bf16[9, 8], B: bf16[8, 7]) -> (C: bf16[9, 7]) {
    C[i,j] = A[i,k] * B[k,j];
}
kernel json(x: f32, V: f32[6], W: inout f32[6]) {
    W[i] = x * V[i] + W[i];
}
kernel build_neff(V: f32[5]) -> (S: f32) {
    S = sum[i](V[i]);
}
"""

NKI = '''
import inspect, json, os, subprocess
at_import = dict(os.environ)
class Kernel:
    def __init__(self, function):
        self.function = function
    cores = 1
    def __getitem__(self, cores):
        self.cores = cores
        return self
    def __call__(self, *arrays):
        name = self.function.__name__
        names = ("NKI_ARTIFACTS_DIR", "NEURON_PLATFORM_TARGET_OVERRIDE", "NEURON_LOGICAL_NC_CONFIG",
                 "NKI_DISABLE_COMPILE_CACHE")
        call = {"function": name, "source": inspect.getsource(self.function), "folder": os.getcwd(),
                "environment": {n: at_import.get(n) for n in names}, "home": os.environ["FAKE_HOME"],
                "shapes": [list(a.shape) for a in arrays], "dtypes": [a.dtype.name for a in arrays],
                "cores": self.cores, "zero": not any(a.astype("float64").any() for a in arrays)}
        with open(os.environ["FAKE_LOG"], "a") as stream:
            stream.write(json.dumps(call) + "\\n")
        folder = at_import["NKI_ARTIFACTS_DIR"]
        subprocess.run(["neuronx-cc", "compile", "--framework", "XLA", name, "--target",
                        at_import["NEURON_PLATFORM_TARGET_OVERRIDE"], f"--lnc={self.cores}",
                        "--output=" + os.path.join(folder, "kernel.neff")], check=True)
        raise RuntimeError("no device to run it on")
def jit(function):
    return Kernel(function)
'''

# What it does with a kernel is in FAKE: NAME=ok, fail, partial, tiny, bir, nothing.
NEURONX_CC = '''#!{python}
import os, struct, sys
name, mode = sys.argv[4], dict(w.split("=") for w in os.environ["FAKE"].split()).get(sys.argv[4], "ok")
out = next(a for a in sys.argv if a.startswith("--output="))[9:]
if mode == "fail":
    sys.exit("neuronx-cc: NCC_EVRF059")
data = name.encode() * 100
whole = struct.pack("<5Q", 2, 1024, len(data), 2, 0).ljust(1024, b"\\0") + data
open("left_behind.txt", "w").close()
if mode != "nothing":
    with open(out, "wb") as stream:
        stream.write({{"partial": whole[:1100], "tiny": b"x"}}.get(mode, whole))
if mode == "bir":
    with open(os.path.join(os.path.dirname(out), "kernel.bir"), "w") as stream:
        stream.write("bir of " + name)
'''


def neff_of(name):
    data = name.encode() * 100
    return struct.pack("<5Q", 2, 1024, len(data), 2, 0).ljust(1024, b"\0") + data


class BuildNeff(unittest.TestCase):
    def setUp(self):
        self.top = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.top)
        self.out = os.path.join(self.top, "out folder")
        self.log = os.path.join(self.top, "log")
        self.source = os.path.join(self.top, "kernels.tdsl")
        with open(self.source, "w") as stream:
            stream.write(PROGRAM)
        self.compile()
        self.tools = os.path.join(self.top, "tools")
        os.makedirs(os.path.join(self.tools, "nki"))
        for name, text in (("nki/__init__.py", NKI), ("nki/isa.py", ""), ("nki/language.py", "")):
            with open(os.path.join(self.tools, name), "w") as stream:
                stream.write(text)
        with open(os.path.join(self.tools, "neuronx-cc"), "w") as stream:
            stream.write(NEURONX_CC.format(python=sys.executable))
        os.chmod(os.path.join(self.tools, "neuronx-cc"), 0o755)

    def compile(self, *words):
        steps.run("tdslc", [TDSLC, self.source, "--target=trn2", "-w", *words, "-o", self.out])

    def run_it(self, *names, fake="", tools=True, **environment):
        env = dict(os.environ, FAKE=fake, FAKE_LOG=self.log, FAKE_HOME=self.out, PYTHONDONTWRITEBYTECODE="1",
                   NEURON_PLATFORM_TARGET_OVERRIDE="trn1", NEURON_LOGICAL_NC_CONFIG="2", **environment)
        env.pop("PYTHONPATH", None)
        if tools:
            env["PYTHONPATH"] = self.tools
            env["PATH"] = self.tools + os.pathsep + env["PATH"]
        open(self.log, "w").close()
        done = subprocess.run([sys.executable, os.path.join(self.out, "build_neff.py"), *names], env=env, cwd=self.top,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        with open(self.log) as stream:
            self.calls = {c["function"]: c for c in map(json.loads, stream)}
        return done

    def file(self, name):
        with open(os.path.join(self.out, name), "rb") as stream:
            return stream.read()

    def config(self, kernel):
        text = self.file(kernel + ".hlo.txt").decode()
        return json.loads(base64.b64decode(re.search(r'backend_config="([^"]*)"', text).group(1)))

    def table(self):
        """Path and digest of each form, as a C program sees them."""
        main = os.path.join(self.top, "main.c")
        with open(main, "w") as stream:
            stream.write("""#include <stdio.h>
#include <tdsl/tdsl.h>
extern const tdsl_nki_form *const kernels_trn2_forms[];
int main(void)
{
    for (int i = 0; kernels_trn2_forms[i] != NULL; i++) {
        const tdsl_nki_form *f = kernels_trn2_forms[i];
        const tdsl_nki_part *p = f->parts;
        printf("%s\\t%s\\t%s\\t%s\\t%s\\n", f->kernel, f->target, p->program,
               p->neff_path != NULL ? p->neff_path : "-", p->neff_sha256 != NULL ? p->neff_sha256 : "-");
    }
    return 0;
}
""")
        program = os.path.join(self.top, "main")
        steps.run("compile the table", [CC, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I" + INCLUDE,
                                        '-DTDSL_NKI_FOLDER="/F/"', main, os.path.join(self.out, "kernels_trn2.c"), "-o", program])
        rows = steps.run("the table", [program]).splitlines()
        return {r.split("\t")[0]: tuple(r.split("\t")[1:]) for r in rows}

    def test_all_kernels_are_built_by_the_documented_route(self):
        self.assertEqual(self.table()["json"], ("trn2", "/F/json.py", "-", "-"))
        done = self.run_it(fake="matmul=bir")
        self.assertEqual((done.returncode, done.stderr), (0, ""))  # not a word of the run that must fail here
        self.assertEqual(sorted(self.calls), ["json", "k_build_neff", "matmul"])
        for name, call in self.calls.items():
            self.assertEqual(call["environment"]["NKI_ARTIFACTS_DIR"], call["folder"])
            self.assertEqual(call["environment"]["NEURON_PLATFORM_TARGET_OVERRIDE"], "trn2")
            self.assertEqual(call["environment"]["NEURON_LOGICAL_NC_CONFIG"], "1")
            self.assertEqual(call["cores"], 1)
            self.assertEqual(call["environment"]["NKI_DISABLE_COMPILE_CACHE"], "1")
            self.assertNotEqual(call["folder"], self.out)
            self.assertIn(f"def {name}(", call["source"])
            self.assertTrue(call["zero"])
            self.assertEqual(self.file(name + ".neff"), neff_of(name))
            self.assertIn(hashlib.sha256(neff_of(name)).hexdigest(), done.stdout)
        self.assertEqual(self.calls["matmul"]["shapes"], [[9, 8], [8, 7]])
        self.assertEqual(self.calls["matmul"]["dtypes"], 2 * ["bfloat16" if "bf16" in PROGRAM else "float16"])
        self.assertEqual(self.calls["json"]["shapes"], [[1, 1], [6], [6]])
        self.assertEqual(self.config("matmul")["klir_binary"]["binary"], os.path.join(self.out, "matmul.bir"))
        self.assertEqual(self.config("json")["klir_binary"]["binary"], os.path.join(self.out, "json.neff"))
        digest = hashlib.sha256(neff_of("k_build_neff")).hexdigest()
        self.assertEqual(self.table()["build_neff"], ("trn2", "/F/k_build_neff.py", "/F/k_build_neff.neff", digest))
        self.assertNotIn("left_behind.txt", os.listdir(self.out) + os.listdir(self.top))
        self.assertFalse([f for f in os.listdir(self.out) if f.endswith(".part")])

    def test_kernels_for_two_cores_are_launched_so(self):
        self.compile("--lnc=2")
        self.assertEqual(self.run_it("matmul").returncode, 0)
        call = self.calls["matmul"]
        self.assertEqual((call["environment"]["NEURON_LOGICAL_NC_CONFIG"], call["cores"]), ("2", 2))
        self.assertEqual(self.config("matmul")["grid"], 2)

    def test_what_somebody_changed_is_said_and_what_another_version_made_is_refused(self):
        manifest = json.loads(self.file("json.json"))
        self.assertRegex(manifest["compiler"], r"^tdslc \d+\.\d+")
        code = self.file("json.py").partition(b"\nimport nki\n")[2]
        self.assertEqual(manifest["sha256"], hashlib.sha256(b"import nki\n" + code).hexdigest())
        with open(os.path.join(self.out, "json.py"), "a") as stream:
            stream.write("# by hand\n")
        manifest["format"] = 2
        with open(os.path.join(self.out, "matmul.json"), "w") as stream:
            json.dump(manifest, stream)
        done = self.run_it("json", "matmul")
        self.assertEqual(done.returncode, 1)
        self.assertIn("note: json.py is not as tdslc wrote it", done.stderr)
        self.assertIn("matmul.json is of format 2, by tdslc", done.stderr)
        self.assertEqual(sorted(self.calls), ["json"])

    def test_the_custom_call_has_the_documented_fields(self):
        text = self.file("json.hlo.txt").decode()
        self.assertIn('custom_call_target="AwsNeuronCustomNativeKernel"', text)
        self.assertIn("api_version=API_VERSION_STATUS_RETURNING", text)
        self.assertEqual(self.config("json"), {
            "func_name": "json", "platform_target": "trn2", "kernel_format": "bir", "kernel_version": 1, "grid": 1,
            "has_collectives": False, "mac_count": 0,
            "klir_binary": {"binary": "", "input_names": ["x", "V", "W"], "output_names": ["W_out"],
                            "version_identifier": "", "aliases": []}})
        self.assertEqual(self.config("matmul")["mac_count"], 9 * 8 * 7)
        self.assertEqual(self.config("k_build_neff")["func_name"], "k_build_neff")

    def test_building_again_changes_nothing_and_compiling_again_forgets(self):
        self.run_it()
        before = {f: self.file(f) for f in sorted(os.listdir(self.out))}
        self.assertEqual(self.run_it().returncode, 0)
        self.assertEqual({f: self.file(f) for f in sorted(os.listdir(self.out))}, before)
        self.compile()
        self.assertEqual(self.table()["matmul"], ("trn2", "/F/matmul.py", "-", "-"))
        self.assertEqual(self.config("matmul")["klir_binary"]["binary"], "")

    def test_named_kernels_alone_are_built(self):
        self.assertEqual(self.run_it("matmul").returncode, 0)
        self.assertEqual(list(self.calls), ["matmul"])
        self.assertNotEqual(self.table()["matmul"][2], "-")
        self.assertEqual(self.table()["json"][2], "-")
        done = self.run_it("matmul", "nobody")
        self.assertEqual((done.returncode, self.calls), (2, {}))
        self.assertIn("'nobody'", done.stderr)
        self.assertIn("matmul", done.stderr)

    def test_a_failing_compiler_is_said_and_stops_no_other_kernel(self):
        for mode, word in (("fail", "no NEFF"), ("nothing", "no NEFF"), ("partial", "truncated"), ("tiny", "truncated")):
            with self.subTest(mode):
                self.compile()
                for name in ("matmul", "json"):
                    if os.path.exists(os.path.join(self.out, name + ".neff")):
                        os.remove(os.path.join(self.out, name + ".neff"))
                done = self.run_it(fake="json=" + mode)
                self.assertEqual(done.returncode, 1)
                self.assertIn("build_neff: json: ", done.stderr)
                self.assertIn(word, done.stderr)
                self.assertEqual("NCC_EVRF059" in done.stderr, mode == "fail")  # what the compiler said
                self.assertNotIn("json.neff", os.listdir(self.out))
                self.assertEqual(self.config("json")["klir_binary"]["binary"], "")
                self.assertEqual(self.table()["json"][2], "-")
                self.assertNotEqual(self.table()["matmul"][2], "-")

    def test_missing_tools_are_said_with_status_3(self):
        done = self.run_it(tools=False)
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn("nki", done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        os.remove(os.path.join(self.tools, "neuronx-cc"))
        done = self.run_it()  # nki alone
        self.assertEqual(done.returncode, 3)
        self.assertIn("neuronxcc", done.stderr)
        with open(os.path.join(self.tools, "nki", "__init__.py"), "w") as stream:
            stream.write("")  # the placeholder that public indexes have
        self.assertEqual(self.run_it().returncode, 3)

    def test_the_module_takes_the_commands_place(self):
        os.rename(os.path.join(self.tools, "neuronx-cc"), os.path.join(self.top, "neuronx-cc"))
        os.mkdir(os.path.join(self.tools, "neuronxcc"))
        open(os.path.join(self.tools, "neuronxcc", "__init__.py"), "w").close()
        done = self.run_it("matmul")  # nki itself fails then, as its stand-in wants the command
        self.assertEqual(done.returncode, 1)
        self.assertIn("no NEFF", done.stderr)


if __name__ == "__main__":
    try:
        import ml_dtypes  # noqa: F401
    except ImportError:
        # a stand-in: 16 bits that NumPy takes for its own
        PROGRAM = PROGRAM.replace("bf16", "f16")
        BuildNeff.test_all_kernels_are_built_by_the_documented_route.__doc__ = "without bf16: no ml_dtypes here"
    unittest.main()
