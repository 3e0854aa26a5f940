# ruff: noqa: INP001, T201  a script, not a module: the engine's preStop runs its text
"""Return when the engine owes nobody an answer: `python3 -c TEXT SOCKET URL REACTION_S TIMEOUT_S`.

The agent at the Unix socket is asked to drain. Without one, or when it is lost before it answers,
the engine is asked here, by the agent's rule. Exits 0 in any case, as kubelet would only kill
sooner; the last line of stderr says how it ended.
"""

import http.client
import json
import re
import socket
import sys
import time

POLL_S, LOOK_TIMEOUT_S, STALE_S, SLACK_S = 0.5, 5, 10, 2
ACTIVE = re.compile(r"^sglang:http_requests_active\{(.*)\} (\S+)$", re.MULTILINE)
READING = re.compile(r'method="(GET|HEAD|OPTIONS)"')
LOST = (OSError, ValueError, LookupError, TypeError, http.client.HTTPException)


class Agent(http.client.HTTPConnection):
    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.host)


def answer(connection: http.client.HTTPConnection, method: str, path: str) -> str:
    connection.request(method, path, headers={"Host": "localhost"})
    response = connection.getresponse()
    text = response.read().decode()
    if response.status != 200:
        raise OSError(f"{path} answers {response.status}")
    return text


def in_flight(host: str) -> int:
    """The larger of what the scheduler holds and of unfinished answers, as sglang_agent.load."""
    engine = http.client.HTTPConnection(host, timeout=LOOK_TIMEOUT_S)
    loads = json.loads(answer(engine, "GET", "/v1/loads?include=core"))["loads"]
    rows = ACTIVE.findall(answer(engine, "GET", "/metrics"))
    if not loads or not rows or time.time() - min(x["timestamp"] for x in loads) > STALE_S:
        raise ValueError("the engine does not say")
    held = sum(int(load["num_running_reqs"]) + int(load["num_waiting_reqs"]) for load in loads)
    return max(held, round(sum(float(n) for labels, n in rows if not READING.search(labels))))


def by_engine(host: str, reacted_s: float, deadline_s: float) -> str:
    quiet_looks = 0
    while (began_s := time.monotonic()) < deadline_s:
        try:
            quiet = in_flight(host) == 0 and began_s >= reacted_s
        except ConnectionRefusedError:
            return "the engine is gone"
        except LOST:
            quiet = False  # unknown is not zero
        if (quiet_looks := quiet_looks + 1 if quiet else 0) == 2:
            return "drained"
        time.sleep(max(0.0, min(POLL_S, deadline_s - time.monotonic())))
    return "cut"


def main(path: str, url: str, reaction_s: float, timeout_s: float) -> str:
    start_s, total_s = time.monotonic(), max(reaction_s, timeout_s)
    try:
        agent = Agent(path, timeout=total_s + SLACK_S)
        return str(json.loads(answer(agent, "POST", "/v1/drain"))["outcome"])
    except LOST as error:
        print(f"drain: going on without the agent: {error!r}", file=sys.stderr, flush=True)
    return by_engine(url.partition("://")[2], start_s + reaction_s, start_s + total_s)


if __name__ == "__main__":
    try:
        outcome = main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
    except Exception as error:  # noqa: BLE001  whatever it is, the engine has to be stopped
        outcome = f"failed: {error!r}"
    print(f"drain: {outcome}", file=sys.stderr)
