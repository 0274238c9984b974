# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, driven by its DevTools protocol on two pipes: no port, no driver program. Selenium and Playwright would do it
too; they bring a driver that has to be of the browser's version, for the dozen calls below."""
import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import time

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "Space": 32, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "F8": 119}
SHIFT, CONTROL, ALT = 8, 2, 1


def found():
    """The path of a browser, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


class Browser:
    """One page. `messages` is what it put on its console, errors of scripts included."""

    def __init__(self, program, folder, *options):
        to_browser, from_browser = os.pipe(), os.pipe()
        self._out, self._in = to_browser[1], from_browser[0]

        def wires():  # the browser reads descriptor 3 and writes 4
            ends = os.dup(to_browser[0]), os.dup(from_browser[1])
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)
        self._process = subprocess.Popen(  # pylint: disable=subprocess-popen-preexec-fn
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-extensions", "--no-first-run",
             "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-pipe", f"--user-data-dir={folder}", *options, "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=wires, close_fds=False)
        os.close(to_browser[0])
        os.close(from_browser[1])
        self._numbers, self._rest, self._events, self.messages = itertools.count(1), b"", [], []
        self._session = None
        page = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log":
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._session = None
            self.call("Browser.close")
            self._process.wait(20)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def _next(self, end):
        while b"\0" not in self._rest:
            assert select.select([self._in], [], [], max(0, end - time.monotonic()))[0], "the browser does not answer"
            data = os.read(self._in, 1 << 20)
            assert data, "the browser has ended"
            self._rest += data
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, seconds=60, **parameters):
        """The result of a call of the protocol."""
        number, end = next(self._numbers), time.monotonic() + seconds
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data):]
        while True:
            said = self._next(end)
            if said.get("id") == number:
                assert "error" not in said, (method, said["error"])
                return said["result"]
            self._event(said)

    def _event(self, said):
        name, what = said.get("method"), said.get("params", {})
        if name == "Runtime.consoleAPICalled":
            self.messages.append(" ".join(str(a.get("value", a.get("description"))) for a in what["args"]))
        elif name == "Runtime.exceptionThrown":
            self.messages.append(json.dumps(what["exceptionDetails"]))
        elif name == "Log.entryAdded":
            self.messages.append(f"{what['entry']['text']} {what['entry'].get('url', '')}")
        self._events.append(name)

    def size(self, width, height, dark=False):
        """The window, and the colours that the user prefers."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, address):
        """Loads a page to its end."""
        self._events.clear()
        said = self.call("Page.navigate", url=address)
        assert "errorText" not in said, said
        end = time.monotonic() + 60
        while "Page.loadEventFired" not in self._events and "loaderId" in said:  # without: another fragment of the same page
            self._event(self._next(end))

    def value(self, expression):
        """What an expression of JavaScript gives, promises awaited."""
        said = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in said, said["exceptionDetails"]
        return said["result"].get("value")

    def wait(self, expression, seconds=30):
        """Waits until an expression is true."""
        end = time.monotonic() + seconds
        while not self.value(f"!!({expression})"):
            assert time.monotonic() < end, f"never: {expression}; {self.messages}"
            time.sleep(0.02)

    def key(self, name, modifiers=0, times=1):
        """A key that is pressed and let go."""
        code = KEYS[name]
        text = {"Enter": "\r", "Space": " "}.get(name) if not modifiers & CONTROL else None
        for _ in range(times):
            key = {"key": " " if name == "Space" else name, "code": name, "windowsVirtualKeyCode": code, "modifiers": modifiers}
            self.call("Input.dispatchKeyEvent", type="keyDown", **key, **({"text": text} if text else {}))
            self.call("Input.dispatchKeyEvent", type="keyUp", **key)

    def type(self, text):
        """Text, as from a keyboard."""
        self.call("Input.insertText", text=text)

    def picture(self, path):
        """What the window shows, as PNG."""
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def pdf(self, path):
        """The page, printed."""
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.printToPDF")["data"]))
