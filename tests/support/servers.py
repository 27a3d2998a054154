"""Servers on loopback: a web server, and the hub's file protocol."""

import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Site:
    """Files by path, what was asked for them, and how the server fails."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)
        self.asked: list[tuple[str, str | None]] = []
        self.breaks_after: int | None = None
        self.url = ""
        self.headers: dict[str, str] = {}

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request for a file, or a part of it."""
        span = handler.headers.get("Range")
        self.asked.append((handler.path, span))
        content = self.files.get(unquote(urlsplit(handler.path).path))
        if content is None:
            self.reply(handler, 404, b"no")
            return
        status, headers = (
            200,
            {**self.headers, "ETag": f'"{hashlib.sha256(content).hexdigest()[:8]}"'},
        )
        if span:
            first, last = re.fullmatch(r"bytes=(\d+)-(\d*)", span).groups()  # type: ignore[union-attr]
            start, stop = int(first), int(last or len(content) - 1)
            headers["Content-Range"] = f"bytes {start}-{stop}/{len(content)}"
            content, status = content[start : stop + 1], 206
        self.reply(handler, status, content, headers)

    def reply(
        self,
        handler: BaseHTTPRequestHandler,
        status: int,
        content: bytes,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send an answer, or as much of it as the server sends before it breaks off."""
        handler.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(content))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(content[: self.breaks_after])
        if self.breaks_after is not None:
            handler.close_connection = True


class Hub(Site):
    """A data set of the hub, of one commit, as the hub tells of it."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        super().__init__(files)
        self.headers = {"X-Repo-Commit": COMMIT}

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request, for a file or for what there is."""
        path = unquote(urlsplit(handler.path).path)
        if path.startswith("/datasets/org/texts/resolve/"):
            name = path.split(f"{COMMIT}/", 1)[1]
            handler.path = f"/{name}"
            super().answer(handler)
            return
        self.asked.append((handler.path, None))
        told = self._told(path, handler)
        content = json.dumps(told if told is not None else {"error": "no"}).encode()
        code = {"X-Error-Code": "RepoNotFound"} if told is None else {}
        self.reply(handler, 404 if told is None else 200, content, code)

    def _told(self, path: str, handler: BaseHTTPRequestHandler) -> Any:
        entries: list[dict[str, Any]] = [
            {"type": "file", "path": name[1:], "size": len(data), "oid": f"{len(data):040x}"}
            for name, data in self.files.items()
        ]
        if path.startswith("/api/datasets/org/texts/paths-info/"):
            size = int(handler.headers["Content-Length"])
            asked = json.loads(handler.rfile.read(size))["paths"]
            return [entry for entry in entries if entry["path"] in asked]
        if path.startswith("/api/datasets/org/texts/tree/"):
            above = f"{path.partition(COMMIT)[2].strip('/')}/".lstrip("/")
            inside = [entry for entry in entries if entry["path"].startswith(above)]
            if "recursive=true" in handler.path.lower():
                return inside
            here = [e for e in inside if "/" not in e["path"][len(above) :]]
            deeper = {e["path"][len(above) :].partition("/")[0] for e in inside if e not in here}
            folders = [above + name for name in sorted(deeper)]
            return [*here, *({"type": "directory", "path": f, "oid": "0" * 40} for f in folders)]
        if path.startswith("/api/datasets/org/texts"):
            return {"id": "org/texts", "sha": COMMIT, "siblings": [], "tags": [], "private": False}
        return None


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    """Serve a site on a port of loopback, whose address it then has."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            site.answer(self)

        do_HEAD = do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Say nothing of clients that hang up: they have what they want."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
