#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tdslc --lsp as an editor uses it, by a client that speaks the protocol: whole, broken and half-typed texts, random edits, and input
that is no protocol at all. See cli.py."""
import glob
import json
import os
import random
import signal
import sys
import time

import support
from support import *
from lsp_client import Client, Document, Refused, frame

MP2 = (ROOT / "docs/architecture.md").read_text().split("```tdsl mp2.tdsl\n")[1].split("```")[0]
HIERARCHY = {"textDocument": {"documentSymbol": {"hierarchicalDocumentSymbolSupport": True}}}


def server(*args, capabilities=HIERARCHY, **more):
    return Client([support.ARGS.tdslc, "--lsp", *args], capabilities, **more)


def refused(code, ask, *args, **more):
    try:
        answer = ask(*args, **more)
    except Refused as refusal:
        equal(refusal.code, code)
        return refusal.message
    raise AssertionError(f"an answer where {code} is right: {answer}")


def words(client, data):
    """Semantic tokens as (line, unit, length, type, modifiers)."""
    legend = client.capabilities["semanticTokensProvider"]["legend"]
    line = unit = 0
    for k in range(0, len(data), 5):
        line, unit = line + data[k], data[k + 1] + (unit if data[k] == 0 else 0)
        modifiers = {name for bit, name in enumerate(legend["tokenModifiers"]) if data[k + 4] >> bit & 1}
        yield line, unit, data[k + 2], legend["tokenTypes"][data[k + 3]], modifiers


def labels(document, params):
    return [item["label"] for item in document.ask("completion", params)["items"]]


def text_of(hover):
    return hover["contents"]["value"]


# ---- from initialize to exit

@test
def it_ends_as_the_protocol_says():
    with server() as client:
        equal(client.finish(), 0)
    for words_ in ([("exit", None)], []):  # without shutdown; and an input that ends
        with server() as client:
            for method, params in words_:
                client.tell(method, params)
            client.process.stdin.close()
            equal(client.process.wait(60), 1)
    master, slave = pty.openpty()  # typed by hand it says what it waits for
    by_hand = subprocess.Popen([support.ARGS.tdslc, "--lsp"], stdin=slave, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert b"Ctrl-D" in by_hand.stderr.readline()
    os.write(master, b"\x04")
    equal(by_hand.wait(60), 1)
    os.close(master)
    os.close(slave)
    by_hand.stderr.close()
    tdslc("--lsp", "k.tdsl", status=2)
    tdslc("--lsp", "--target=tea", status=2)


@test
def what_comes_in_a_wrong_order_is_answered():
    with server(capabilities=None) as client:
        refused(-32002, client.ask, "textDocument/hover", {})
        refused(-32002, client.ask, "shutdown")
        client.tell("textDocument/didOpen", {"textDocument": {"uri": "file:///a", "version": 1, "text": "kernel"}})
        client.ask("initialize", {"capabilities": {}})
        refused(-32600, client.ask, "initialize", {"capabilities": {}})
        refused(-32602, client.ask, "textDocument/hover", {"textDocument": {"uri": "file:///a"}, "position": {"line": 0, "character": 0}})
        client.ask("shutdown")
        refused(-32600, client.ask, "textDocument/hover", {})
        refused(-32600, client.ask, "shutdown")
        client.tell("exit")
        equal(client.process.wait(60), 0)


NONSENSE = [  # bytes, and the code that is answered
    (frame(b"{"), -32700),
    (frame(b""), -32700),
    (frame(b"\xff\xfe"), -32700),
    (frame(b'{"jsonrpc": "2.0", "id": 5, "method": "x\\ud800"}'), -32700),
    (frame(b"[" * 100000), -32700),
    (frame(b"[]"), -32600),
    (frame(b"17"), -32600),
    (frame(b'{"jsonrpc": "2.0", "id": {}, "method": "shutdown"}'), -32600),
    (frame(b'{"jsonrpc": "2.0", "id": 7}'), -32600),
    (b"Content-Length: x\r\n\r\n", -32700),
    (b"Content-Length: -4\r\n\r\n", -32700),
    (b"Content-Length: 99999999999999999999999\r\n\r\n{}", -32700),
    (b"Content-Length: 4294967296\r\n\r\n{}", -32700),
    (b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", -32700),
    (b"Content-Type: text\r\n\r\n{}", -32700),
    (b"\r\n\r\n", -32700),
    (b"x" * 10000, -32700),
]


@test
def nonsense_is_answered_and_what_follows_is_understood():
    with server() as client:
        for data, code in NONSENSE:
            client.put(data)
            message = client.receive()
            assert message.get("id") in (None, 7), message
            equal(message["error"]["code"], code, data[:60])
            refused(-32601, client.ask, "textDocument/nothing")
        client.put(b"content-length:   58  \r\nContent-Type: application/json\r\n\r\n" +
                   b'{"jsonrpc": "2.0", "id": "a", "method": "textDocument/no"}')
        equal(client.receive()["id"], "a")
        client.send({"jsonrpc": "2.0", "id": "b", "result": None})  # an answer to nothing
        client.tell("$/setTrace", {"value": "off"})
        client.tell("nothing/known", [])
        equal(client.finish(), 0)


WRONG = [{}, [], None, 3, {"textDocument": 1}, {"textDocument": {}}, {"textDocument": {"uri": 1}}, {"textDocument": {"uri": "file:///none"}},
         {"textDocument": {"uri": "file:///tmp/k.tdsl"}, "position": {"line": -1, "character": 0}, "range": 1, "newName": 4},
         {"textDocument": {"uri": "file:///tmp/k.tdsl"}, "position": {"line": 1e9, "character": "a"}},
         {"textDocument": {"uri": "file:///tmp/k.tdsl"}, "position": {"line": 2147483647, "character": 2147483647}, "newName": "",
          "range": {"start": {"line": 1}, "end": None}, "context": []},
         {"textDocument": {"uri": "file:///tmp/k.tdsl"}, "position": {"line": 2, "character": 8}, "newName": "9a", "contentChanges": [{"range": 7, "text": "a"}, 3]},
         {"textDocument": {"uri": "file:///tmp/k.tdsl", "text": 5}, "contentChanges": {"text": "a"}}]
REQUESTS = "hover definition references documentHighlight documentSymbol prepareRename rename formatting codeAction completion semanticTokens/full".split()


@test
def params_of_any_kind_are_answered():
    with server() as client:
        document = Document(client, MP2)
        for params in WRONG:
            for method in REQUESTS:
                try:
                    client.ask("textDocument/" + method, params)
                except Refused as refusal:
                    assert refusal.code in (-32602, -32803), (method, params, refusal.code)
            for method in ("didOpen", "didChange", "didClose"):
                if method != "didClose" or (params or 0) != WRONG[8]:
                    client.tell("textDocument/" + method, params)
            if document.uri not in str(params):
                continue
            document = Document(client, MP2)
        equal(document.diagnostics(), [])


@test
def a_request_that_waits_is_cancelled():
    with server() as client:
        numbers = [client.begin("textDocument/nothing") for _ in range(3)]
        slow = Document(client, slow_text())
        number = client.begin("textDocument/hover", slow.at("A0", 1))
        client.tell("$/cancelRequest", {"id": number})
        refused(-32800, client.end, number)
        client.tell("$/cancelRequest", {"id": 1000})
        client.tell("$/cancelRequest", {})
        for number in numbers:
            refused(-32601, client.end, number)
        equal(client.finish(), 0)


def slow_text(factors=40):
    """A kernel whose price takes seconds: many contractions of many operands."""
    params = ", ".join(f"A{k}: f64[d{k}, d{(k * 7 + 1) % factors}, d{(k * 5 + 2) % factors}]" for k in range(factors))
    product = " * ".join(f"A{k}[i{k},i{(k * 7 + 1) % factors},i{(k * 5 + 2) % factors}]" for k in range(factors))
    return f"kernel slow({params}) -> (R: f64) {{ R = sum[{', '.join(f'i{k}' for k in range(factors))}]({product}); }}\n"


# ---- messages and cures

@test
def mistakes_are_told_as_they_are_typed_and_cured():
    with server() as client:
        document = Document(client, MP2)
        equal(document.diagnostics(), [])
        for wrong, right, code in (("eo[i] +", "e0[i] +", "E0201"), ("ev[b];", "ev[b]", "E0101"), ("f64[o]", "double[o]", "E0201")):
            at = document.text.index(wrong)
            document.replace(at, at + len(wrong), right)
            said = document.diagnostics()
            equal([d["code"] for d in said], [code])
            actions = document.ask("codeAction", {**document.where(), "range": said[0]["range"], "context": {"diagnostics": said}})
            equal(actions[0]["diagnostics"], said)
            document.write(document.apply(actions[0]["edit"]["changes"][document.uri]))
            equal(document.diagnostics(), [])
            equal(document.text, MP2)
        equal(document.ask("codeAction", {**document.where(), "range": {"start": document.place(0), "end": document.place(len(MP2))},
                                          "context": {"diagnostics": [], "only": ["refactor"]}}), [])


@test
def places_count_utf_16():
    with server() as client:
        document = Document(client, "kernel f(x: f64[n]) -> (R: f64[n]) {\r\n    /* \U0001f600é */ R[i] = xs[i]; // \U0001f600\r\n}\r\n")
        said, = [d for d in document.diagnostics() if d["code"] == "E0201"]
        equal(said["range"], {"start": {"line": 1, "character": 21}, "end": {"line": 1, "character": 23}})
        document.replace(document.text.index("xs"), document.text.index("xs") + 2, "x")
        equal(document.diagnostics(), [])
        # A place beyond a line is its end, in the middle of a character before it.
        client.tell("textDocument/didChange", {"textDocument": {"uri": document.uri, "version": 3}, "contentChanges": [
            {"range": {"start": {"line": 1, "character": 999}, "end": {"line": 1, "character": 999}}, "text": "!"},
            {"range": {"start": {"line": 1, "character": 8}, "end": {"line": 1, "character": 8}}, "text": "?"}]})
        document.version = 3
        document.text = document.text.replace("// \U0001f600", "// \U0001f600!").replace("\U0001f600é", "?\U0001f600é")
        equal(document.diagnostics(), [])
        document.replace(document.text.index("R[i] ="), document.text.index("R[i] =") + 1, "S")
        assert "result 'R' is never assigned" in str(document.diagnostics())


@test
def a_message_of_another_file_stands_at_its_include():
    write("part.tdsl", "kernel part(x: f64[n]) -> (R: f64[n]) { R[i] = y[i]; }\n")
    write("main.tdsl", 'include "part.tdsl";\nkernel f(x: f64[n]) -> (R: f64[n]) { R[i] = x[i]; }\n')
    uri = pathlib.Path("main.tdsl").resolve().as_uri()
    other = pathlib.Path("part.tdsl").resolve().as_uri()
    with server() as client:
        document = Document(client, read("main.tdsl").decode(), uri)
        said = document.diagnostics()[0]
        equal(said["range"]["start"]["line"], 0)
        equal(said["relatedInformation"][0]["location"]["uri"], other)
        # The editor's text of the included file counts, written or not.
        part = Document(client, read("part.tdsl").decode().replace("y[i]", "2*x[i]"), other)
        equal(part.diagnostics(), [])
        client.ask("textDocument/documentSymbol", document.where())
        equal(client.published[uri]["diagnostics"], [])
        equal(document.ask("definition", document.at("part.tdsl"))["uri"], other)


# ---- what is known of names

@test
def a_name_shows_its_type_its_home_and_the_price_of_its_line():
    with server() as client:
        document = Document(client, MP2)
        for what, number, expected in (("T[", 0, ["T: f64[o, v, o, v]", "value of `mp2_energy`", "on chip", "this line: ", " of "]),
                                       ("B[", 0, ["B: f64[o, v, x]", "parameter", "in memory: 6.0 MiB"]),
                                       ("a,j", 0, ["a < v", "index"]), ("o ~", 0, ["dim o ~ 16", "planned"]), ("P]", 0, ["P < x"]),
                                       ("mp2_energy", 0, ["kernel mp2_energy(B", "a call takes", "at o = 16, v = 128, x = 384"]),
                                       ("sum", 0, ["sum[i]"]), ("f64", 0, ["8 bytes"])):
            text = text_of(document.ask("hover", document.at(what, number)))
            for part in expected:
                assert part in text, (what, part, text)
        equal(document.ask("hover", document.at("= B")), None)
        shown = re.search(r"```text\n(.*?)```", (ROOT / "docs/editors/README.md").read_text(), re.S)[1].splitlines()
        text = text_of(document.ask("hover", document.at("T[")))
        for part in shown[:3]:  # what the model says of the line may change
            assert part in text, (part, text)
    with server("--target=trn2", "-D", "o=16", "-D", "v=128", "-D", "x=384") as client:
        document = Document(client, MP2.replace("f64", "f32"))
        assert "a call takes" in text_of(document.ask("hover", document.at("mp2_energy")))


LIBRARY = """include <nn.tdsl>;
const scale = 0.5;
dim s ~ 64, c;
kernel twice(x: float[n]) -> (y: float[n]) { y[n] = 2*x[n]; }
kernel block(x: f32[s, c] shard(r(s)), n: f32[c], g: f32[c]) -> (y: f32[s, c]) {
    t[s,c] = rmsnorm[c](x[s,c], g[c], 1e-5) * scale;
    y[s,c] = twice[c](t[s,c]) + n[c] * extent(c) + sum[k](t[s,k] * t[s,c]) * f32(index(s));
    spill t;
}
kernel dblock = vjp block(x, g);
"""


@test
def names_are_followed_and_given_anew():
    with server() as client:
        document = Document(client, LIBRARY)
        equal([d for d in document.diagnostics() if d["severity"] == 1 and d["code"] != "E0213"], [])
        for what, number, defined, count in (("t[s,k]", 0, "t[s,c] = rms", 5), ("scale", 1, "scale = 0.5", 2), ("twice[c]", 0, "twice(x", 2),
                                             ("x[s,c]", 0, "x: f32", 3), ("extent(c)", 0, None, 1), ("c) +", 0, "c;\nkernel", 6), ("k]", 0, "k](t", 2),
                                             ("block(x,", 0, "block(x: f32", 2)):
            params = document.at(what, number)
            found = document.ask("definition", params)
            places = document.ask("references", params, context={"includeDeclaration": True})
            equal(len(places), count, (what, [document.cut(p["range"]) for p in places]))
            equal(len(document.ask("documentHighlight", params)), count)
            if defined is None:
                equal(found, None)
                refused(-32803, document.ask, "rename", params, newName="other")
                continue
            equal(document.offset(found["range"]["start"]), document.text.index(defined), what)
            equal(document.ask("prepareRename", params)["placeholder"], document.cut(found["range"]))
            text = document.apply(document.ask("rename", params, newName="other")["changes"][document.uri])
            write("a.tdsl", document.text)
            write("b.tdsl", text)
            names = [re.sub(r"\b(other|%s)\b" % document.cut(found["range"]), "N", tdslc("--dump=ast", f, status=(0, 1)).text) for f in ("a.tdsl", "b.tdsl")]
            equal(names[0].replace("a.tdsl", ""), names[1].replace("b.tdsl", ""), what)
            equal(tdslc("--stop-after=graph", "b.tdsl", status=(0, 1)).status, tdslc("--stop-after=graph", "a.tdsl", status=(0, 1)).status)
        refused(-32602, document.ask, "rename", document.at("t[s,k]"), newName="kernel")
        refused(-32803, document.ask, "rename", document.at("t[s,k]"), newName="x")
        refused(-32803, document.ask, "rename", document.at("k]"), newName="c")
        refused(-32803, document.ask, "rename", document.at("rmsnorm"), newName="other")


def graph_of(text, *names):
    """The graph of a program without places and texts, names folded into one; or None."""
    done = tdslc("-", "-w", "--dump=graph", stdin=text.encode(), status=None)
    dump = re.sub(r" at \d+:\d+|statement .*|signature .*", " ", done.text)
    return None if done.status else re.sub(r"[A-Za-z_]\w*", lambda m: re.sub("|".join(names), "N", m[0]), dump)


@test
def a_new_name_changes_no_program():
    """Names of the programs of the tests, drawn at random: indices, dims and values may be called alike."""
    rng = random.Random(int(os.environ.get("TDSL_SEED", "1")))
    renamed = 0
    with server() as client:
        for path in share(sorted((ROOT / "tests/programs").glob("*.tdsl")), 4, 1):
            text = path.read_text()
            document = Document(client, text, path.as_uri())
            code = re.sub(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"', lambda m: " " * len(m[0]), text, flags=re.S)
            places = [m for m in re.finditer(r"\b[A-Za-z_]\w*", code)]
            for m in rng.sample(places, 8):
                try:
                    edits = document.ask("rename", {**document.where(), "position": document.place(m.start())}, newName="zq")
                except Refused:
                    continue  # of the language
                equal(graph_of(document.apply(edits["changes"][document.uri]), "zq", m[0]), graph_of(text, "zq", m[0]), (path.name, m[0], m.start()))
                renamed += 1
            client.tell("textDocument/didClose", document.where())
    assert renamed > 5


@test
def the_outline_has_kernels_and_their_values():
    for capabilities in (HIERARCHY, {}):
        with server(capabilities=capabilities) as client:
            document = Document(client, LIBRARY)
            items = document.ask("documentSymbol")
            top = [item["name"] for item in items if "containerName" not in item]
            equal(top, ["scale", "s", "c", "twice", "block", "dblock"])
            block = items[4]["children"] if capabilities else [item for item in items if item.get("containerName") == "block"]
            equal([item["name"] for item in block], ["x", "n", "g", "y", "t"])


@test
def every_token_has_its_kind():
    with server() as client:
        document = Document(client, LIBRARY + "/* two\nlines */ // \U0001f600\n")
        found = {}
        lines = document.text.split("\n")
        for line, unit, length, kind, modifiers in words(client, document.ask("semanticTokens/full")["data"]):
            text = lines[line].encode("utf-16-le")[2 * unit:2 * (unit + length)].decode("utf-16-le")
            found.setdefault(text, set()).add(kind)
            assert text not in ("sum", "f32") or "defaultLibrary" in modifiers
        for text, kind in (("kernel", "keyword"), ("t", "variable"), ("scale", "variable"), ("sum", "function"), ("twice", "function"), ("f32", "type"),
                           ("k", "property"), ("0.5", "number"), ("shard", "decorator"), ("r", "typeParameter"), ("/* two", "comment"),
                           ("lines */", "comment"), ("// \U0001f600", "comment"), ("<nn.tdsl>", "string"), ("vjp", "keyword")):
            equal(found.get(text), {kind}, text)


@test
def completion_knows_the_place():
    with server() as client:
        document = Document(client, LIBRARY)
        for before, has, lacks in (("\nincl", ["include", "kernel", "dim"], ["sum", "t"]), ("\ninclude <n", ["nn.tdsl", "chem.tdsl"], ["sum"]),
                                   ("\nkernel g(x: f", ["f64", "bf16", "inout"], ["sum", "s"]), ("\nkernel g(x: f64[s", ["s", "c", "scale"], ["sum", "f64"]),
                                   ("\nkernel g(x: f64[s] sy", ["symmetric", "shard"], ["f64"]), ("\nkernel g = gr", ["grad", "vjp", "block"], ["f64", "t"]),
                                   ("\nkernel g(x", [], ["f64", "s"]), ("// su", [], ["sum"])):
            document.write(LIBRARY + before)
            found = labels(document, {**document.where(), "position": document.place(len(document.text))})
            assert set(has) <= set(found) and not set(lacks) & set(found), (before, found)
        head, tail = LIBRARY.split("    spill t;")
        for before, has, lacks in (("    z", ["t", "x", "y", "twice", "spill"], ["sum", "f64"]), ("    z[s,c] = ex", ["exp", "t", "scale", "rmsnorm", "f64"], ["kernel"]),
                                   ("    z[s,c] = t[s, c] * sum[q](t[s,", ["s", "c", "q"], ["sum", "twice"]), ("    z: f", ["f64", "i32"], ["t"]),
                                   ("    z[s,c] = t[s,c] * extent(", ["s", "c"], ["t", "sum"]), ("    z[s,c] = t[s,c] * index(", ["s", "c"], ["t", "sum"])):
            document.write(head + before + tail)
            found = labels(document, {**document.where(), "position": document.place(len(head + before))})
            assert set(has) <= set(found) and not set(lacks) & set(found), (before, found)


@test
def the_layout_is_that_of_fmt():
    with server() as client:
        document = Document(client, LIBRARY.replace(" * ", "*").replace("    t[", " t["))
        write("a.tdsl", document.text)
        edits = document.ask("formatting", options={"tabSize": 4, "insertSpaces": True})
        equal(document.apply(edits), tdslc("fmt", "-", stdin=document.text.encode()).text)
        document.write(document.apply(edits))
        equal(document.ask("formatting", options={}), [])
        document.write("kernel f(")
        equal(document.ask("formatting", options={}), None)


# ---- texts that are not whole

@test
def a_half_typed_text_keeps_its_last_meaning():
    with server() as client:
        document = Document(client, MP2)
        document.diagnostics()
        document.replace(MP2.index("    E ="), MP2.index("}"), "    E = sum[i,j,a,b](T[i,a,")
        assert document.diagnostics()
        assert "T: f64[o, v, o, v]" in text_of(document.ask("hover", document.at("T[i", 1)))
        assert {"i", "j", "a", "b", "o"} <= set(labels(document, {**document.where(), "position": document.place(document.text.index("T[i,a,", 90) + 6)}))
        document.write(MP2.replace("kernel mp2_energy(B: f64[o, v, x],", "kernel mp2_energy(B: f64[o, v"))
        assert "T: f64[o, v, o, v]" in text_of(document.ask("hover", document.at("T[")))
        assert {"T", "eo", "D"} <= set(labels(document, document.at("T[", 1)))
        assert len(list(words(client, document.ask("semanticTokens/full")["data"]))) > 60


@test
def every_beginning_of_a_text_is_answered():
    with server() as client:
        document = Document(client, "")
        for end in share(range(0, len(LIBRARY) + 1, 3), 7):
            document.write(LIBRARY[:end])
            at = {**document.where(), "position": document.place(end)}
            tokens = list(words(client, document.ask("semanticTokens/full")["data"]))
            equal(len(tokens) > 0, end >= len("include"), LIBRARY[:end])
            for method in ("completion", "hover", "documentSymbol", "definition"):
                document.ask(method, at)
        equal(client.finish(), 0)


PIECES = ["[", "]", "(", ")", "{", "}", ";", ",", "=", "\n", " ", "\U0001f600", "é", "\r", "\r\n", "/*", "*/", "//", '"', "kernel ", "sum[i](", "x", "T", "einsum(\"ij,jk->ik\"", "\0",
          "include <nn.tdsl>;", "dim q ~ 4;", "kernel f(x: f64[n]) -> (R: f64[n]) { R[i] = x[i]; }", "\u202e", "1e", "->", "spill T;", "h[-1] = 0; h[t] = h[t-1] + x[t];"]


@test
def random_edits_leave_it_alive_and_agreed():
    seed = int(os.environ.get("TDSL_SEED", "1"))
    rng = random.Random(seed)
    end = time.monotonic() + (0.3 if support.QUICK else 5)
    edits = 0
    with server() as client:
        documents = [Document(client, text, f"file:///tmp/r{k}.tdsl") for k, text in enumerate((MP2, LIBRARY, support.TOUR))]
        while time.monotonic() < end or edits < 30:
            document = rng.choice(documents)
            for _ in range(rng.randrange(1, 5)):
                lo = rng.randrange(len(document.text) + 1)
                hi = min(len(document.text), lo + rng.choice([0, 0, 0, 1, 2, 10, 200]))
                if "\r" in document.text[max(0, lo - 1):lo + 1] or "\r" in document.text[max(0, hi - 1):hi + 1]:
                    continue  # which the client does not count as lines
                edits += 1
                document.replace(lo, hi, rng.choice([p for p in PIECES if "\r" not in p]))
            method = rng.choice(REQUESTS)
            place = document.place(rng.randrange(len(document.text) + 1))
            try:
                document.ask(method, {**document.where(), "position": place, "range": {"start": place, "end": place}, "context": {"diagnostics": []},
                                      "newName": "other", "options": {}})
            except Refused as refusal:
                assert refusal.code == -32803, (seed, method, refusal.message)
            if edits % 7 == 0:  # what came in pieces is what a new server gets whole
                document.ask("documentSymbol")
                with server() as other:
                    whole = Document(other, document.text, document.uri)
                    equal(document.diagnostics(), whole.diagnostics(), seed)
                    tokens = [{word[:3] for word in words(client, d.ask("semanticTokens/full")["data"])} for d in (document, whole)]
                    assert tokens[1] <= tokens[0], seed  # names that were there before the text broke are known besides
            if len(document.text) > 5000:
                document.write(MP2)
        equal(client.finish(), 0)
    assert edits > 20


# ---- a compiler that fails

def children(process):
    return [int(p) for path in glob.glob(f"/proc/{process.pid}/task/*/children") for p in pathlib.Path(path).read_text().split()]


@test
def a_fault_of_the_compiler_is_not_the_servers():
    if not os.path.exists("/proc/self/task"):
        return
    with server() as client:
        document = Document(client, slow_text())
        document.diagnostics()
        number = client.begin("textDocument/hover", document.at("A0", 1))
        end = time.monotonic() + 20
        while not children(client.process):
            assert time.monotonic() < end, "nothing prices"
        os.kill(children(client.process)[0], signal.SIGABRT)
        assert "A0: f64" in text_of(client.end(number))
        equal(document.ask("hover", document.at("A0", 1))["contents"]["kind"], "markdown")
        # While a text is looked at.
        large = Document(client, MP2 + "".join(f"kernel k{k}(x: f64[n]) -> (R: f64[n]) {{ R[i] = x[i] + {k}; }}\n" for k in range(6000)), "file:///tmp/large.tdsl")
        while not children(client.process):
            assert time.monotonic() < end, "nothing looks"
        os.kill(children(client.process)[0], signal.SIGABRT)
        said, = large.diagnostics()
        assert "the compiler failed (signal 6)" in said["message"], said
        large.write(MP2)
        equal(large.diagnostics(), [])
        equal(client.finish(), 0)


# ---- who starts it

NODE = """
const load = require("module")._load;
const made = {};
require("module")._load = (name, ...more) => name === "vscode" ? {
    workspace: { getConfiguration: () => ({ get: (key, other) => key === "arguments" ? ["-I", "lib"] : other }) },
    window: { showInformationMessage: text => { made.said = text; } },
  } : name === "vscode-languageclient/node" && process.argv[2] === "there" ? {
    LanguageClient: class { constructor(...given) { made.given = given; } start() { made.started = true; } stop() { made.stopped = true; } },
  } : load(name, ...more);
