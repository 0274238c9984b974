# SPDX-License-Identifier: Apache-2.0
"""simulate.py from end to end, with a package in place of the vendor's: what it accepts, refuses and skips."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
KERNELS = os.path.join(os.path.dirname(HERE), "emulator", "kernels")


def simulate(*words, packages=(os.path.join(HERE, "fake"),), **env):
    env = {**{k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "NEURON_PLATFORM_TARGET_OVERRIDE")},
           "PYTHONPATH": os.pathsep.join(packages), **env}
    done = subprocess.run([sys.executable, "-B", os.path.join(HERE, "simulate.py"), *words], env=env, capture_output=True,
                          text=True, timeout=200)
    return done.returncode, done.stdout


def kernel(name):
    return os.path.join(KERNELS, name + ".json")


class Simulate(unittest.TestCase):
    def test_kernels_that_agree_pass_each_in_a_process_of_its_target(self):
        status, text = simulate(kernel("pair_energy"), kernel("contract_twice"))
        self.assertEqual(status, 0, text)
        self.assertIn("2 passed, 0 failed", text)

    def test_a_kernel_for_two_cores_is_launched_so(self):
        text = ("import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n\n@nki.jit\ndef halves(a):\n"
                "    core = nl.program_id(axis=0)\n"
                "    o = nl.ndarray(shape=(8, 4), dtype=nl.float32, buffer=nl.shared_hbm)\n"
                "    t = nl.ndarray(shape=(4, 4), dtype=nl.float32, buffer=nl.sbuf)\n"
                "    nisa.dma_copy(dst=t, src=a[4 * core:4 * core + 4, 0:4])\n"
                "    nisa.dma_copy(dst=o[4 * core:4 * core + 4, 0:4], src=t)\n    return o\n")
        rows = [{"name": n, "role": r, "dtype": "float32", "shape": [8, 4]} for n, r in (("a", "input"), ("o", "output"))]
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "halves.py"), "w", encoding="utf-8") as stream:
                stream.write(text)
            for lnc, status in ((2, 0), (1, 1)):
                path = os.path.join(folder, f"halves{lnc}.json")
                with open(path, "w", encoding="utf-8") as stream:
                    json.dump({"function": "halves", "file": "halves.py", "target": "trn2", "lnc": lnc, "args": rows}, stream)
                found, said = simulate(path)
                self.assertEqual(found, status, said)

    def test_a_wrong_result_a_missing_one_and_a_simulator_that_raises_are_failures(self):
        for fault, said in (("wrong", "result 0 differs"), ("few", "0 results"), ("raise", "gives up")):
            status, text = simulate(kernel("pair_energy"), TDSL_FAKE_NKI=fault)
            self.assertEqual(status, 1, text)
            self.assertIn(said, text)

    def test_no_package_a_placeholder_and_our_own_stub_are_skipped_with_the_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "nki.py"), "w", encoding="utf-8") as stream:
                stream.write("raise ImportError('WRONG PACKAGE')\n")
            for packages, said in (((folder,), "WRONG PACKAGE"), ((os.path.join(HERE, "stub"),), "no simulate")):
                status, text = simulate(packages=packages)
                self.assertEqual(status, 77, text)
                self.assertIn("skipped: ", text)
                self.assertIn(said, text)


if __name__ == "__main__":
    unittest.main()
