"""smg's own arguments, with the keys that never stand among them."""

import dataclasses
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from smg.launch_router import parse_router_args
from smg.router_args import RouterArgs

from sglang_router_launcher.settings import API_KEY

DRAIN_SETTLE_S = 0


class ArgumentsError(ValueError):
    """Arguments that cannot be used. The text shows no key."""


@dataclass(frozen=True, slots=True)
class ControlKeys:
    """What smg's control plane wants: without any key, whoever reaches it adds and removes workers.

    `admin` is there so that nobody has it; `reader` may only look.
    """

    admin: str = field(repr=False)
    reader: str = field(repr=False)


def fresh_keys() -> ControlKeys:
    return ControlKeys(secrets.token_urlsafe(32), secrets.token_urlsafe(32))


def parsed(arguments: Sequence[str]) -> RouterArgs:
    """By smg, which ends the process with its own message where it does not know an argument."""
    try:
        args = parse_router_args(list(arguments))
    except ValueError as error:  # what smg finds after argparse
        raise ArgumentsError(str(error)) from error
    if args.api_key is not None:
        raise ArgumentsError(
            "--api-key: a key among the arguments can be read by whoever sees the pod or its "
            f"processes; set the environment variable {API_KEY} from a Secret"
        )
    if args.control_plane_api_keys:
        raise ArgumentsError(
            "--control-plane-api-keys: this launcher makes them itself, new ones at each start, "
            "so that nobody can add or remove workers; remove the argument"
        )
    return args


def with_quick_removal(args: RouterArgs) -> RouterArgs:
    """The same, and a worker that discovery drops is gone at once, not 5 s later.

    smg 1.13.0 overlooks a pod that becomes ready again while its worker is being removed, until
    some other pod changes or a minute has passed. Requests outlive the removal, however long they
    take: tests/integration/test_router.py.
    """
    quick = dataclasses.replace(args)
    # No argument of smg's command line; its Router takes it, and gets all attributes of these.
    vars(quick)["drain_settle_secs"] = DRAIN_SETTLE_S
    return quick


def with_keys(args: RouterArgs, api_key: str | None, keys: ControlKeys) -> RouterArgs:
    # As smg parses id:name:role:key.
    control = [
        ("launcher", "nobody", keys.admin, "admin"),
        ("list", "worker list", keys.reader, "user"),
    ]
    return dataclasses.replace(args, api_key=api_key, control_plane_api_keys=control)
