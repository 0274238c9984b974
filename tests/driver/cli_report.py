#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What --report says as text, JSON, page and graph: the same things, under the names of the source, whatever these are."""
import html.parser
import json
import random
import re
import shutil
import subprocess
import sys

from support import ROOT, equal, main, read, tdslc, test, write

SMALL = """dim n ~ 500;
kernel pair(A: f64[n, 400], B: f64[400, n], c: inout f64[n]) -> (R: f64[n, n], s: f64) {
    // a brace } that does not count
    T[p,q] = A[p,w] * B[w,q];
    R[p,q] = T[p,q] + T[q,p];
    s = sum[p,q](R[p,q] * R[p,q]);
    c[p] = 2 * c[p];
}
"""
SPILL = """kernel fold(A: f64[900,30], B: f64[30,900], V: f64[900,30]) -> (R: f64[900,30]) {
    X[i,j] = A[i,k] * B[k,j];
    s = sum[i,j](X[i,j]);
    P[i,j] = X[i,j] / s;
    R[i,k] = P[i,j] * V[j,k];
}
"""
NEST = """nest {
  axis i [%5[a], %6[a]]
  %3 workspace
  %4 tile
  for i step 4 parallel {
    %5 tile
    %6 result 0
  }
}
"""
FOLDS = """nest {
  axis n [%2[a], %4[c]]
  for n step 2 {
    %2 tile
    %4 result 0
  }
}
"""
VOID = {"meta", "br", "rect", "path", "circle"}
ALLOWED = VOID | set("html head title style body header h1 h2 h3 p span a nav main section dl div dt dd ul ol li b code pre table thead "
                     "tbody tr th td details summary svg g text tspan".split())


