"""preStop's script counts as the agent does: it is the same rule, written twice."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from sglang_agent.load import STALE_S, held_by_scheduler, open_requests
from sglang_controllers.scripts import drain
from tests.unit.agent.answers import METRICS, loads

ONLY_A_SCRAPE = 'sglang:http_requests_active{endpoint="/metrics",method="GET"} 1.0\n'


@contextmanager
def engine(answers: dict[str, str]) -> Iterator[str]:
    """Host and port of what gives these answers, with 404 for the rest."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = answers.get(self.path, "").encode()
            self.send_response(200 if body else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.02])
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("metrics", [METRICS, ONLY_A_SCRAPE])
@pytest.mark.parametrize("held", [[(0, 0)], [(1, 2), (0, 4)]])
def test_script_and_agent_count_the_same(held: list[tuple[int, int]], metrics: str) -> None:
    text = loads(*held, now_s=time.time())
    counted = max(held_by_scheduler(text), open_requests(metrics))

    with engine({"/v1/loads?include=core": text, "/metrics": metrics}) as host:
        assert drain.in_flight(host) == counted


@pytest.mark.parametrize(
    ("held", "age_s", "metrics"),
    [
        pytest.param([], 0.5, METRICS, id="no scheduler"),
        pytest.param([(0, 0)], STALE_S + 1, ONLY_A_SCRAPE, id="old figures"),
        pytest.param([(0, 0)], 0.5, "# nothing\n", id="no gauge"),
        pytest.param([(0, 0)], 0.5, "", id="no metrics"),
    ],
)
def test_what_the_engine_does_not_say_is_not_zero(
    held: list[tuple[int, int]], age_s: float, metrics: str
) -> None:
    text = loads(*held, age_s=age_s, now_s=time.time())

    with (
        engine({"/v1/loads?include=core": text, "/metrics": metrics}) as host,
        pytest.raises(drain.LOST),
    ):
        drain.in_flight(host)
