# SPDX-License-Identifier: Apache-2.0
"""`python -m tdsl.explore`: what its server answers, whom it refuses, and what is left when it has ended."""
import base64
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

PRODUCT = """kernel product(A: f64[m, k], B: f64[k, n]) -> (C: f64[m, n]) {
    C[i,j] = A[i,l] * B[l,j];
}
"""
# Looks up 10^11 elements one by one: seconds in any machine.
LONG = "kernel slow(A: f64[n, n], B: f64[n, n], C: f64[n, n]) -> (D: f64) { D = sum[i,j,k,l](sin(A[i,j] * B[k,l]) * C[i,l]); }"


class Explore(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = os.path.join(self.scratch.name, "work")
        os.mkdir(self.folder)
        self.server = None

    def start(self, *arguments, tdslc=None):
        self.tmp = os.path.join(self.scratch.name, "tmp")
        os.makedirs(self.tmp, exist_ok=True)
        self.server = subprocess.Popen([sys.executable, "-B", "-m", "tdsl.explore", "--no-browser", *arguments], cwd=self.folder, env={**os.environ, "TMPDIR": self.tmp, **({"TDSL_TDSLC": tdslc} if tdslc else {})},
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end)
        self.address = self.server.stdout.readline().strip()
        self.assertRegex(self.address, r"^http://127\.0\.0\.1:\d+/[\w-]{32}/$", self.address)
        self.host, self.path = self.address[7:].split("/", 1)
        self.path = "/" + self.path

    def end(self, number=signal.SIGINT):
        """What the server says at its end."""
        if self.server.poll() is None:
            self.server.send_signal(number)
        said = self.server.communicate(timeout=30)[1]
        return self.server.returncode, said

    def ask(self, path, body=None, method=None, **headers):
        """(status, text, headers) of a request."""
        connection = http.client.HTTPConnection(self.host, timeout=60)
        headers = {"Content-Type": "application/json", "Origin": "http://" + self.host, **{k.replace("_", "-"): v for k, v in headers.items()}}
        connection.request(method or ("GET" if body is None else "POST"), path, body, {k: v for k, v in headers.items() if v is not None})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text, dict(answer.getheaders())

    def look(self, program, what="look", **more):
        status, text, _ = self.ask(self.path + what, json.dumps({"program": program, **more}))
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def test_views(self):
        self.start()
        said = self.look(PRODUCT, tab="report", sizes={"m": 100, "k": 100, "n": 100, "gone": 3})
        self.assertEqual((said["messages"], said["report"]["kernels"][0]["typical"]), ([], {"m": 100, "k": 100, "n": 100}))
        self.assertEqual(said["report"]["kernels"][0]["multiply_adds"], 1000000)
        self.assertIn("<h2>kernel product</h2>", said["view"]["html"])
        self.assertIn(["nest {", 0], [[line.strip(), of] for line, of in self.look(PRODUCT, tab="nest")["view"]["lines"]])
        lines = self.look(PRODUCT, tab="c")["view"]["lines"]
        self.assertEqual({of for _, of in lines}, {0, 2})
        self.assertFalse([line for line, _ in lines if line.startswith("#line") or self.scratch.name in line])
        lines = self.look(PRODUCT, tab="nki", sizes={"m": 100, "k": 200, "n": 300}, f32=True)["view"]["lines"]
        self.assertIn("    assert A.shape == (100, 200) and B.shape == (200, 300)", [line for line, _ in lines])
        self.assertEqual({of for _, of in lines}, {0, 2})
        self.assertIn("does not have f64", self.look(PRODUCT, tab="nki")["view"]["failed"])
        self.assertEqual(self.look(PRODUCT.replace("    ", ""), "format")["program"], PRODUCT)

    def test_messages_have_their_place_as_a_browser_counts(self):
        self.start()
        said = self.look("// \U0001d6fc \u00e9\n" + PRODUCT.replace("B[l,j]", "B[l]"))
        self.assertEqual(said["report"], None)
        (message,) = said["messages"]
        text = ("// \U0001d6fc \u00e9\n" + PRODUCT.replace("B[l,j]", "B[l]")).encode("utf-16-le")
        self.assertEqual((message["code"], text[2 * message["at"][0]:2 * message["at"][1]].decode("utf-16-le")), ("E0204", "B[l]"))
        for broken in ("", "kernel", "kernel f(", "\0", "\"" * 1000, "kernel f(A: f64[n]) -> (C: f64) { C = sum[i](A[i]", "(" * 100000):
            self.assertIn("messages", self.look(broken), broken[:30])
        self.assertIn("surrogates", self.look("\ud800")["stopped"])

    def test_run(self):
        self.start()
        said = self.look(PRODUCT, "run", sizes={"m": 64, "k": 64, "n": 64})
        self.assertEqual((said["kernel"], said["sizes"], said["multiply_adds"]), ("product", {"m": 64, "k": 64, "n": 64}, 64**3), said)
        self.assertTrue(0 < said["seconds"] <= said["median"] < 1, said)
        self.assertIn("C : f64[64, 64]", said["said"])
        said = self.look("kernel rows(W: f64[v, e], tok: i64[n]) -> (R: f64[n, e]) { R[i,j] = W[tok[i],j]; }", "run")
        self.assertTrue(said["zeros"], said)
        self.assertIn("more than half of this machine's memory", self.look(PRODUCT, "run", sizes={"m": 10**6, "k": 10**6, "n": 10})["failed"])
        self.assertIn("E0101", self.look("kernel", "run")["failed"])

    def test_schedule(self):
        self.start()
        said = self.look(PRODUCT, "schedule", sizes={"m": 200, "k": 150, "n": 140}, f32=True)
        self.assertEqual((said["kernel"], said["target"], said["tracks"][0]), ("product", "trn2", "Tensor"), said)
        self.assertIn("line 2: C[i,j] = A[i,l] * B[l,j];", said["statements"])
        self.assertTrue(all(0 <= start and start + length <= said["end"] + 1e-6 for _, _, start, length in said["spans"]), said)
        for track, busy in enumerate(said["busy"]):  # neighbours are joined over small gaps
            joined = sum(length for t, _, _, length in said["spans"] if t == track)
            self.assertTrue(busy - 1e-6 <= joined <= busy + 0.1 * said["end"], (track, busy, joined))
        self.assertIn("does not have f64", self.look(PRODUCT, "schedule")["failed"])

    def test_a_fault_of_the_compiler_leaves_no_script(self):
        real = os.environ["TDSL_TDSLC"]
        with open(os.path.join(self.scratch.name, "tdslc"), "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\necho "$@" >> {self.scratch.name}/calls\nexec {real} "$@"\n')
        os.chmod(f.name, 0o755)
        self.start(tdslc=f.name)
        for tab in "report", "nest", "c", "nki":
            self.look(PRODUCT, tab=tab, f32=True)
        self.look(PRODUCT, "format")
        with open(os.path.join(self.scratch.name, "calls"), encoding="utf-8") as f:
            calls = f.read().splitlines()
        self.assertEqual(len(calls), 9)
        for call in calls:
            self.assertTrue("--reproducer=/dev/null" in call or call.startswith("fmt "), call)

    def test_views_are_of_one_kernel(self):
        self.start()
        both = PRODUCT + "kernel twice(a: f64[n]) -> (b: f64[n]) { b[i] = 2*a[i]; }\n"
        for asked, shown, other in (("", "product", "twice"), ("twice", "twice", "product"), ("gone", "product", "twice")):
            html = self.look(both, tab="report", kernel=asked)["view"]["html"]
            self.assertTrue(f"kernel {shown}</h2>" in html and f"kernel {other}</h2>" not in html, asked)
        self.assertEqual(len(self.look("// nothing yet\n", tab="c")["messages"]), 1)

    def test_profile(self):
        self.start()
        said = self.look(PRODUCT, "profile", sizes={"m": 64, "k": 64, "n": 64})
        (row,) = said["statements"]
        self.assertEqual((said["kernel"], row["line"], row["text"]), ("product", 2, "C[i,j] = sum[l](A[i,l] * B[l,j])"), said)
        self.assertTrue(said["command"].endswith("--profile"), said)
        self.assertNotIn(self.tmp, json.dumps(said))
        self.assertIn("E0101", self.look("kernel", "profile")["failed"])

    def test_who_is_refused(self):
        self.start()
        question = json.dumps({"program": PRODUCT})
        status, text, headers = self.ask(self.path)
        self.assertEqual((status, self.ask(self.path + "page.js")[0], self.ask(self.path + "page.css")[0]), (200, 200, 200))
        self.assertIn('<textarea id="program"', text)
        self.assertIn("default-src 'none'; script-src 'self'", headers["Content-Security-Policy"])
        self.assertNotIn("Access-Control-Allow-Origin", headers)
        token = self.path.strip("/")
        for path in ("/", "/look", "/page.js", f"/{token[:-1]}/look", f"/{token}x/look", f"/{token}", "/%2e%2e/etc/passwd", f"/x/../{token}/"):
            for body in (None, question):
                self.assertEqual(self.ask(path, body)[0], 403, path)
        for headers in ({"Host": "evil.example"}, {"Host": "localhost:" + self.host.split(":")[1]}, {"Origin": "http://evil.example"}, {"Origin": "null"},
                        {"Origin": "http://127.0.0.1"}):
            self.assertEqual(self.ask(self.path + "look", question, **headers)[0], 403, headers)
            self.assertEqual(self.ask(self.path, **headers)[0], 403, headers)
        self.assertEqual(self.ask(self.path + "look", question, Origin=None)[0], 200)  # a program of the user's
        for path, body, expected, headers in ((self.path + "look", "{", 400, {}), (self.path + "look", "[]", 400, {}), (self.path + "look", question, 400, {"Content_Type": "text/plain"}),
                                              (self.path + "look", '{"sizes": {"n": "1"}}', 400, {}), (self.path + "look", '{"sizes": {"n=1 -o x": 1}}', 400, {}),
                                              (self.path + "look", '{"kernel": "--report"}', 400, {}), (self.path + "look", '{"target": "../c"}', 400, {}),
                                              (self.path + "look", "[" * 100000, 400, {}), (self.path + "look", "x", 413, {"Content_Length": "9999999"}),
                                              (self.path + "other", question, 404, {}), (self.path + "_server.py", None, 404, {}), (self.path, question, 404, {})):
            self.assertEqual(self.ask(path, body, **headers)[0], expected, (path, body and body[:40]))
        self.assertEqual(self.ask(self.path, method="DELETE")[0], 501)
        with open("/proc/net/tcp", encoding="ascii") as f:
            port = f":{int(self.host.split(':')[1]):04X}"
            self.assertEqual({line.split()[1] for line in f if line.split()[1].endswith(port) and line.split()[3] == "0A"}, {"0100007F" + port})

    def tools(self):
        """Processes of the server that are not it."""
        done = subprocess.run(["ps", "-eo", "ppid=,args="], capture_output=True, text=True, check=True).stdout
        return [line for line in done.splitlines() if line.split()[0] == str(self.server.pid)]

    def test_what_nobody_waits_for_is_ended(self):
        self.start()
        body = json.dumps({"program": LONG, "sizes": {"n": 3000}}).encode()
        with socket.create_connection((self.host.split(":")[0], int(self.host.split(":")[1]))) as s:
            s.sendall(f"POST {self.path}run HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            end = time.monotonic() + 30
            while not any("tdsl-run" in line for line in self.tools()):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.02)
        end = time.monotonic() + 10
        while self.tools():
            self.assertLess(time.monotonic(), end, self.tools())
            time.sleep(0.02)
        self.assertEqual(self.look(PRODUCT)["messages"], [])

    def test_nothing_is_left(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            self.start()
            self.look(PRODUCT, tab="c")
            self.look(PRODUCT, "run")
            self.assertEqual(len(os.listdir(self.tmp)), 1)
            status, said = self.end(number)
            self.assertEqual((status, os.listdir(self.tmp), os.listdir(self.folder)), (0, [], []), said)
            self.assertNotIn("Traceback", said)

    def test_what_it_begins_with(self):
        with open(os.path.join(self.folder, "sums.tdsl"), "w", encoding="utf-8") as f:
            f.write('include "other.tdsl";\n' + PRODUCT)
        with open(os.path.join(self.folder, "other.tdsl"), "w", encoding="utf-8") as f:
            f.write("kernel twice(a: f64[n]) -> (b: f64[n]) { b[i] = 2*a[i]; }\n")
        self.start("sums.tdsl")
        held = lambda: json.loads(self.ask(self.path)[1].split('id="start">')[1].split("</script>")[0])
        self.assertEqual(held()["program"], 'include "other.tdsl";\n' + PRODUCT)
        self.assertEqual([k["name"] for k in self.look(held()["program"])["report"]["kernels"]], ["twice", "product"])
        self.end()
        text = PRODUCT + "// </script><b>"
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        data = packer.compress(json.dumps({"program": text, "sizes": {"m": 7}}).encode()) + packer.flush()
        self.start("http://127.0.0.1:1/x/#p=" + base64.urlsafe_b64encode(data).decode().rstrip("="))
        self.assertEqual(held(), {"program": text, "sizes": {"m": 7}})
        self.end()
        for words, said in ((["none.tdsl"], "none.tdsl: No such file"), (["#p=AAAA"], "this link holds no program")):
            done = subprocess.run([sys.executable, "-B", "-m", "tdsl.explore", "--no-browser", *words], cwd=self.folder, capture_output=True, text=True, timeout=30, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(said, done.stderr)
            self.assertNotIn("Traceback", done.stderr)


unittest.main()