class Page(html.parser.HTMLParser):
    """A page as a list of (tag, attributes, text of it and all in it); fails when it is not well formed."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.all, self.ids = [], [], set()
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {[e[0] for e in self.open]}"

    def handle_starttag(self, tag, attrs):
        assert tag in ALLOWED, f"<{tag}> is not of this page"
        element = [tag, dict(attrs), ""]
        assert not [name for name, _ in attrs if name.startswith("on") or name in ("src", "srcset", "xlink:href")], attrs
        assert element[1].get("href", "#").startswith("#"), attrs
        if "id" in element[1]:
            assert element[1]["id"] not in self.ids, f"two of id {element[1]['id']}"
            self.ids.add(element[1]["id"])
        self.all.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        assert tag in VOID, f"<{tag}/>"
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1][0] == tag, f"</{tag}> within {[e[0] for e in self.open[-3:]]}"
        self.open.pop()

    def handle_data(self, data):
        for element in self.open:
            element[2] += data

    def find(self, tag, cls=None):
        return [e for e in self.all if e[0] == tag and (cls is None or cls in (e[1].get("class") or "").split())]

    def texts(self, tag, cls=None):
        return [" ".join(e[2].split()) for e in self.find(tag, cls)]


def page_of(*args):
    text = tdslc(*args, "-w", "--report=html").text
    for word in ("<script", "@import", "url(", "http:", "https:", "<link", "<img"):
        assert word not in text, word
    page = Page(text)
    links = {e[1]["href"][1:] for e in page.find("a")}
    assert links <= page.ids, links - page.ids
    assert len(page.find("h1")) == 1 and page.find("html")[0][1] == {"lang": "en"}
    for svg in page.find("svg"):
        assert svg[1]["role"] == "img" and svg[1]["aria-labelledby"] in page.ids, svg[1]
    for table in page.find("table"):
        assert table[2].strip()
    assert all(e[1].get("scope") in ("col", "row", "rowgroup") for e in page.find("th"))
    return page


@test
def a_page_has_the_outline_that_it_should():
    write("t.tdsl", SMALL)
    page = page_of("t.tdsl", "--stop-after=legal")
    equal(page.texts("h1") + page.texts("h2") + page.texts("h3"),
          ["t.tdsl for c", "kernel pair", "Stages", "Source", "Nest", "Where values live", "Who reads whom", "What moves between levels, by the model",
           "Roofline, by the model", "Traffic and time, by the model"])
    equal(page.texts("dt"), ["parameters", "results", "spilled to memory", "multiply-adds", "a call, by the model", "without fusion"])
    equal(page.texts("dd")[:2], ["3.1 MiB", "1.9 MiB"])  # A, B and c; R, s and c
    equal(page.texts("th")[:6], ["value", "type", "lives as", "bytes", "share", "why, and what is known"])
    source = page.find("pre", "source")[0][2]
    equal(source, "".join(SMALL.splitlines()[1:]))  # the kernel, to the brace that counts
    equal([e[1]["data-line"] for e in page.find("span") if "data-line" in e[1]], [str(k) for k in range(2, 9)])
    nest = page.find("ol", "nest")[0][2]
    assert "T[p,q] = sum[w](A[p,w] * B[w,q])" in nest and "R[p,q] = T[p,q] + T[q,p]" in nest, nest
    assert "s = sum[p,q](R[p,q] * R[p,q])" in nest and "in place of c" in nest, nest
    spills = [t for t in page.texts("li") if t.startswith("spills")]
    assert len(spills) == 1 and "T[p,q] and T[q,p]" in spills[0] and "What helps: " in spills[0], spills
    assert [e for e in page.find("span", "workspace") if e[1].get("data-line") == "4"], "the line that makes T is marked"
    assert "R[p,q] = R[q,p]" in page.find("table", "memory")[0][2]
    arcs = len(page.find("path", "arc"))
    equal(arcs, len(page.find("path", "head")))
    kernel = json.loads(tdslc("t.tdsl", "-w", "--stop-after=legal", "--report=json").text)["kernels"][0]
    equal(arcs, sum(len(set(v.get("reads", []))) for v in kernel["values"]))


@test
def pages_say_what_json_says():
    for file in (ROOT / "examples/mp2/mp2.tdsl", ROOT / "examples/attention/attention.tdsl", ROOT / "tests/golden/nest/programs.tdsl"):
        args = [file, "--stop-after=legal", "-w"]
        page = page_of(*args)
        report = json.loads(tdslc(*args, "--report=json").text)
        text = tdslc(*args, "--report").text
        equal([t.replace("kernel ", "", 1) for t in page.texts("h2") if t.startswith("kernel ")], [k["name"] for k in report["kernels"]])
        rows = [tuple(t) for t in zip(*[iter(page.texts("th"))])]
        tables = page.find("table", "memory")
        equal(len(tables), len(report["kernels"]))
        for kernel, table, nest in zip(report["kernels"], tables, page.find("ol", "nest")):
            assert rows
            for value in kernel["values"]:
                for key in ("reason", "remedy", "symmetry"):
                    assert value.get(key, "") in table[2], (kernel["name"], value)
                assert value["name"] + value["indices"] in table[2] and value["level"] in table[2], value
                if value["residence"] not in ("register", "argument"):
                    assert f"{value['name']}{value['indices']} = {value['computes']}" in nest[2], value
                    assert value.get("reason", "") in text and value.get("remedy", "") in text
            assert f"\n  threads {kernel['threads']}\n" in text and f"threads {kernel['threads']}" in page.texts("li"), kernel["threads"]
            equal(kernel["bytes_parameters"] + kernel["bytes_results"], kernel["bytes_compulsory"])
            check_nest(kernel["nest"], nest[2])


def numbers(text):
    """12.5 MiB, 0.109 ms, 21 GF/s as numbers."""
    scale = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "ms": 1e-3, "GF/s": 1e9, "TF/s": 1e12, "GB/s": 1e9}
    return [float(n) * scale[unit] for n, unit in re.findall(r"([\d.]+(?:e[+-]?\d+)?) (B|[KMGT]iB|ms|[GT]F/s|GB/s)(?!\w)", text)]


def near(a, b):
    assert abs(a - b) <= 0.06 * abs(b) + 1e-9, (a, b)  # three digits, and MiB with one decimal


@test
def pictures_of_the_model_have_its_numbers():
    for file, name in ((ROOT / "examples/mp2/mp2.tdsl", "mp2_energy"), (ROOT / "examples/attention/attention.tdsl", "attention")):
        page = page_of(file, f"--kernel={name}")
        (kernel,) = json.loads(tdslc(file, f"--kernel={name}", "-w", "--report=json").text)["kernels"]
        model = kernel["model"]
        forms = [f for f in (model["chosen"], model["unfused"], model["turned_down"]) if f is not None]
        (moves,) = page.find("svg", "moves")
        found = [numbers(m[1] + " " + m[2]) for m in (re.fullmatch(r"([\d.]+ [KMGT]?i?B)([\d.e-]+ ms)", e[2]) for e in page.find("text")) if m]
        for (size, seconds), (level, want) in zip(found, [pair for f in forms for pair in f["bytes"].items()]):
            near(size, want)
            near(seconds, want / model["most"]["bytes_per_second"][level])
        equal(len(found), sum(len(f["bytes"]) for f in forms))
        for level in ("memory", "L3, 32.0 MiB", "L2, 512.0 KiB"):
            assert level in moves[2], moves[2]
        (roof,) = page.find("svg", "roofline")
        rates = {t.split(": ")[0].replace("\u25a0", "").strip(): numbers(t)[0] for t in page.texts("text") if "F/s" in t and ": " in t}
        near(rates["full register tiles"], 2 * model["most"]["multiply_adds_per_second"])
        for form, words in zip(("chosen", "unfused", "turned_down"), ("chosen", "without fusion", "turned down")):
            if model[form] is not None:
                near(rates[words], 2 * model[form]["multiply_adds"] / model[form]["total_seconds"])
        assert model["chosen"]["multiply_adds"] / model["chosen"]["total_seconds"] <= model["most"]["multiply_adds_per_second"], model
        assert "memory 15 GB/s" in roof[2] and "L3 40 GB/s" in roof[2], roof[2]
    write("sum.tdsl", "kernel f(a: f64[n]) -> (s: f64) { s = sum[i](a[i]); }")
    page = page_of("sum.tdsl")
    equal((len(page.find("svg", "roofline")), len(page.find("svg", "moves"))), (0, 1))
    assert "most" not in json.loads(tdslc("sum.tdsl", "-w", "--report=json").text)["kernels"][0]["model"]


def check_tree(page, steps, operands):
    """The picture of a path has its steps with their multiply-adds, and no two names at one place."""
    (svg,) = page.find("svg", "path")
    titles = [t for t in page.texts("title") if t.startswith("step ")]
    equal([re.match(r"step (\d+), \S+: (\S+(?: [kMGTP])?) multiply-adds", t)[1] for t in titles], [str(k) for k in range(1, steps + 1)])
    places = [(e[1]["x"], e[1]["y"]) for e in page.find("text") if "y" in e[1] and e[2] in svg[2]]
    equal(len(places), len(set(places)))
    leaves = [e for e in page.find("text") if e[1].get("x") == "112"]
    equal(len(leaves), operands)
    return titles


@test
def orders_of_contractions_are_trees():
    equation = ["-e", "ab,bcd,cef,dfg->aeg", "--shape=30x40", "--shape=40x20x10", "--shape=20x8x9", "--shape=10x9x50"]
    tdslc("--emit=path", *equation, "--report=html", "-o", "p.html")
    page = Page(read("p.html").decode())
    titles = check_tree(page, 3, 4)
    steps = re.findall(r"^ +\d+ +\S+ +\(\d+,\d+\) +(\S+)", tdslc("--emit=path", *equation).text, re.M)
    units = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}
    for title, want in zip(titles, steps):
        n, unit = re.search(r": ([\d.]+) ?([kMG]?) multiply-adds", title).groups()
        near(float(n) * units[unit], float(want))
    check_tree(page_of(ROOT / "examples/mp2/mp2.tdsl", "--kernel=ao_to_mo"), 2, 3)
    for first in ("", "a"):  # names are cut, characters of two bytes are not
        labels = first + "\u03b1\u03b2\u03b3\u03b4\u03b5\u03b6\u03b7\u03b8"
        page = Page(tdslc("--emit=path", "-e", f"{labels},\u03b8\u03ba,\u03ba\u03bb->{labels[:-1]}\u03bb", "--shape=" + "x".join("2" * len(labels)), *["--shape=2x3", "--shape=3x2"], "--report=html").text)
        check_tree(page, 2, 3)
        assert any(e[2].endswith(labels[:-2] + "...") for e in page.find("text")), page.texts("text")
    chain = ",".join(chr(97 + k) + chr(98 + k) for k in range(24)) + "->ay"
    check_tree(Page(tdslc("--emit=path", "-e", chain, *["--shape=3x3"] * 24, "--report=html").text), 23, 24)
    write("n.json", json.dumps({"inputs": [[k, k + 1] for k in range(200)], "output": [0, 200], "sizes": [2] * 201}))
    equal(len(Page(tdslc("--emit=path", "--network=n.json", "--report=html").text).find("svg")), 0)  # no picture, the steps alone
    equal(len(Page(tdslc("--emit=path", "-e", "ij->j", "--shape=3x4", "--report=html").text).find("svg")), 0)


@test
def it_says_which_loop_threads_share_or_why_none():
    """Beside what the nest says: `parallel` of loops and of levels."""
    write("t.tdsl", """kernel small(A: f64[8, 8]) -> (s: f64) { s = sum[i,j](A[i,j]); }
