#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tdslc --emit=path: every number of its report is recomputed here from the path alone, in exact integers. See cli.py."""
import json
import math
import os
import pty
import re
import signal
import subprocess
import sys
import time

import support
from support import *

def network_of(inputs, output, sizes):
    return {"inputs": inputs, "output": output, "sizes": sizes}


def recompute(network, report):
    """Cost, largest, written and peak of a reported path, in Python's integers."""
    sizes = list(network["sizes"])
    slices = 1
    for label, extent in report["sliced"]:
        equal(extent, sizes[label], "extent of a sliced label")
        slices *= sizes[label]
        sizes[label] = 1
    count = {}
    for labels in network["inputs"]:
        for label in set(labels):
            count[label] = count.get(label, 0) + 1
    out = {x for x in network["output"]}
    sliced = {x for x, _ in report["sliced"]}
    # The free preparation: diagonals, extent 1, labels of one operand only.
    free = [frozenset(x for x in labels if network["sizes"][x] != 1 and (x in out or count[x] > 1))
            for labels in network["inputs"]]

    def volume(labels):
        return math.prod(sizes[x] for x in labels)
    now = list(free)
    cost, written, largest = 0, 0, max(volume(x) for x in now)
    peak = alive = sum(volume(x) for x in now)
    for step in report["path"]:
        if len(step) == 1:
            equal(len(report["path"]), 1, "a lone operand")
            continue
        equal(len(step), 2, "a pair")
        i, j = sorted(step)
        b, a = now.pop(j), now.pop(i)
        rest = set().union(*now, out)
        result = frozenset(x for x in a | b if x in rest)
        cost += volume(a | b)
        written += volume(result)
        largest = max(largest, volume(result))
        peak = max(peak, alive + volume(result))
        alive += volume(result) - volume(a) - volume(b)
        now.append(result)
    equal(len(now), 1, "operands left")
    assert not sliced & out or True
    return cost * slices, largest, written * slices, peak


def check_report(network, report):
    cost, largest, written, peak = recompute(network, report)
    equal(report["multiply_adds"], str(cost), "multiply_adds")
    assert cost == 0 or abs(report["log10_multiply_adds"] - math.log10(cost)) < 1e-3
    equal(int(report["largest"]), largest, "largest")
    assert abs(report["log2_largest"] - math.log2(largest)) < 1e-3
    equal(int(report["written"]), written, "written")
    equal(int(report["peak"]), peak, "peak")
    assert isinstance(report["seconds"], (int, float)) and report["seconds"] >= 0
    assert isinstance(report["strategy"], str) and report["strategy"]


def instances(most):
    data = json.loads((ROOT / "tests/data/paths.json").read_text())["instances"]
    return [i for i in data if i["n"] <= most]


