# SPDX-License-Identifier: Apache-2.0
"""test_bench.py --tdslc T --cc CC: tdsl-bench on tiny cases. Its table, JSON and page hold what was run; a kernel that computes something else is said to
be wrong, and is not compared; a case that does not compile does not end the run."""
import argparse
import html.parser
import json
import os
import pathlib
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import steps  # noqa: E402

BENCH = pathlib.Path(__file__).resolve().parent / "tdsl-bench"
CASES = "^gemm/64 f32|^reductions/sum 256.2 f64"
TITLES = {"gemm/64 f32", "reductions/sum 256^2 f64"}
# A compiler that doubles what GEMM computes, and fails on reductions.
BROKEN = """#!{python}
import pathlib, subprocess, sys
if "--version" not in sys.argv:
    source = pathlib.Path(sys.argv[1])
    text = source.read_text()
    if "einsum" not in text:
        sys.exit("no such thing as a reduction")
    source.write_text(text.replace("R = einsum", "T = einsum").replace("}}", "R[i,j] = 2 * T[i,j]; }}"))
sys.exit(subprocess.call([{tdslc!r}, *sys.argv[1:]]))
"""


class Page(html.parser.HTMLParser):
    """Every tag is closed; nothing comes from elsewhere."""
    alone = {"meta", "circle", "line"}

    def __init__(self, text):
        super().__init__()
        self.open, self.circles, self.headings = [], 0, []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "link", "img", "iframe"), tag
        assert not any(name in ("src", "href") and not value.startswith("#") for name, value in attrs), attrs
        self.circles += tag == "circle"
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in self.alone, tag

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


def bench(a, *arguments, tdslc=None, **environment):
    command = [sys.executable, str(BENCH), "--quick", f"--tdslc={tdslc or a.tdslc}", f"--cc={a.cc}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment, timeout=200)


def check_right(a, folder):
    page, data = folder / "page.html", folder / "data.json"
    done = bench(a, f"--only={CASES}", f"--html={page}", f"--json={data}", OPENBLAS_CORETYPE="Haswell")
    assert done.returncode == 0 and done.stderr == "", steps.report("tdsl-bench", done.args, done)
    assert "OPENBLAS_CORETYPE was 'Haswell': cleared" in done.stdout, done.stdout
    table = [line for line in done.stdout.splitlines() if line.startswith(("gemm/", "reductions/"))]
    assert len(table) == len(TITLES) and all(any(line.startswith(title + " ") for line in table) for title in TITLES), table
    assert "WRONG" not in done.stdout and "numpy" in table[0], table
    found = json.loads(data.read_text(encoding="utf-8"))
    assert {f"{row['group']}/{row['name']} {row['dtype']}" for row in found["rows"]} == TITLES, found
    assert found["facts"]["threads"] == 1 and len(found["facts"]["processors"]) == 1, found["facts"]
    for row in found["rows"]:
        assert row["wrong"] == {} and row["best_peer"] in row["times"], row
        assert all(0 < times["least"] <= times["median"] and times["samples"] >= 3 for times in row["times"].values()), row
        least = row["times"]["tdsl"]["least"]
        assert abs(row["ratios"]["numpy"]["least"] - row["times"]["numpy"]["least"] / least) < 1e-9, row
        assert 0 < row["percent_of_roofline"], row
    assert found["rows"][0]["flops"] == 2 * 64**3 and found["rows"][0]["percent_of_peak"] > 0, found["rows"][0]
    assert found["rows"][1]["read"] == 8 * 256**2 and "memcpy" in found["rows"][1]["times"], found["rows"][1]
    parsed = Page(page.read_text(encoding="utf-8"))
    assert parsed.headings == ["All groups", "Roofline", "gemm", "reductions"] and parsed.circles >= 6, parsed.headings


def check_against(a, folder):
    """A run beside an earlier one whose times were doubled says so."""
    data = folder / "data.json"
    done = bench(a, f"--only={CASES}", f"--json={data}", "--peers=numpy")
    found = json.loads(data.read_text(encoding="utf-8"))
    for row in found["rows"]:
        row["times"]["tdsl"]["least"] *= 1000
    data.write_text(json.dumps(found), encoding="utf-8")
    done = bench(a, f"--only={CASES}", f"--against={data}", "--peers=numpy")
    lines = done.stdout[done.stdout.index("then / now"):].splitlines()[1:5]
    ratios = [float(line.split()[-1]) for line in lines]
    assert done.returncode == 0 and len(lines) == 4 and ratios[0] <= ratios[1] and min(ratios) > 20, done.stdout
    done = bench(a, f"--only={CASES}", "--against=/no/such/file")
    assert done.returncode == 1 and "no file of --json" in done.stderr, done


def check_wrong(a, folder):
    page, data, broken = folder / "page.html", folder / "data.json", folder / "tdslc"
    broken.write_text(BROKEN.format(python=sys.executable, tdslc=os.path.abspath(a.tdslc)), encoding="utf-8")
    broken.chmod(0o755)
    done = bench(a, f"--only={CASES}", f"--html={page}", f"--json={data}", tdslc=broken)
    assert done.returncode == 1 and "2 of our results are wrong" in done.stdout, steps.report("tdsl-bench", done.args, done)
    lines = [line for line in done.stdout.splitlines() if "WRONG" in line]
    assert len(lines) == 2 and "off by" in lines[0] and "elements" in lines[0], done.stdout
    rows = json.loads(data.read_text(encoding="utf-8"))["rows"]
    assert all("tdsl" in row["wrong"] and "percent_of_roofline" not in row for row in rows), rows
    assert "reduction" in rows[1]["note"], rows[1]
    text = page.read_text(encoding="utf-8")
    assert text.count("WRONG") == 2 and Page(text).headings[0] == "All groups", text


def check_choice(a):
    done = bench(a, "--only=no such case")
    assert done.returncode == 1 and "no case has 'no such case' in its title" in done.stderr, done
    done = bench(a, f"--only={CASES}", tdslc="/no/such/program")
    assert done.returncode == 1 and done.stderr == "tdsl-bench: /no/such/program: No such file or directory\n", done
    titles = bench(a, "--list").stdout.splitlines()
    assert TITLES <= set(titles) and len(titles) == len(set(titles)), titles
    assert {title.split("/")[0] for title in titles} == set("gemm skinny small open complex tccg transposes reductions elementwise functions integers spellings mp2 aomo attention".split()), titles
    done = bench(a, f"--only={CASES}", "--time=0", "--peers=numpy")
    assert done.returncode == 0 and "out of time: 2 of 2 cases left out" in done.stdout, done


def check_first(a, folder):
    """The lines that first.py times are those of docs/using.md, and with the tools there they give the result."""
    first = runpy.run_path(str(BENCH.parent / "first.py"))
    text = (BENCH.parents[2] / "docs/using.md").read_text(encoding="utf-8")
    for door, (files, once, each) in first["DOORS"].items():
        assert once in text, f"{door}: {once}"
        if door in ("c", "fortran") and (door == "c" or shutil.which("gfortran")):
            first["write"](folder, files)
            said = first["typed"](f"PATH={shlex.quote(os.path.dirname(a.tdslc))}:$PATH && {each}", folder)[2]
            assert said == first["WANTED"], said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdslc", required=True)
    parser.add_argument("--cc", default="cc")
    a = parser.parse_args()
    for check in (check_right, check_wrong, check_against, check_first):
        with tempfile.TemporaryDirectory() as folder:
            check(a, pathlib.Path(folder))
    check_choice(a)
    print("table, JSON and page hold what was run; wrong results are said to be wrong")


if __name__ == "__main__":
    main()
