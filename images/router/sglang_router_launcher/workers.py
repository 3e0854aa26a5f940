"""smg's worker list, as far as it is told."""

import http.client
import json
from dataclasses import dataclass, field

from smg.router_args import RouterArgs

TIMEOUT_S = 2.0
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "[::]": "::1"}
"""Where to ask who listens on all interfaces."""


class UnknownWorkersError(Exception):
    """smg does not say: it starts, ends or hangs. The text says what it did."""


@dataclass(frozen=True, slots=True)
class Worker:
    url: str
    healthy: bool
    """It gets requests: it is registered, and its last health checks were good."""


@dataclass(frozen=True, slots=True)
class Router:
    """Where smg listens, and the key that opens its list."""

    host: str
    port: int
    key: str = field(repr=False)


def router_of(args: RouterArgs, key: str) -> Router:
    return Router(EVERYWHERE.get(args.host, args.host), args.port, key)


def workers_of(router: Router) -> list[Worker]:
    """All it knows, by URL. UnknownWorkersError where it does not answer."""
    connection = http.client.HTTPConnection(router.host, router.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", "/workers", headers={"Authorization": f"Bearer {router.key}"})
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise UnknownWorkersError(f"smg does not answer: {error!r}") from error
    finally:
        connection.close()
    if answer.status != 200:
        raise UnknownWorkersError(f"smg answers {answer.status}")
    return listed(body)


def listed(body: bytes) -> list[Worker]:
    """What smg's answer says of workers. It says much more, and another version says it otherwise."""
    try:
        found = json.loads(body)["workers"]
        workers = {Worker(str(entry["url"]), entry["is_healthy"] is True) for entry in found}
    except (ValueError, TypeError, LookupError) as error:
        raise UnknownWorkersError(f"smg's list is not understood: {error!r}") from error
    return sorted(workers, key=lambda worker: worker.url)
