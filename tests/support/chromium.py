#!/usr/bin/env python3
"""A browser without a window: Chromium, spoken to through a pipe (its DevTools protocol), so that it needs no port.

    chromium.py URL PICTURE.png [WIDTH HEIGHT [light|dark [SECONDS [SCRIPT]]]]

takes a picture of a page after some seconds. As a module it is what tests look through: what a page shows, what it writes to
the console, what its policy refused.
"""
import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time

PROGRAM = shutil.which("chromium")


class Browser:
    """One browser with one page. `folder` holds its profile."""

    def __init__(self, folder, width=1280, height=900, scheme="light"):
        to_child, self.output = os.pipe()
        self.input, from_child = os.pipe()
        arguments = ["--headless=new", "--remote-debugging-pipe", f"--user-data-dir={folder}", "--disable-gpu", "--no-first-run",
                     "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync",
                     "--disable-dev-shm-usage", "--hide-scrollbars", f"--window-size={width},{height}",
                     "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"]  # this machine alone
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")

        def descriptors():
            os.dup2(to_child, 60)
            os.dup2(from_child, 61)
            os.dup2(60, 3)
            os.dup2(61, 4)

        self.process = subprocess.Popen([PROGRAM] + arguments, preexec_fn=descriptors, pass_fds=(3, 4), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env=dict(os.environ, HOME=folder, XDG_CONFIG_HOME=folder, XDG_CACHE_HOME=folder))
        os.close(to_child)
        os.close(from_child)
        self.left = b""
        self.number = 0
        self.events = []
        target = self.call("Target.createTarget", {"url": "about:blank"}, session=None)["targetId"]
        self.session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True}, session=None)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        self.prefer(scheme)

    def receive(self, seconds):
        """The next message, or None."""
        until = time.monotonic() + seconds
        while b"\0" not in self.left:
            ready, _, _ = select.select([self.input], [], [], max(0, until - time.monotonic()))
            data = os.read(self.input, 1 << 20) if ready else b""
            if not data:
                if ready:
                    raise RuntimeError("chromium has ended")
                return None
            self.left += data
        message, _, self.left = self.left.partition(b"\0")
        return json.loads(message)

    def call(self, method, parameters=None, session="own", seconds=120):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters or {}}
        if session:
            message["sessionId"] = self.session
        os.write(self.output, json.dumps(message).encode() + b"\0")
        while True:
            reply = self.receive(seconds)
            if reply is None:
                raise RuntimeError(f"chromium does not answer {method}")
            if reply.get("id") != self.number:
                self.events.append(reply)
                continue
            if "error" in reply:
                raise RuntimeError(f"{method}: {reply['error']}")
            return reply["result"]

    def open(self, url):
        self.call("Page.navigate", {"url": url})

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def value(self, expression):
        """What JavaScript makes of an expression."""
        result = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", {"type": kind, "key": key, "text": key if len(key) == 1 and kind == "keyDown" else ""})

    def complaints(self):
        """Errors and warnings: of the console, of scripts, of the policy, of requests."""
        self.call("Runtime.evaluate", {"expression": "0"})  # events before this one have come
        said = []
        for event in self.events:
            parameters = event.get("params", {})
            if event.get("method") == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                said.append(" ".join(str(part.get("value", part.get("description"))) for part in parameters["args"]))
            elif event.get("method") == "Runtime.exceptionThrown":
                said.append(parameters["exceptionDetails"].get("exception", {}).get("description") or str(parameters))
            elif event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                said.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        return said

    def requested(self):
        """The addresses that the page has asked for."""
        return [event["params"]["request"]["url"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]

    def picture(self, path, full=False):
        parameters = {"format": "png", "captureBeyondViewport": full}
        if full:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            parameters["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        data = base64.b64decode(self.call("Page.captureScreenshot", parameters)["data"])
        with open(path, "wb") as file:
            file.write(data)

    def close(self):
        try:
            self.call("Browser.close", session=None, seconds=10)
        except (RuntimeError, OSError):
            pass
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.input)
        os.close(self.output)


def main():
    import tempfile
    url, picture = sys.argv[1:3]
    width, height = (int(text) for text in sys.argv[3:5]) if len(sys.argv) > 4 else (1280, 900)
    scheme = sys.argv[5] if len(sys.argv) > 5 else "light"
    seconds = float(sys.argv[6]) if len(sys.argv) > 6 else 3
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(folder, width, height, scheme)
        browser.open(url)
        time.sleep(seconds)
        if len(sys.argv) > 7:
            browser.value(sys.argv[7])
            time.sleep(0.5)
        browser.picture(picture, full=height == 0)
        for said in browser.complaints():
            print(said)
        browser.close()


if __name__ == "__main__":
    main()
