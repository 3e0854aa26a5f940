"""Which pods are asked for what, and where."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

from sglang_controllers import names
from sglang_controllers.manifest import Manifest
from sglang_controllers.pods import is_ready
from sglang_operator.cache import Key, uid_of


@dataclass(frozen=True, slots=True)
class Ports:
    """Where agents and routers listen."""

    agent: int = names.AGENT_PORT
    router: int = names.ROUTER_LIST_PORT


@dataclass(frozen=True, slots=True)
class Target:
    """A pod that runs. Another value for the same pod: there is reason to ask it anew."""

    key: Key
    uid: str
    pod: str
    router: bool
    url: str
    ready: bool
    going: bool


def target_of(key: Key, pod: Manifest, ports: Ports) -> Target | None:
    """None: it does not run, or has no address."""
    address = _address(pod)
    if address is None:
        return None
    host = f"[{address}]" if address.version == 6 else str(address)
    router = is_router(pod)
    path = f"{ports.router}/workers" if router else f"{ports.agent}/metrics"
    metadata = pod["metadata"]
    return Target(
        key=key,
        uid=uid_of(pod),
        pod=metadata["name"],
        router=router,
        url=f"http://{host}:{path}",
        ready=is_ready(pod),
        going="deletionTimestamp" in metadata,
    )


def is_router(pod: Manifest) -> bool:
    return (pod["metadata"].get("labels") or {}).get(names.ROLE_LABEL) == names.ROUTER_ROLE


def is_asked(pod: Manifest) -> bool:
    return _address(pod) is not None


def _address(pod: Manifest) -> IPv4Address | IPv6Address | None:
    """Of a pod that runs."""
    status = pod.get("status") or {}
    if status.get("phase") != "Running":
        return None
    try:
        return ip_address(status.get("podIP") or "")
    except ValueError:
        return None
