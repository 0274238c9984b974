# SPDX-License-Identifier: Apache-2.0
"""The schedule for Perfetto is the one that the cost report sums up."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from support import KERNELS, RUNNER
from test_kernels import run_example
from nki_emulator.timeline import TRACKS, timeline

TIMES = {"tensor": 1, "vector": 2, "scalar": 3, "gpsimd": 4}


class Timeline(unittest.TestCase):
    def check(self, result, trace):
        """Of each track: nothing overlaps, its instructions and busy time are the report's, and the last ends when the report says."""
        self.assertEqual(json.loads(json.dumps(trace)), trace)
        events = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == 0]
        self.assertEqual(len(events), len(result.records))
        self.assertEqual([e["ts"] for e in events], sorted(e["ts"] for e in events))
        for queue, tid in TIMES.items():
            mine = [e for e in events if e["tid"] == tid]
            for a, b in zip(mine, mine[1:]):
                self.assertLessEqual(a["ts"] + a["dur"], b["ts"] + 1e-9)
            self.assertEqual(len(mine), result.cost["engines"][queue]["instructions"])
            self.assertAlmostEqual(sum(e["dur"] for e in mine), result.cost["engines"][queue]["us"])
        self.assertEqual(sum(e["args"].get("multiply_adds", 0) for e in events), result.cost["macs"])
        self.assertEqual(sum(e["args"].get("bytes", 0) for e in events), result.cost["dma"]["bytes"])
        end = max(e["ts"] + e["dur"] for e in events)
        self.assertLessEqual(end, result.cost["predicted_us"] + 1e-9)
        self.assertGreater(end, 0.5 * result.cost["predicted_us"])
        for name in ("SBUF of a partition", "PSUM"):
            counts = [next(iter(e["args"].values())) for e in trace["traceEvents"] if e["ph"] == "C" and e["name"] == name]
            self.assertTrue(counts[-1] == 0 and min(counts) >= 0, (name, counts))
        self.assertGreater(max(counts), 0)

    def test_tracks_are_engines_and_add_up(self):
        for name in sorted(n for n in os.listdir(KERNELS) if n.endswith(".json")):
            with self.subTest(kernel=name):
                result = run_example(name[:-5])[0]
                self.check(result, timeline([result]))

    def test_names_and_lines(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.json")
            done = subprocess.run([sys.executable, RUNNER, "-", "--manifest", os.path.join(KERNELS, "attention.json"), "--synthetic", "--timeline", path],
                                  capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
            with open(path, encoding="utf-8") as stream:
                trace = json.load(stream)
        self.assertEqual([e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"], list(TRACKS.values()))
        with open(os.path.join(KERNELS, "attention.py"), encoding="utf-8") as stream:
            lines = stream.read().split("\n")
        for e in trace["traceEvents"]:
            if e["ph"] == "X":
                self.assertIn("nisa." + e["name"].split()[0], lines[e["args"]["line"] - 1])
                self.assertNotIn("%", e["name"])

    def test_programs_stand_one_behind_the_other(self):
        one = run_example("attention")[0]
        both = timeline([one, one])
        first = timeline([one])
        self.assertEqual(len([e for e in both["traceEvents"] if e["ph"] == "X"]), 2 * len(one.records))
        self.assertAlmostEqual(both["otherData"]["predicted_us"], 2 * first["otherData"]["predicted_us"])


if __name__ == "__main__":
    unittest.main()
