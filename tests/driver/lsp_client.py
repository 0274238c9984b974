# SPDX-License-Identifier: Apache-2.0
"""A client of the language server protocol: one server, its documents as the editor has them, and what it publishes. Reads with a
time limit, so that a server that does not answer fails the test and does not hang it."""
import json
import os
import select
import subprocess
import time

LIMIT = 60


class Refused(Exception):
    """An answer that is an error: its code and message."""

    def __init__(self, error):
        super().__init__(error["message"])
        self.code, self.message = error["code"], error["message"]


def frame(message):
    body = json.dumps(message).encode() if not isinstance(message, bytes) else message
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


class Client:
    """One server. `capabilities` are those of the client; None: `initialize` is not sent."""

    def __init__(self, command, capabilities=(), **more):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **{"stderr": subprocess.PIPE, **more})
        self.bytes, self.number = b"", 0
        self.published, self.answers, self.strays = {}, {}, []
        if capabilities is not None:
            self.capabilities = self.ask("initialize", {"processId": os.getpid(), "rootUri": None, "capabilities": dict(capabilities)})["capabilities"]
            self.tell("initialized", {})

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                if stream is not None:
                    stream.close()
            except BrokenPipeError:
                pass

    # ---- messages

    def put(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        self.put(frame(message))

    def receive(self, limit=LIMIT):
        """The next message, or None when the server has ended."""
        end = time.monotonic() + limit
        while True:
            head, blank, rest = self.bytes.partition(b"\r\n\r\n")
            if blank:
                length = int(dict(line.split(b": ") for line in head.split(b"\r\n"))[b"Content-Length"])
                if len(rest) >= length:
                    self.bytes = rest[length:]
                    return json.loads(rest[:length])
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"no answer in {limit} s")
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                return None
            self.bytes += more

    def take(self, limit=LIMIT):
        """Takes one message; False when there is none any more."""
        message = self.receive(limit)
        if message is None:
            return False
        if message.get("method") == "textDocument/publishDiagnostics":
            self.published[message["params"]["uri"]] = message["params"]
        elif message.get("id") is not None:
            self.answers[message["id"]] = message
        else:
            self.strays.append(message)
        return True

    def begin(self, method, params=None):
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        return self.number

    def end(self, number, limit=LIMIT):
        while number not in self.answers:
            assert self.take(limit), "the server has ended: " + self.process.stderr.read().decode()
        message = self.answers.pop(number)
        if "error" in message:
            raise Refused(message["error"])
        return message["result"]

    def ask(self, method, params=None, limit=LIMIT):
        return self.end(self.begin(method, params), limit)

    def tell(self, method, params=None):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def finish(self):
        """The exit status after shutdown and exit."""
        self.ask("shutdown")
        self.tell("exit")
        return self.process.wait(LIMIT)


class Document:
    """A text of a client's."""

    def __init__(self, client, text, uri="file:///tmp/k.tdsl"):
        self.client, self.uri, self.text, self.version = client, uri, text, 1
        client.tell("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "tdsl", "version": 1, "text": text}})

    def where(self):
        return {"textDocument": {"uri": self.uri}}

    def place(self, at):
        """The place of an offset in the text, as the protocol counts."""
        before = self.text[:at]
        line = before.count("\n")
        return {"line": line, "character": len(before[before.rfind("\n") + 1:].encode("utf-16-le")) // 2}

    def offset(self, place):
        lines = self.text.split("\n")
        unit = lines[place["line"]].encode("utf-16-le")[:2 * place["character"]]
        return sum(len(line) + 1 for line in lines[:place["line"]]) + len(unit.decode("utf-16-le"))

    def cut(self, range_):
        return self.text[self.offset(range_["start"]):self.offset(range_["end"])]

    def at(self, what, number=0, within=0):
        """Params for the place of the number-th `what`, so far into it."""
        at = -1
        for _ in range(number + 1):
            at = self.text.index(what, at + 1)
        return {**self.where(), "position": self.place(at + within)}

    def apply(self, edits):
        """The text with the edits of an answer made."""
        text = self.text
        for edit in sorted(edits, key=lambda e: -self.offset(e["range"]["start"])):
            text = text[:self.offset(edit["range"]["start"])] + edit["newText"] + text[self.offset(edit["range"]["end"]):]
        return text

    def write(self, text):
        self.version += 1
        self.text = text
        self.client.tell("textDocument/didChange", {"textDocument": {"uri": self.uri, "version": self.version}, "contentChanges": [{"text": text}]})

    def replace(self, lo, hi, text):
        """One edit, as typing makes it."""
        self.version += 1
        range_ = {"start": self.place(lo), "end": self.place(hi)}
        self.text = self.text[:lo] + text + self.text[hi:]
        self.client.tell("textDocument/didChange", {"textDocument": {"uri": self.uri, "version": self.version},
                                                    "contentChanges": [{"range": range_, "text": text}]})

    def ask(self, method, params=None, **more):
        return self.client.ask("textDocument/" + method, {**(params or self.where()), **more})

    def diagnostics(self):
        """What is published of this version."""
        while self.client.published.get(self.uri, {}).get("version") != self.version:
            assert self.client.take(), "the server has ended"
        return self.client.published[self.uri]["diagnostics"]
