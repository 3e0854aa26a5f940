"""A stand-in for an engine, as a process: `router_engine.py ADDRESS FILE`.

Real ones boot too slowly for a hundred pod events. It answers what the router asks as SGLang 0.5.23
does, shortened to what the router reads, and writes a line to FILE for each request of a client.
"""

import json
import socket
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PORT = 30000
MODEL = "tiny"
TOKEN_S = 0.1

ANSWERS: dict[str, Any] = {
    "/ready": None,
    "/health": None,
    "/v1/models": {
        "object": "list",
        "data": [{"id": MODEL, "object": "model", "owned_by": "sglang", "root": MODEL}],
    },
    "/model_info": {
        "model_path": MODEL,
        "served_model_name": MODEL,
        "tokenizer_path": MODEL,
        "is_generation": True,
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
    },
    "/server_info": {
        "model_path": MODEL,
        "served_model_name": MODEL,
        "tokenizer_path": MODEL,
        "tp_size": 1,
        "dp_size": 1,
        "version": "0.5.23",
    },
    "/v1/loads": {
        "timestamp": "2026-11-30T00:00:00+00:00",
        "version": "0.5.23",
        "loads": [{"dp_rank": 0, "num_running_reqs": 0, "num_waiting_reqs": 0, "token_usage": 0.0}],
    },
}

REPLY = {
    "id": "1",
    "object": "chat.completion",
    "created": 1793534400,
    "model": MODEL,
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "hi"},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    counted: Path

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path in ANSWERS:
            self._answer(200, ANSWERS[path])
        else:
            self._answer(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        with self.counted.open("a") as file:
            file.write(f"{time.time()} {self.path}\n")
        time.sleep((asked["max_tokens"] - 1) * TOKEN_S)
        self._answer(200, REPLY)

    def log_message(self, *_: object) -> None:
        """The file tells what the tests ask for."""

    def _answer(self, status: int, body: Any) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Engine(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = socket.SOMAXCONN


if __name__ == "__main__":
    Handler.counted = Path(sys.argv[2])
    Engine((sys.argv[1], PORT), Handler).serve_forever()
