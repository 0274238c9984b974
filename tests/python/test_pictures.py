# SPDX-License-Identifier: Apache-2.0
"""tdsl.pictures: pictures of reports, paths, profiles and schedules have what these say. Without matplotlib only what is said then is tested."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

import tdsl

MP2 = """dim o ~ 16, v ~ 64, x ~ 200;
kernel mp2_energy(B: f64[o, v, x], eo: f64[o], ev: f64[v]) -> (E: f64) {
    T[i,a,j,b] = B[i,a,P] * B[j,b,P];
    D[i,a,j,b] = eo[i] + eo[j] - ev[a] - ev[b];
    E = sum[i,j,a,b](T[i,a,j,b] * (2*T[i,a,j,b] - T[i,b,j,a]) / D[i,a,j,b]);
}
kernel twice(a: f64[o]) -> (b: f64[o]) { b[i] = 2 * a[i]; }
"""
PRODUCT = "kernel product(A: f32[m,k], B: f32[k,n]) -> (C: f32[m,n]) {\n    C[i,j] = A[i,l] * B[l,j];\n}\n"


def texts(figure):
    axes = figure.axes[0]
    return [t.get_text() for t in axes.texts] + [t.get_text() for t in axes.get_yticklabels()] + [axes.get_title()] + \
        ([t.get_text() for t in axes.get_legend().get_texts()] if axes.get_legend() else [])


@unittest.skipIf(importlib.util.find_spec("matplotlib") is None, "matplotlib is not installed")
class Pictures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def is_png(self, name):
        with open(self.path(name), "rb") as f:
            data = f.read()
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        self.assertGreater(len(data), 5000)

    def run_tool(self, *arguments):
        beside = os.path.join(os.path.dirname(os.environ.get("TDSL_TDSLC", "")), "tdsl-run")
        subprocess.run([beside, *arguments], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)

    def test_roofline(self):
        program = tdsl.compile(MP2)
        figure = tdsl.pictures.roofline(program, self.path("r.png"), kernel="mp2_energy")
        self.is_png("r.png")
        model = next(k for k in program.report("json")["kernels"] if k["name"] == "mp2_energy")["model"]
        rate = 2e-9 * model["chosen"]["multiply_adds"] / model["chosen"]["total_seconds"]
        said = texts(figure)
        self.assertIn(f"chosen: {rate:.3g} GF/s", said)
        self.assertIn(f"full register tiles: {2e-9 * model['most']['multiply_adds_per_second']:.3g} GF/s", said)
        peak = max(max(line.get_ydata()) for line in figure.axes[0].lines)
        for line in figure.axes[0].lines:  # no nest is above the roofs
            self.assertLessEqual(max(line.get_ydata()), peak)
        self.assertRaisesRegex(tdsl.ArgumentError, "which kernel: mp2_energy, twice", tdsl.pictures.roofline, program)
        self.assertRaisesRegex(tdsl.ArgumentError, "no roofline", tdsl.pictures.roofline, program, kernel="twice")
        self.assertRaisesRegex(tdsl.ArgumentError, "no kernel 'none'", tdsl.pictures.roofline, program, kernel="none")
        self.assertRaises(tdsl.FileError, tdsl.pictures.roofline, program, self.path("none/r.png"), "mp2_energy")
        self.assertRaises(tdsl.ArgumentError, tdsl.pictures.roofline, program, self.path("r.doc"), "mp2_energy")

    def test_moves(self):
        program = tdsl.compile(MP2)
        figure = tdsl.pictures.moves(program.report("json"), self.path("m.svg"), kernel="mp2_energy")
        self.assertIn("memory: without fusion", texts(figure))
        with open(self.path("m.svg"), encoding="utf-8") as f:
            self.assertIn("<svg", f.read())
        self.assertEqual(len(tdsl.pictures.moves(program, kernel="twice").axes), 1)

    def test_path(self):
        found = tdsl.path("ab,bcd,cef,dfg->aeg", (30, 40), (40, 20, 10), (20, 8, 9), (10, 9, 50))
        figure = tdsl.pictures.path(found, self.path("p.png"))
        self.is_png("p.png")
        said = texts(figure)
        for k, labels in enumerate(("ab", "bcd", "cef", "dfg")):
            self.assertIn(f"{k}  {labels}", said)
        self.assertEqual(len(figure.axes[0].collections), 3)
        self.assertAlmostEqual(sum(float(t.split()[0]) for t in said[4:7]) / found.multiply_adds, 1, delta=0.02)
        self.assertRaises(tdsl.ArgumentError, tdsl.pictures.path, tdsl.path("ij->j", (3, 4)))

    def test_profile(self):
        self.write("k.tdsl", PRODUCT)
        self.run_tool("k.tdsl", "-Dm=60", "-Dk=50", "-Dn=40", "A=fill", "B=fill", "--profile=p.json")
        figure = tdsl.pictures.profile(self.path("p.json"), self.path("p.png"))
        self.is_png("p.png")
        self.assertIn("line 2: C[i,j] = sum[l](A[i,l] * B[l,j])", texts(figure))
        self.assertRaises(tdsl.FileError, tdsl.pictures.profile, self.path("none.json"))
        self.assertRaisesRegex(tdsl.ArgumentError, "no profile", tdsl.pictures.profile, {})
        self.assertRaisesRegex(tdsl.ArgumentError, "not JSON", tdsl.pictures.profile, self.path("k.tdsl"))

    def test_schedule(self):
        self.write("k.tdsl", PRODUCT)
        self.run_tool("k.tdsl", "--target=emulator", "-Dm=200", "-Dk=150", "-Dn=140", "A=fill", "B=fill", "--profile=t.json")
        figure = tdsl.pictures.schedule(self.path("t.json"), self.path("t.png"))
        self.is_png("t.png")
        said = texts(figure)
        for words in ("Tensor", "DMA: loads", "line 2: C[i,j] = A[i,l] * B[l,j];"):
            self.assertIn(words, said)
        with open(self.path("t.json"), encoding="utf-8") as f:
            self.assertRaisesRegex(tdsl.ArgumentError, "no core 1", tdsl.pictures.schedule, json.load(f), core=1)


class Without(unittest.TestCase):
    def test_what_is_missing_is_said(self):
        code = ("import sys; sys.modules['matplotlib'] = sys.modules['matplotlib.figure'] = None\nimport tdsl\n"
                "try: tdsl.pictures.path(tdsl.path('ij,jk', (2, 3), (3, 4)))\nexcept tdsl.Error as e: print(e)")
        done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, check=True)
        self.assertIn("pip install matplotlib", done.stdout)


unittest.main()
