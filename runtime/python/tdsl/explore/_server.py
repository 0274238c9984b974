# SPDX-License-Identifier: Apache-2.0
"""The server of the page. It listens on 127.0.0.1 alone; each request carries the token of the address, and comes from the page: a foreign Host (another
name that leads here) or Origin (another page that asks) is refused. Nothing is kept but scratch files, which go with the server."""
from __future__ import annotations

import hmac
import http.server
import json
import os
import secrets
import select
import socket
import tempfile
import threading
from typing import Any

from .._errors import Error
from . import _look

LONGEST = 1 << 20  # bytes of a request
_AT_ONCE = 4  # tools that run at a time
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
_POLICY = ("default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; frame-src 'self'; img-src data:; "
           "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
_HERE = os.path.dirname(os.path.abspath(__file__))


class _Gone(Exception):
    """The page waits for another answer by now."""


class _Handler(http.server.BaseHTTPRequestHandler):
    server: "Server"
    protocol_version = "HTTP/1.1"
    timeout = 60  # seconds that a connection may be silent

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (("Content-Security-Policy", _POLICY), ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
                            ("Cross-Origin-Resource-Policy", "same-origin"), ("Cross-Origin-Opener-Policy", "same-origin"), ("Cache-Control", "no-store")):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _refuse(self, status: int, words: str) -> None:
        self.close_connection = True  # what else the request holds is not read
        self._send(status, "text/plain", (words + "\n").encode())

    def _asked(self) -> str | None:
        """What is asked for, behind the token; None where the request is refused."""
        host, origin = self.headers.get_all("Host", []), self.headers.get_all("Origin", [])
        if host != [self.server.host] or any(o != f"http://{self.server.host}" for o in origin):
            self._refuse(403, "This server answers its own page alone.")
            return None
        path = self.path.split("?", 1)[0].split("/")
        if len(path) != 3 or path[0] or not hmac.compare_digest(path[1].encode(errors="replace"), self.server.token.encode()):
            self._refuse(403, "The address lacks the token that python -m tdsl.explore printed.")
            return None
        return path[2]

    def do_GET(self) -> None:
        name = self._asked()
        if name is None:
            return
        name = name or "page.html"
        if name not in ("page.html", "page.css", "page.js"):
            self._refuse(404, "There is no such file.")
            return
        with open(os.path.join(_HERE, name), "rb") as f:
            data = f.read()
        if name == "page.html":
            start = json.dumps({"program": self.server.program, "sizes": self.server.sizes}).replace("<", "\\u003c")
            data = data.replace(b"{START}", start.encode())
        self._send(200, _TYPES[name.rsplit(".", 1)[1]], data)

    def _gone(self) -> None:
        """Raises when the page has dropped the connection: it asks anew for each letter that is typed."""
        if self.server.ended.is_set():
            raise _Gone
        try:
            if select.select([self.connection], [], [], 0)[0] and self.connection.recv(1, socket.MSG_PEEK) == b"":
                raise _Gone
        except OSError:
            raise _Gone from None

    def do_POST(self) -> None:
        name = self._asked()
        if name is None:
            return
        answer = {"look": _look.look, "run": _look.run, "profile": _look.profile, "schedule": _look.schedule, "format": _look.layout}.get(name)
        length = self.headers.get("Content-Length", "")
        if answer is None:
            self._refuse(404, "There is no such question.")
        elif self.headers.get("Content-Type") != "application/json" or not length.isascii() or not length.isdecimal():
            self._refuse(400, "A question is JSON of a known length.")
        elif int(length) > LONGEST:
            self._refuse(413, f"A question has at most {LONGEST} bytes.")
        else:
            self._answer(answer, self.rfile.read(int(length)))

    def _answer(self, answer: Any, data: bytes) -> None:
        try:
            question = _look.Question(json.loads(data), self.server.folder, self.server.scratch.name, self._gone)
        except (ValueError, RecursionError, _look.Refused) as error:
            self._refuse(400, f"Not a question: {error}")
            return
        try:
            while not self.server.tools.acquire(timeout=0.05):
                self._gone()
            try:
                said = answer(question)
            finally:
                self.server.tools.release()
        except _Gone:
            self.close_connection = True
            return
        except Error as error:
            said = {"stopped": str(error)}
        self._send(200, "application/json", json.dumps(said).encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: addresses hold the token."""


class Server(http.server.ThreadingHTTPServer):
    """A page that begins with `program`, for files that it includes in `folder`."""
    daemon_threads = True
    allow_reuse_address = True  # a port of a server that has just ended

    def __init__(self, program: str, folder: str, sizes: dict[str, int] | None = None, port: int = 0) -> None:
        self.tools = threading.BoundedSemaphore(_AT_ONCE)
        self.ended = threading.Event()
        self.scratch = tempfile.TemporaryDirectory(prefix="tdsl-explore-")
        super().__init__(("127.0.0.1", port), _Handler)
        self.program, self.folder, self.sizes = program, folder, sizes or {}
        self.token = secrets.token_urlsafe(24)
        self.host = f"127.0.0.1:{self.server_address[1]}"
        self.address = f"http://{self.host}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A page that is closed while it is answered is no fault."""
        import sys
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)

    def server_close(self) -> None:
        """Ends what still runs, and removes what it wrote."""
        self.ended.set()
        for _ in range(_AT_ONCE):
            self.tools.acquire(timeout=2)
        super().server_close()
        self.scratch.cleanup()
