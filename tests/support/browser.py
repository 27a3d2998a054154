"""Chromium without a window, told what to do in the DevTools protocol: pages as their users see
them."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--window-size=1280,900",
    "--remote-debugging-pipe",
]
WAIT = 120
"""Seconds until a browser that says nothing is given up; no verdict hangs on them."""

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


class Browser:
    """Chromium with one page, told what to do in the DevTools protocol over a pipe."""

    def __init__(self, profile: Path) -> None:
        (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
        # Chromium reads from 3 and writes to 4; these are moved out of the way of both.
        given = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs_in, theirs_out)]
        move = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); "
        self.process = subprocess.Popen(
            [sys.executable, "-c", move + "os.execv(sys.argv[3], sys.argv[3:])", *map(str, given),
             str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=given, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        for end in (theirs_in, theirs_out, *given):
            os.close(end)
        self.out, self.into = ours_out, ours_in
        self.buffer, self.number = b"", 0
        self.events: list[dict[str, Any]] = []
        self.session = ""
        page = next(
            target["targetId"]
            for target in self.send("Target.getTargets")["targetInfos"]
            if target["type"] == "page"
        )
        attached = self.send("Target.attachToTarget", targetId=page, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self.events.append(answer)

    def receive(self) -> dict[str, Any]:
        until = time.monotonic() + WAIT
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.into], [], [], max(0.0, until - time.monotonic()))
            read = os.read(self.into, 1 << 20) if ready else b""
            assert read, "Chromium has ended or does not answer"
            self.buffer += read
        message, _, self.buffer = self.buffer.partition(b"\0")
        return dict(json.loads(message))

    def open(self, path: Path) -> None:
        # The page that is there may have the same address.
        self.run("window.isLeft = true")
        self.send("Page.navigate", url=path.as_uri())
        self.arrive(path)

    def arrive(self, path: Path) -> None:
        """Wait until the page at ``path`` is the one that is there, and whole."""
        until = time.monotonic() + WAIT
        state = "window.isLeft ? '' : document.readyState + location.href"
        while self.run(state) != "complete" + path.as_uri():
            assert time.monotonic() < until
            time.sleep(0.02)

    def run(self, code: str) -> Any:
        """The value of a JavaScript expression or promise."""
        answer = self.send(
            "Runtime.evaluate",
            expression=code, awaitPromise=True, returnByValue=True, userGesture=True,
        )  # fmt: skip
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key,
                windowsVirtualKeyCode=code, **text,
            )  # fmt: skip

    def problems(self) -> list[dict[str, Any]]:
        """What the console was told as a warning or an error, and what was thrown."""
        return [
            event
            for event in self.events
            if event.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown")
        ]

    def download(self, action: str, folder: Path) -> Path:
        """The file that an action saves, in a folder of its own in ``folder``."""
        folder = folder / str(self.number)
        folder.mkdir()
        self.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
        self.run(action)
        until = time.monotonic() + WAIT
        while True:
            self.run("0")
            ended = [
                event
                for event in self.events
                if event.get("method") == "Page.downloadProgress"
                and event["params"]["state"] == "completed"
            ]
            if ended:
                self.events.clear()
                return next(folder.iterdir())
            assert time.monotonic() < until, "nothing was saved"
            time.sleep(0.02)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)
        for end in (self.out, self.into):
            os.close(end)
