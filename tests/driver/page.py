#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--report=html in a browser: it loads without messages on the console and without asking for anything, boxes, bars and tables are
there and have a size, nothing is wider than the page and no bar lies over text, in light and dark, wide and narrow; and it prints.
The pictures are left in the build folder, to be looked at. 77: no Chromium."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import browser as browsers  # noqa: E402  (beside the tests)

NARROW = 420
PROGRAMS = ROOT / "tests/programs/programs.tdsl"
PAGES = {
    "mp2": [ROOT / "examples/mp2/mp2.tdsl"],
    "attention": [ROOT / "examples/attention/attention.tdsl"],
    "trainium": [ROOT / "examples/attention/attention.tdsl", "--target=trn2", "-Db=1", "-Dh=2", "-Ds=256", "-Dt=256", "-Dd=64"],
    "ao_to_mo": [PROGRAMS, "--kernel=eri_ao_to_mo"],
    "ccsd_t": [PROGRAMS, "--kernel=ccsd_t"],
    "density": [PROGRAMS, "--kernel=dfmp2_density"],
    "online": [PROGRAMS, "--kernel=attention", "-Db=1", "-Dh=4", "-Ds=4096", "-Dt=16384", "-Dd=64"],
    "gemm": ["-e", "ij,jk->ik", "--shape=?x?", "--shape=?x?"],
    "spills": ["spills.tdsl"],
    "path": ["--emit=path", "-e", "ab,bcd,cef,dfg,eh,hgi,aj,ijk->k", *("--shape=" + s for s in ("30x40 40x20x10 20x8x9 10x9x50 8x12 12x50x7 30x6 7x6x5".split()))],
}
SPILLS = """kernel fold(A: f64[900,30], B: f64[30,900], V: f64[900,30]) -> (R: f64[900,30]) {
    X[i,j] = A[i,k] * B[k,j];
    s = sum[i,j](X[i,j]);
    P[i,j] = X[i,j] / s;
    R[i,k] = P[i,j] * V[j,k];
}
"""
LOOK = """(() => {
const all = [...document.querySelectorAll('body *')], seen = {};
document.querySelectorAll('details').forEach(e => e.open = true);
const size = e => e.getBoundingClientRect();
for (const q of ['.loop', '.nest li', '.bar > span', 'table', 'th', 'svg .band', 'svg .arc', 'svg.moves .fill', 'svg.roofline circle', 'svg.path .joint', '.facts div', '.source span', '.pill'])
  seen[q] = [...document.querySelectorAll(q)].filter(e => size(e).width > 0 && size(e).height > 0).length;
// A number lies under a bar where a line of its text and the bar share more than a rounding.
const under = [];
for (const bar of document.querySelectorAll('.bar, .bar > span')) {
  const words = document.createTreeWalker(bar.closest('tr'), NodeFilter.SHOW_TEXT), b = size(bar);
  for (let text; (text = words.nextNode());) {
    const range = document.createRange();
    range.selectNodeContents(text);
    if ([...range.getClientRects()].some(t => Math.min(t.right, b.right) - Math.max(t.left, b.left) > 1 && Math.min(t.bottom, b.bottom) - Math.max(t.top, b.top) > 1))
      under.push(text.data.trim());
  }
}
return {page: document.documentElement.scrollWidth, window: innerWidth, seen, under: under.slice(0, 5),
  wide: all.filter(e => size(e).right > innerWidth + 1 && !e.closest('.graph svg')).slice(0, 5).map(e => e.tagName + '.' + e.getAttribute('class')),
  loaded: performance.getEntriesByType('resource').map(e => e.name), foreign: document.querySelectorAll('[src],link,iframe,object').length, dark: matchMedia('(prefers-color-scheme: dark)').matches,
  paper: getComputedStyle(document.body).backgroundColor};
})()"""


def look(browser, page, width, dark=False):
    browser.size(width, 1000, dark)
    browser.open(page.as_uri())
    found = browser.value(LOOK)
    assert not browser.messages, browser.messages
    assert found["page"] <= found["window"] == width and not found["wide"] and not found["under"], (width, found)
    assert not found["loaded"] and not found["foreign"], found
    return found


def check(browser, tdslc, folder, out, name):
    page = out / f"{name}.html"
    args = [tdslc, *map(str, PAGES[name]), "-w"]
    done = subprocess.run([*args, "--report=html", "-o", str(page)], cwd=folder, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    if name == "path":
        assert look(browser, page, 1200)["seen"]["svg.path .joint"] == 14
        look(browser, page, NARROW)
        print(f"ok   {name}", flush=True)
        return
    report = subprocess.run([*args, "--report=json"], cwd=folder, capture_output=True, timeout=120, check=True)
    kernels = json.loads(report.stdout)["kernels"]
    found = look(browser, page, 1200)
    values = sum(len(k["values"]) for k in kernels)
    loops = json.dumps([k["nest"] for k in kernels]).count('"body"')
    seen = found["seen"]
    assert seen[".loop"] == loops and seen[".nest li"] >= loops + len(kernels), (loops, seen)
    assert seen["th"] > values and seen["table"] >= 2 * len(kernels) and seen[".facts div"] >= 4 * len(kernels), seen
    assert seen[".bar > span"] > 0 and seen[".pill"] > values and seen["svg .band"] >= len(kernels) and seen["svg .arc"] > 0, seen
    if name != "trainium":
        assert seen["svg.moves .fill"] >= 3 * len(kernels) and seen["svg.roofline circle"] > 2, seen
    look(browser, page, 900)
    look(browser, page, NARROW)
    dark = look(browser, page, 1200, dark=True)
    assert not found["dark"] and dark["dark"] and dark["paper"] != found["paper"], (found["paper"], dark["paper"])
    for mode, width, height, is_dark in (("", 1200, 2600, False), ("-dark", 1200, 2600, True), ("-narrow", NARROW, 3600, False)):
        picture = out / f"{name}{mode}.png"
        browser.size(width, height, is_dark)
        browser.open(page.as_uri())
        browser.picture(picture)
        assert picture.stat().st_size > 20000, picture
    browser.pdf(out / f"{name}.pdf")
    assert (out / f"{name}.pdf").read_bytes()[:5] == b"%PDF-"
    print(f"ok   {name}: {values} values, {loops} loops", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdslc", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    program = browsers.found()
    if program is None:
        print("skipped: no Chromium to look at pages with (Debian: chromium-headless-shell)")
        return 77
    out = args.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="tdsl-page-") as folder, browsers.Browser(program, f"{folder}/profile") as browser:
        (pathlib.Path(folder) / "spills.tdsl").write_text(SPILLS, encoding="utf-8")
        for name in PAGES:
            if args.only not in name:
                continue
            try:
                check(browser, str(args.tdslc.resolve()), pathlib.Path(folder), out, name)
            except AssertionError as error:
                failed += 1
                print(f"FAIL {name}: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
