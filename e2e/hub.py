#!/usr/bin/env python3
"""A stand-in for the Hugging Face hub, which has no copy that runs without a network.

It serves ROOT/<org>/<name>/ as models, with what huggingface_hub asks for to look a model up and
to download its files. A model has one branch, main, and one commit, made from its files: when they
change, main has moved. Answers and error codes are the real hub's, whose clients read them:
a gated model's list of files is public, its files are not; without a token, a model that does not
exist looks like one that is private.

    python3 hub.py --root models --port 8080 --gated org/name --token secret

Only the standard library is used. Tests break it on purpose with `Hub.faults`.
"""

import argparse
import functools
import hashlib
import json
import re
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

NAME = r"(?P<model>[^/]+(?:/[^/]+)?)"
INFO = re.compile(rf"/api/models/{NAME}(?:/revision/(?P<revision>[^/]+))?")
FILE = re.compile(rf"/{NAME}/resolve/(?P<revision>[^/]+)/(?P<file>.+)")
RANGE = re.compile(r"bytes=(\d+)-(\d*)")

CHUNK_BYTES = 2**16


@dataclass
class Fault:
    """What goes wrong with requests whose path contains `path`, the first `times` of them."""

    path: str
    method: str = "GET"
    status: int | None = None
    """Answered instead of the file."""
    cut_after: int | None = None
    """The connection is closed after so many bytes of the body."""
    stall_after: int | None = None
    """Nothing comes after so many bytes of the body, until the hub stops."""
    times: int = 1


