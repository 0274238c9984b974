# SPDX-License-Identifier: Apache-2.0
"""`python -m tdsl.explore [FILE.tdsl | LINK]`: serves the page, and opens it in the browser, until Ctrl-C."""
from __future__ import annotations

import argparse
import base64
import json
import os
import signal
import sys
import threading
import webbrowser
import zlib
from typing import Any

from .. import _tools
from .._errors import Error
from ._server import LONGEST, Server


def of_link(link: str) -> dict[str, Any]:
    """What the fragment of a link holds: deflated JSON in base64, as page.js writes it."""
    held = link.partition("#p=")[2]
    try:
        data = zlib.decompressobj(-15).decompress(base64.urlsafe_b64decode(held + "=" * (-len(held) % 4)), LONGEST)
        found = json.loads(data)
        if not isinstance(found["program"], str):
            raise ValueError("no program")
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        raise SystemExit(f"python -m tdsl.explore: this link holds no program: {error}") from None
    return {"program": found["program"], "sizes": {n: v for n, v in dict(found.get("sizes") or {}).items() if type(v) is int}}


def _begin(said: str | None) -> tuple[str, dict[str, int], str]:
    """The program, sizes and folder that the page begins with."""
    if said is None:
        return "", {}, os.getcwd()
    if "#p=" in said:
        held = of_link(said)
        return held["program"], held["sizes"], os.getcwd()
    try:
        with open(said, encoding="utf-8") as f:
            return f.read(LONGEST), {}, os.path.dirname(os.path.abspath(said))
    except (OSError, UnicodeDecodeError) as error:
        raise SystemExit(f"python -m tdsl.explore: {said}: {error.strerror if isinstance(error, OSError) else 'not UTF-8'}") from None


def _has_screen() -> bool:
    """Elsewhere a browser would run in this terminal."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def _end(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def main() -> int:
    """Serves until an interrupt."""
    parser = argparse.ArgumentParser(prog="python -m tdsl.explore", description="Serves a page on 127.0.0.1 to try programs on, and opens it in the browser.")
    parser.add_argument("program", nargs="?", metavar="FILE.tdsl|LINK", help="what the page begins with: a file, which is not written, or a link of such a page")
    parser.add_argument("--port", type=int, default=0, help="of the address (default: one that is free)")
    parser.add_argument("--no-browser", action="store_true", help="print the address alone")
    said = parser.parse_args()
    program, sizes, folder = _begin(said.program)
    try:
        _tools.tdslc()
        server = Server(program, folder, sizes, said.port)
    except (Error, OverflowError) as error:
        raise SystemExit(f"python -m tdsl.explore: {error}") from None
    except OSError as error:
        raise SystemExit(f"python -m tdsl.explore: port {said.port}: {error.strerror}") from None
    signal.signal(signal.SIGTERM, _end)
    with server:
        print(server.address, flush=True)
        print("Ctrl-C ends it. Who has this address can run programs as you on this machine.", file=sys.stderr, flush=True)
        if not said.no_browser and _has_screen():
            threading.Thread(target=webbrowser.open, args=(server.address,), daemon=True).start()
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