const extension = require(process.argv[1]);
extension.activate();
extension.deactivate();
console.log(JSON.stringify(made));
"""


@test
def the_extension_of_vs_code_starts_it():
    folder = ROOT / "docs/editors/vscode"
    package = json.loads((folder / "package.json").read_text())
    for path in [package["main"]] + [g["path"] for g in package["contributes"]["grammars"]] + [x["configuration"] for x in package["contributes"]["languages"]]:
        assert (folder / path).is_file(), path
    for key in re.findall(r'settings.get\("(\w+)"', (folder / "extension.js").read_text()):
        assert f"tdsl.{key}" in package["contributes"]["configuration"]["properties"], key
    if not shutil.which("node"):
        return
    made = json.loads(run("node", "-e", NODE, folder / "extension.js", "there").text)
    equal(made["given"][2], {"command": "tdslc", "args": ["--lsp", "-I", "lib"]})
    assert made["started"] and made["stopped"]
    assert "npm install" in json.loads(run("node", "-e", NODE, folder / "extension.js", "not").text)["said"]


# ---- how long it takes

def sanitized():
    return b"__asan_init" in pathlib.Path(support.ARGS.tdslc).read_bytes()


@test
def a_thousand_lines_are_answered_in_50_ms():
    """The least of many edits: other work of the machine is not the server's."""
    block = "kernel attention{k}(Q: f32[b,h,s,d], K: f32[b,h,t,d], V: f32[b,h,t,d]) -> (O: f32[b,h,s,d]) {{\n" \
            "    S[b,h,q,k] = Q[b,h,q,e] * K[b,h,k,e] * rsqrt(extent(d));\n    M[b,h,q]   = max[k](S[b,h,q,k]);\n" \
            "    W[b,h,q,k] = exp(S[b,h,q,k] - M[b,h,q]);\n    Z[b,h,q]   = sum[k](W[b,h,q,k]);\n    O[b,h,q,e] = W[b,h,q,k] * V[b,h,k,e] / Z[b,h,q];\n}}\n\n"
    text = "".join(block.format(k=k) for k in range(125))
    equal(text.count("\n"), 1000)
    limit = 1.0 if sanitized() else 0.050
    with server() as client:
        document = Document(client, text)
        equal(document.diagnostics(), [])
        least = {}
        for k in range(200):
            if k >= 10 and max(least.values()) < limit:
                break
            for method in ("didChange", "hover", "definition", "references", "completion", "semanticTokens/full", "documentSymbol", "codeAction", "formatting"):
                place = document.place(20000)
                start = time.monotonic()
                if method == "didChange":
                    document.replace(20000, 20000 + (k % 2), "" if k % 2 else " ")
                    document.diagnostics()
                else:
                    document.ask(method, {**document.at("W[", 70), "context": {}, "options": {}, "range": {"start": place, "end": place}})
                least[method] = min(least.get(method, 9), time.monotonic() - start)
    print("     " + ", ".join(f"{method} {seconds * 1e3:.1f} ms" for method, seconds in least.items()))
    assert max(least.values()) < limit, least


sys.exit(main())