@dataclass
class Hub:
    root: Path
    gated: frozenset[str] = frozenset()
    token: str = ""
    """Of somebody who may read the gated models. Without one, every token is accepted."""
    stranger: str = ""
    """A token of somebody who may not."""
    branches: tuple[str, ...] = ("main",)
    port: int = 0
    faults: list[Fault] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    """`GET /path`, as they came."""
    stopped: threading.Event = field(default_factory=threading.Event)
    stalled: threading.Event = field(default_factory=threading.Event)
    """Set once a stall has begun."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fault(self, method: str, path: str) -> Fault | None:
        with self.lock:
            self.requests.append(f"{method} {path}")
            for fault in self.faults:
                if fault.times and fault.method == method and fault.path in path:
                    fault.times -= 1
                    return fault
        return None

    def got(self, part: str) -> list[str]:
        """Downloads of files whose path contains the part."""
        return [each for each in self.requests if each.startswith("GET") and part in each]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @contextmanager
    def serving(self, host: str = "127.0.0.1") -> Iterator["Hub"]:
        """Port 0 is any that is free. A hub that serves again keeps its port."""
        self.stopped.clear()
        with Server((host, self.port), functools.partial(Answer, self)) as server:
            self.port = int(server.server_address[1])
            thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
            thread.start()
            try:
                yield self
            finally:
                self.stopped.set()
                server.shutdown()
                thread.join()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away in the middle of a file are no error of ours."""


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, hub: Hub, *arguments: Any) -> None:
        self.hub = hub
        super().__init__(*arguments)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.broken = self.hub.fault(self.command, unquote(path))
        if self.broken and self.broken.status:
            self.refuse(self.broken.status, "", "told to fail")
        elif found := FILE.fullmatch(path) or INFO.fullmatch(path):
            self.model(
                **{name: unquote(part or "main") for name, part in found.groupdict().items()}
            )
        else:
            self.refuse(404, "", "Sorry, we can't find the page you are looking for.")

    def model(self, model: str, revision: str, file: str = "") -> None:
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        folder = self.hub.root / model
        if given and self.hub.token and given not in (self.hub.token, self.hub.stranger):
            self.refuse(401, "", "Invalid credentials in Authorization header")
        elif not folder.is_dir() or not folder.resolve().is_relative_to(self.hub.root.resolve()):
            self.refuse(404 if given else 401, "RepoNotFound", "Repository not found")
        elif file and model in self.hub.gated and given != self.hub.token:
            text = f"Access to model {model} is restricted. You must have access to it."
            self.refuse(403 if given else 401, "GatedRepo", text)
        elif revision not in (*self.hub.branches, commit(folder)):
            self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        elif not file:
            self.info(model, folder)
        elif file not in files(folder):
            self.refuse(404, "EntryNotFound", "Entry not found")
        else:
            self.file(folder, folder / file)

    def info(self, model: str, folder: Path) -> None:
        blobs = "blobs=" in urlsplit(self.path).query.lower()
        about = {
            "id": model,
            "modelId": model,
            "sha": commit(folder),
            "private": False,
            "gated": "manual" if model in self.hub.gated else False,
            "tags": [],
            "siblings": [sibling(folder, name, blobs) for name in files(folder)],
        }
        self.send(200, {"Content-Type": "application/json"}, json.dumps(about).encode())

    def file(self, folder: Path, path: Path) -> None:
        size = path.stat().st_size
        headers = {
            "Content-Type": "application/octet-stream",
            "ETag": f'"{digest(path)}"',
            "X-Repo-Commit": commit(folder),
            "Accept-Ranges": "bytes",
        }
        asked = RANGE.fullmatch(self.headers.get("Range", ""))
        if not asked:
            self.send_head(200, headers, size)
            self.send_part(path, 0, size)
            return
        first, last = int(asked[1]), min(int(asked[2] or size - 1), size - 1)
        if first > last:
            self.send(416, {"Content-Range": f"bytes */{size}"}, b"")
            return
        headers["Content-Range"] = f"bytes {first}-{last}/{size}"
        self.send_head(206, headers, last - first + 1)
        self.send_part(path, first, last - first + 1)

    def refuse(self, status: int, code: str, text: str) -> None:
        headers = {"Content-Type": "application/json", "X-Error-Message": text}
        if code:
            headers["X-Error-Code"] = code
        self.send(status, headers, json.dumps({"error": text}).encode())

    def send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_head(status, headers, len(body))
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_head(self, status: int, headers: dict[str, str], length: int) -> None:
        self.send_response(HTTPStatus(status))
        for name, value in {**headers, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()

    def send_part(self, path: Path, first: int, length: int) -> None:
        if self.command == "HEAD":
            return
        limits = (self.broken.cut_after, self.broken.stall_after) if self.broken else ()
        limit = next((each for each in limits if each is not None), length)
        with path.open("rb") as file:
            file.seek(first)
            left = min(length, limit)
            while chunk := file.read(min(CHUNK_BYTES, left)):
                self.wfile.write(chunk)
                left -= len(chunk)
        if limit < length:
            self.wfile.flush()
            if self.broken and self.broken.stall_after is not None:
                self.hub.stalled.set()
                self.hub.stopped.wait()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def commit(folder: Path) -> str:
    tree = "".join(f"{digest(folder / name)} {name}\n" for name in files(folder))
    return hashlib.sha1(tree.encode()).hexdigest()


def is_large(path: Path) -> bool:
    """Whether Git LFS holds it: by its name, as the .gitattributes of models say."""
    return path.suffix in (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".onnx", ".h5")


def digest(path: Path) -> str:
    """The id of the file's content: its SHA-256 in Git LFS, Git's own id otherwise."""
    status = path.stat()
    return _digest(path, status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=4096)
def _digest(path: Path, size: int, _changed: int) -> str:
    content = hashlib.sha256() if is_large(path) else hashlib.sha1(f"blob {size}\0".encode())
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            content.update(chunk)
    return content.hexdigest()


def sibling(folder: Path, name: str, blobs: bool) -> dict[str, Any]:
    """A file in the list of a model's files."""
    if not blobs:
        return {"rfilename": name}
    path = folder / name
    size = path.stat().st_size
    listed = {"rfilename": name, "size": size, "blobId": digest(path)[:40]}
    if is_large(path):
        listed["lfs"] = {"sha256": digest(path), "size": size, "pointerSize": 134}
    return listed


def main() -> None:
    parser = argparse.ArgumentParser(description="A stand-in for the Hugging Face hub.")
    parser.add_argument("--root", type=Path, required=True, help="holds <org>/<name>/ with files")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--gated", action="append", default=[], metavar="ORG/NAME")
    parser.add_argument("--token", default="", help="whose owner may read the gated models")
    given = parser.parse_args()
    hub = Hub(given.root, frozenset(given.gated), given.token, port=given.port)
    # As process 1 of a container it would not end otherwise.
    signal.signal(signal.SIGTERM, lambda *_: hub.stopped.set())
    with hub.serving("0.0.0.0"):
        hub.stopped.wait()


if __name__ == "__main__":
    main()