kernel row(A: f64[5000, 200], x: f64[200]) -> (y: f64[5000]) { y[i] = sum[k](exp(A[i,k]) * x[k]); }
kernel gemm(A: f64[500, 600], B: f64[600, 700]) -> (C: f64[500, 700]) { C[i,j] = A[i,k] * B[k,j]; }
kernel folds(A: f64[900, 400, 30], B: f64[30, 30]) -> (C: f64[400, 30]) { T[n,i,j] = A[n,i,k] * B[k,j]; C[i,j] = sum[n](exp(T[n,i,j])); }
""")
    said = {k["name"]: k for k in json.loads(tdslc("t.tdsl", "-w", "--report=json").text)["kernels"]}
    assert re.fullmatch(r"share nothing: \S+ us of work, and from 20 us on two are worth it", said["small"]["threads"]), said["small"]["threads"]
    assert re.fullmatch(r"share the loop over i; 16 threads: 1[0-6]x, \d % serial", said["row"]["threads"]), said["row"]["threads"]
    assert 9.5 < said["row"]["threads_gain"] <= 16
    equal(said["row"]["nest"][0]["parallel"], True)
    assert re.fullmatch("share the (rows|columns) of C; 16 threads: .*x, .* % serial", said["gemm"]["threads"]), said["gemm"]["threads"]
    nest = tdslc("t.tdsl", "-w", "--kernel=folds", "--dump=nest").text
    write("n.dump", nest[:nest.index("nest {")] + FOLDS)
    folds = json.loads(tdslc("n.dump", "-w", "--report=json").text)["kernels"][0]["threads"]
    assert re.fullmatch("share .*; not the loop over n: C folds over it, and is too large for a part of it in each iteration; 16 threads: .*", folds), folds


@test
def what_threads_gain_costs_one_thread_little():
    """Of a nest that is chosen for many threads, the price by one is no more than 1.02 of that without fusion."""
    for path, among in (("golden/nest/threads.tdsl", {"attention", "in_turn", "deep", "gram"}), ("golden/diag/spill_avoided.tdsl", {"diagonal"})):
        for threads in (4, 16, 64):
            kernels = json.loads(tdslc(ROOT / "tests" / path, "-w", f"--threads~{threads}", "--report=json").text)["kernels"]
            assert among <= {k["name"] for k in kernels}
            for k in kernels:
                assert k["seconds"] <= 1.02 * k["seconds_unfused"], (path, k["name"], threads, k["seconds"], k["seconds_unfused"])


def check_nest(items, text):
    for item in items:
        if isinstance(item, dict):
            assert f"for {item['index']} of {item['extent']}" in text, item
            assert ("online" in text if item.get("online") else True) and ("parallel" in text if item["parallel"] else True)
            check_nest(item["body"], text)


def spilled(name):
    """A dump of the program with a nest of its own, whatever the search would choose."""
    write("t.tdsl", SPILL)
    dump = tdslc("t.tdsl", "-w", "--dump=nest").text
    return write(name, dump[:dump.index("nest {")] + NEST)


@test
def what_spills_comes_with_a_remedy():
    spilled("n.dump")
    kernel = json.loads(tdslc("n.dump", "-w", "--report=json").text)["kernels"][0]
    values = {v["name"]: v for v in kernel["values"]}
    equal(values["X"]["remedy"], "use 's' later, on a sum or contraction of what reads it now")
    equal(values["X"]["reason"].split(";")[0], "'P' waits for 's', which folds i and j of X[i,j]")
    assert values["X"]["loop_group"] < values["s"]["loop_group"] < values["P"]["loop_group"] == values["R"]["loop_group"]
    equal((values["P"]["reads"], values["X"]["line"], values["A"].get("loop_group")), (["X", "s"], 2, None))
    equal((kernel["bytes_parameters"], kernel["bytes_results"]), (3 * 27000 * 8, 27000 * 8))
    text = tdslc("n.dump", "-w", "--report").text
    assert "for i of 900 by " in text and "help: use 's' later" in text and "843.8 KiB (632.8 KiB and 210.9 KiB)" in text, text


@test
def conditions_and_positions_read_as_in_the_language():
    write("positions.tdsl", """kernel f(x: f64[n + 2], A: f64[n, n]) -> (y: f64[n], e: f64) {
    y[i] = sum[j <= i](A[i,j] * x[2*i - i + 1]) + x[n + 1 - i];
    e = sum[i < n](x[i + 1] * index(i));
}
""")
    page = tdslc("positions.tdsl", "-w", "--report=json").text
    for wanted in ("select(index(j) <= index(i), ", "x[-i + n + 1]", "x[i + 1]", "index(i)"):
        assert wanted in page, (wanted, re.findall(r'"computes": "[^"]*"', page))
    page = tdslc(ROOT / "tests/programs/gather.tdsl", "-w", "--kernel=edges", "--report=json").text
    assert "dst[k] < n" not in page, "what a call checks before is no value of the kernel"


@test
def dumps_keep_the_names_of_indices():
    write("t.tdsl", SMALL)
    want = json.loads(tdslc("t.tdsl", "-w", "--stop-after=legal", "--report=json").text)["kernels"][0]
    for stage in ("graph", "path", "nest"):
        tdslc("t.tdsl", "-w", "--dump=" + stage, "-o", "d.dump")
        got = json.loads(tdslc("d.dump", "-w", "--stop-after=legal", "--report=json").text)["kernels"][0]
        equal((got["values"], got["nest"]), (want["values"], want["nest"]), stage)
        page = page_of("d.dump", "--stop-after=legal")
        assert "kernel pair(A" in page.find("pre", "source")[0][2]
    tdslc("t.tdsl", "-w", "--dump=nest", "-o", "d.dump")
    named = read("d.dump").decode()
    write("bare.dump", re.sub(r" named \[[^]]*\]", "", named))
    assert "named [" in named and "named" not in read("bare.dump").decode()
    tdslc("d.dump", "-w", "-o", "k.c")
    tdslc("bare.dump", "-w", "-o", "bare.c", "--header=k.h")
    shapes = [re.sub(rb'/[*].*?[*]/|"[0-9a-f]{32}"|\b[A-Za-z_]\w*|\s', b"", read(name), flags=re.S) for name in ("bare.c", "k.c")]
    equal(*shapes)  # nothing but names is decided by them


@test
def names_of_any_kind_are_text():
    rng = random.Random(7)
    write("t.tdsl", SMALL)
    dump = tdslc("t.tdsl", "-w", "--dump=nest").text
    pieces = ["<", ">", "&", "\\\"", "'", "</pre>", "<script>alert(1)</script>", "<!--", "&amp;", "]]>", "\\n", "\\x01", "\\\\", "é", "𝒳",
              "\" onload=\"x".replace('"', '\\"'), "%", "{", "}", " ", "x"]
    for _ in range(40):
        odd = ["".join(rng.choice(pieces) for _ in range(rng.randint(1, 4))) + str(k) for k in range(6)]
        text = dump
        for old, new in zip(("T", "R", "n", "pair"), odd):
            text = re.sub(rf"(?<=as ){old}\b|(?<=@){old}\b|(?<=dim ){old}\b|(?<=[\[,]){old}(?=[,\]])|(?<=kernel ){old}\b", lambda _, w=new: f'"{w}"', text)
        text = "\n".join(old if old.lstrip().startswith("signature") else new for old, new in zip(dump.split("\n"), text.split("\n")))
        text = re.sub(r"named \[p", lambda _: f'named ["{odd[4]}"', text)
        write("odd.dump", text)
        tdslc("odd.dump", "-w", "--stop-after=legal")
        page = page_of("odd.dump", "--stop-after=legal")
        json.loads(tdslc("odd.dump", "-w", "--stop-after=legal", "--report=json").text)
        plain = bytes(odd[0], "utf-8").decode("unicode_escape").encode("latin-1").decode("utf-8")
        plain = plain.replace("\x01", "\ufffd")
        assert plain in page.find("table", "memory")[0][2], (plain, page.find("table", "memory")[0][2])
        check_dot(tdslc("odd.dump", "-w", "--emit=dot").text)
    name = "a<b>&'\".tdsl"
    write(name, SMALL)
    equal(page_of(name, "--stop-after=legal").texts("h1"), [name + " for c"])
    page = page_of("-e", "αβ,βγ->αγ", "--shape=?x40", "--shape=40x?")
    assert "sum[β](" in page.find("ol", "nest")[0][2]


@test
def long_kernels_have_short_pages():
    lines = ["T0[i,j] = A[i,k] * B[k,j];"]
    for k in range(1, 1000):
        lines.append(f"T{k}[i,j] = " + (f"T{k - 1}[i,k] * B[k,j];", f"exp(T{k - 1}[i,j]) + T{max(0, k - 7)}[j,i];", f"T{k - 1}[j,i] - A[i,j];")[k % 3])
    write("t.tdsl", "kernel long(A: f64[900,900], B: f64[900,900]) -> (R: f64[900,900]) {\n" + "\n".join(lines) + "\nR = T999;\n}\n")
    page = page_of("t.tdsl", "--stop-after=nest")
    assert [t for t in page.texts("p", "more") if "more values" in t], page.texts("p", "more")
    assert len(page.all) < 20000 and sum(len(e[2]) for e in page.find("body")) < 1500000


def check_dot(text):
    """Drawn where Graphviz is; else quotes and braces must match."""
    if shutil.which("dot"):
        done = subprocess.run(["dot", "-Tsvg"], input=text.encode(), capture_output=True, timeout=60, check=False)
        assert done.returncode == 0 and b"<svg" in done.stdout, done.stderr.decode() + text
        return done.stdout.decode()
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    assert '"' not in bare and bare.count("{") == bare.count("}"), text
    return None


@test
def graphs_have_loops_as_clusters_and_names_of_the_source():
    spilled("n.dump")
    text = tdslc("n.dump", "-w", "--emit=dot").text
    numbers = re.sub(r" by \d+", " by N", re.sub(r", (tile|workspace|result|argument) [0-9.]+ \w+", r", \1", text))
    equal(numbers, """digraph "fold" {
  node [shape=box, fontname="monospace"]
  n0 [label="A\\nf64[900,30], argument", shape=ellipse]
  n1 [label="B\\nf64[30,900], argument", shape=ellipse]
  n2 [label="V\\nf64[900,30], argument", shape=ellipse]
  n3 [label="X[i,j] = sum[k](A[i,k] * B[k,j])\\nf64[900,900], workspace", style=filled, fillcolor="#fdeadd"]
  n4 [label="s = sum[i,j](X[i,j])\\nf64[], tile", style=filled, fillcolor="#e2f4e8"]
  subgraph cluster_0_2 {
    label="for i of 900 by N, parallel"
    n5 [label="P[i,j] = X[i,j] / s\\nf64[900,900], tile", style=filled, fillcolor="#e2f4e8"]
    n6 [label="R[i,k] = sum[j](P[i,j] * V[j,k])\\nf64[900,30], result", style=bold]
  }
  n0 -> n3 [label="[i,k]"]
  n1 -> n3 [label="[k,j]"]
  n3 -> n4 [label="[i,j]"]
  n3 -> n5 [label="[i,j]"]
  n4 -> n5 [label=""]
  n5 -> n6 [label="[i,j]"]
  n2 -> n6 [label="[j,k]"]
}
""")
    drawn = check_dot(text)
    assert drawn is None or ("cluster_0_2" in drawn and "for i of 900" in drawn)
    for kernel in ("mp2_energy", "ao_to_mo"):
        check_dot(tdslc(ROOT / "examples/mp2/mp2.tdsl", "-w", "--kernel=" + kernel, "--emit=dot").text)


if __name__ == "__main__":
    sys.exit(main())
