"""A stand-in for smg's HTTP: what no smg does when it is told to."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sglang_router_launcher.workers import Router

KEY = "may-look"

WORKERS = b"""{"workers": [
    {"id": "2", "url": "http://10.0.0.2:30000", "is_healthy": false, "status": "not_ready"},
    {"id": "1", "url": "http://10.0.0.1:30000", "is_healthy": true, "status": "ready",
     "api_key": "sesame", "metadata": {"labels": {"model_path": "/model"}}}
], "total": 2}"""
"""As smg 1.13.0 answers, shortened, with a key that it does not show."""


@contextmanager
def smg(body: bytes = WORKERS, status: int = 200) -> Iterator[Router]:
    """Answers this to who shows the key, at /workers alone."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.headers["Authorization"] == f"Bearer {KEY}" and self.path == "/workers"
            self.send_response(status if known else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Tests are quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield Router("127.0.0.1", server.server_port, KEY)
        finally:
            server.shutdown()