@test
def the_path_report_of_a_network_is_true():
    picked = instances(30)
    step = max(1, len(picked) // 20)
    for instance in picked[::step]:
        write("n.json", json.dumps(instance))
        report = json.loads(tdslc("--emit=path", "--report=json", "--network=n.json").text)
        check_report(instance, report)
        best = instance.get("best")
        if best and best.get("proven"):
            assert int(report["multiply_adds"]) >= int(best["multiply_adds"]), instance["name"]


@test
def the_path_report_of_an_equation_is_true():
    tests = [("ab,bc,cd,de->ae", [[5, 7], [7, 3], [3, 11], [11, 2]]), ("ij->ji", [[2, 3]]), ("ii->", [[4, 4]]),
             ("abc,cd,bd,ae->e", [[4, 5, 6], [6, 7], [5, 7], [4, 3]]), ("ij,jk", [[2, 1], [1, 3]]),
             ("aab,bc,c->a", [[3, 3, 4], [4, 5], [5]]), ("ijx,jk->ik", [[2, 3, 9], [3, 4]])]
    for equation, shapes in tests:
        report = json.loads(tdslc("--emit=path", "--report=json", "-e", equation,
                                  *["--shape=" + "x".join(map(str, s)) for s in shapes]).text)
        left, arrow, right = equation.partition("->")
        names = sorted(set(left) - {","})
        if not arrow:
            right = "".join(x for x in names if left.count(x) == 1)
        number = {x: k for k, x in enumerate(names)}
        sizes = [0] * len(names)
        for word, shape in zip(left.split(","), shapes):
            for x, n in zip(word, shape):
                sizes[number[x]] = max(n, sizes[number[x]])
        network = network_of([[number[x] for x in w] for w in left.split(",")], [number[x] for x in right], sizes)
        report["sliced"] = [[number[x], n] for x, n in report["sliced"]]
        check_report(network, report)


@test
def a_memory_limit_holds_or_the_smallest_that_would_is_said():
    for instance in [i for i in instances(20) if i["n"] >= 6][:6]:
        write("n.json", json.dumps(instance))
        base = ["--emit=path", "--report=json", "--network=n.json"]
        free = json.loads(tdslc(*base).text)
        limit = max(1, int(free["largest"]) // 4)
        done = tdslc(*base, f"--memory-limit={limit}", status=(0, 1, 2, 4))
        if done.status == 0:
            report = json.loads(done.text)
            assert int(report["largest"]) <= limit
            check_report(instance, report)
            assert report["sliced"] or report["path"] != free["path"]
        done = tdslc(*base, "--memory-limit=1", status=(0, 1, 2, 4))
        if done.status == 0:
            equal(int(json.loads(done.text)["largest"]), 1)
        else:
            numbers = [int(x) for x in re.findall(r"\d+", done.messages) if int(x) > 1]
            assert numbers, done.messages
            report = json.loads(tdslc(*base, f"--memory-limit={max(numbers)}").text)
            assert int(report["largest"]) <= max(numbers)
        for bad in ("0", "-5", "many", "", "1e6", "99999999999999999999999"):
            tdslc(*base, "--memory-limit=" + bad, status=(1, 2, 4))


@test
def every_search_and_objective_gives_a_true_report():
    instance = next(i for i in instances(8) if i["n"] >= 5)
    write("n.json", json.dumps(instance))
    tdslc("--emit=path", "--network=n.json", "--search=tea", status=(1, 2))
    for name in ("auto", "exact", "greedy", "random-greedy", "eliminate", "bisect", "anneal"):
        for objective in ("flops", "size", "write", "combo", "roofline"):
            args = ["--emit=path", "--report=json", "--network=n.json", "--search=" + name,
                    "--objective=" + objective, "--seed=7", "--effort=1"]
            report = json.loads(tdslc(*args).text)
            check_report(instance, report)
            again = json.loads(tdslc(*args).text)
            equal(again["path"], report["path"], f"{name} again")
    tdslc("--emit=path", "--network=n.json", "--objective=beauty", status=2)


@test
def a_long_chain_is_solved_exactly():
    sizes = [2 + (k * k * 7919 + 31 * k) % 97 for k in range(121)]
    n = len(sizes) - 1
    least = [[0] * (n + 1) for _ in sizes]
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length
            least[i][j] = min(least[i][k] + least[k][j] + sizes[i] * sizes[k] * sizes[j] for k in range(i + 1, j))
    order = sorted(range(n), key=lambda k: (k * 37) % n)
    network = network_of([[k, k + 1] for k in order], [0, n], sizes)
    write("n.json", json.dumps(network))
    report = json.loads(tdslc("--emit=path", "--report=json", "--network=n.json").text)
    check_report(network, report)
    equal(report["multiply_adds"], str(least[0][n]), "a chain")
    equal(report["strategy"], "structure")


@test
def traffic_costs_what_the_target_says():
    """(ab bc) cd does less and writes more than ab (bc cd); a machine short of bandwidth takes the second."""
    written = [json.loads(tdslc("--emit=path", "--report=json", "--objective=combo", "--target=" + target, "-e", "ab,bc,cd->ad",
                                "--shape=1000x14", "--shape=14x2", "--shape=2x14").text)["written"]
               for target in ("c", "trn2")]
    equal(written, [16000, 14196])


def operands_of(n):
    return [sorted({k, (k + 1) % n, (7 * k + 3) % n, (11 * k + 5) % n}) for k in range(n)]


def equation_of(operands):
    return ["-e", ",".join("".join(chr(0x4e00 + x) for x in o) for o in operands) + "->",
            *("--shape=" + "x".join(["2"] * len(o)) for o in operands), "-w"]


OPERANDS = operands_of(60)
EQUATION = equation_of(OPERANDS)


def press(command, after, key=b"\x03"):
    """What a command writes on its terminal, where the key is pressed as soon as `after` is seen, and its wait status."""
    child, master = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm"
        os.execv(command[0], command)
    text, end = b"", time.monotonic() + 60
    while time.monotonic() < end:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        text += part
        if key and re.search(after, text):
            os.write(master, key)
            key = b""
    os.close(master)
    return text.decode(), os.waitpid(child, 0)[1]


@test
def ctrl_c_ends_the_search_of_a_kernels_order_with_the_best_so_far():
    operands = operands_of(40)  # whose value is soon computed, in whatever order
    equation = equation_of(operands)
    long = [*equation, "--dtype=i64", "--effort=300", "--no-fuse"]
    said = "interrupted: the best contraction order so far is used"
    text, status = press([support.ARGS.tdslc, *long, "-o", "k.c"], rb" 1 s\x1b\[K")
    equal(status, 0, text)
    assert "\033[Ktdslc: " + said in text, text  # what goes on may show where it is, too
    run("cc", "-c", "-O0", "k.c", "-o", "k.o")
    want = tdsl_run(*equation, "--dtype=i64", *["fill"] * 40, "--checksum").text
    text, status = press([support.ARGS.tdsl_run, *long, *["fill"] * 40, "--cflags=-O0", "--checksum"], rb" 1 s\x1b\[K")
    equal(status, 0, text)
    assert "tdsl-run: " + said in text and text.replace("\r\n", "\n").endswith(want), text
    write("t.tdsl", "kernel f(%s) -> (R: i64) {\n    R = %s;\n}\n" % (
        ", ".join(f"p{k}: i64[{', '.join(['2'] * len(o))}]" for k, o in enumerate(operands)),
        " * ".join(f"p{k}[{', '.join(f'i{x}' for x in o)}]" for k, o in enumerate(operands))))
    child = subprocess.Popen([support.ARGS.tdslc, "t.tdsl", "-w", "--effort=300", "--no-fuse", "--report=json", "-o", "t.c"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1)  # without a terminal too
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    equal((child.returncode, err.decode()), (0, f"tdslc: {said}\n"))
    equal(json.loads(out)["contractions"][0]["interrupted"], True)
    assert files() == ["k.c", "k.h", "k.o", "t.c", "t.h", "t.tdsl"], files()


@test
def ctrl_c_that_no_search_hears_ends_the_program_without_output():
    """The order is given: what takes long is the search of the loops."""
    path = "".join("(0,1)" for _ in range(59))
    child = subprocess.Popen([support.ARGS.tdslc, *EQUATION, "--effort=100000", "--path=" + path, "-o", "k.c"],
                             stderr=subprocess.PIPE)
    time.sleep(1)
    equal(child.poll(), None, "it takes long")
    child.send_signal(signal.SIGINT)
    equal((child.wait(60), child.stderr.read()), (-signal.SIGINT, b""))
    child.stderr.close()
    child = subprocess.Popen([support.ARGS.tdslc, *EQUATION, "--effort=100000", "-o", "k.c"], stderr=subprocess.PIPE)
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    assert b"best contraction order so far" in child.stderr.readline()
    child.send_signal(signal.SIGINT)  # once more: the loops are searched for now
    equal((child.wait(60), child.stderr.read(), files()), (-signal.SIGINT, b"", []))
    child.stderr.close()


@test
def a_search_that_takes_long_shows_where_it_is():
    operands = OPERANDS
    write("n.json", json.dumps({"inputs": operands, "output": [], "sizes": [2] * 60}))
    equation = [*EQUATION, "--effort=4"]
    line = re.compile(r"\r([\w-]+) +10\^\d+\.\d{3}  largest 2\^\d+\.\d +(\d+) %  (\d+) s\033\[K")
    for command in ([support.ARGS.tdslc, "--emit=path", "--network=n.json", "--effort=4"],
                    [support.ARGS.tdslc, *equation, "--dump=path"]):
        text, status = on_terminal(*command)
        equal(status, 0)
        shown = [(int(m[2]), int(m[3])) for m in line.finditer(text)]
        assert len(shown) >= 3, text
        equal(text, "".join(m[0] for m in line.finditer(text)) + "\r\033[K")
        equal(shown, sorted(shown), "percent and seconds grow")
        assert shown[0][0] < 60 and 80 <= shown[-1][0] <= 100, shown
    command = [word.replace("--effort=4", "--effort=2") for word in command]
    assert line.search(on_terminal(*command)[0])
    equal(run(*command).err, b"")  # no terminal
    equal(on_terminal(*command, term="dumb")[0], "")
    equal(on_terminal(support.ARGS.tdslc, "--emit=path", *CHAIN)[0], "")  # soon done


@test
def bad_networks_are_refused():
    good = {"inputs": [[0, 1], [1, 2]], "output": [0, 2], "sizes": [2, 3, 4], "more": "ignored"}
    write("n.json", json.dumps(good))
    check_report(good, json.loads(tdslc("--emit=path", "--report=json", "--network=n.json").text))
    bad = ["", "{", "[]", "null", "3", "{}", "[" * 100000, json.dumps({**good, "inputs": []}),
           json.dumps({**good, "inputs": [[0, 5], [1]]}), json.dumps({**good, "sizes": [2, -3, 4]}),
           json.dumps({**good, "sizes": [2, "x", 4]}), json.dumps({**good, "output": [7]}),
           json.dumps({**good, "output": "02"}), json.dumps({**good, "sizes": [2, 3]}),
           json.dumps({**good, "inputs": [[0, -1], [1, 2]]}), json.dumps({**good, "inputs": [[0, 1.5], [1]]}),
           json.dumps({**good, "sizes": [2, 10 ** 30, 4]}), json.dumps({**good, "output": [0, 0]}),
           json.dumps({**good, "output": [2, 0, 2]}),
           json.dumps({**good, "sizes": {"0": 2, "1": 3, "02": 4}}), json.dumps({**good, "sizes": {"0": 2, "1": 3, "2": 4, "02": 4}}),
           json.dumps({**good, "sizes": {"0": 2, "1": 3, "2": 4, "99999999999": 4}}), json.dumps({**good, "sizes": [2, 3.0, 4]}),
           json.dumps({**good, "inputs": [[0, True], [1, 2]]}), json.dumps({**good, "sizes": [2, 2 ** 62 + 1, 4]}),
           json.dumps(good) + "x", json.dumps(good) + json.dumps(good), json.dumps(good)[:-1] + ', "sizes": [2, 3, 4]}']
    for text in bad:
        write("n.json", text)
        tdslc("--emit=path", "--network=n.json", "-o", "r.json", status=(1, 4))
    for output, why in (([0, 0], "label 0 of 'output' is there twice"), ([1, 2, 1], "label 1 of 'output' is there twice")):
        write("n.json", json.dumps({**good, "output": output}))
        done = tdslc("--emit=path", "--network=n.json", status=1)
        assert "E0304" in done.messages and why in done.messages, done.messages
    assert "E0304" in tdslc("-e", "i->ii", "--shape=2", status=1).messages
    text = json.dumps(good)
    for at in range(len(text) + 1):  # wherever it stands
        write("n.json", text[:at] + "\0" + text[at:])
        assert "NUL" in tdslc("--emit=path", "--network=n.json", status=1).messages
    write("n.json", json.dumps({**good, "sizes": {"0": 2, "1": 3, "2": 4}}))
    check_report(good, json.loads(tdslc("--emit=path", "--report=json", "--network=n.json").text))
    tdslc("--network=n.json", status=2)
    tdslc("--emit=path", "--network=absent.json", status=3)
    assert not os.path.exists("r.json")


if __name__ == "__main__":
    sys.exit(main())
