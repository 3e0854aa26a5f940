"""`GET /workers` for the operator, which has no key of smg's. Nothing else is served here."""

import json
import socket
import threading
from collections.abc import Callable
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sglang_router_launcher.workers import UnknownWorkersError, Worker

PATH = "/workers"
CLIENT_TIMEOUT_S = 5.0
"""For a client that connects and says nothing."""


class Listing(ThreadingHTTPServer):
    """Its threads end with the process."""

    daemon_threads = True
    workers: Callable[[], list[Worker]]


class Handler(BaseHTTPRequestHandler):
    server: Listing
    timeout = CLIENT_TIMEOUT_S

    def do_GET(self) -> None:
        if self.path != PATH:
            self._answer(404, {"error": f"there is {PATH} and nothing else"})
            return
        try:
            workers = self.server.workers()
        except UnknownWorkersError as error:
            self._answer(503, {"error": str(error)})
            return
        self._answer(200, {"workers": [asdict(worker) for worker in workers]})

    def log_message(self, *_: object) -> None:
        """That it was asked is in smg's own log."""

    def _answer(self, status: int, body: dict[str, object]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def start(port: int, workers: Callable[[], list[Worker]]) -> Listing:
    """Serve from a thread, on every interface. OSError where the port cannot be had."""
    listing = Listing(("", port), Handler, bind_and_activate=False)
    listing.workers = workers
    listing.socket.close()
    listing.socket = _listening(port)
    listing.server_activate()
    threading.Thread(target=listing.serve_forever, name="worker list", daemon=True).start()
    return listing


def _listening(port: int) -> socket.socket:
    """IPv6 and IPv4 where there are both."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))
