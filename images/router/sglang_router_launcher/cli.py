"""The command `sglang-router`: smg's launch arguments, and its keys from elsewhere."""

import os
import sys
from functools import partial

from smg import launch_router

from sglang_router_launcher import listing
from sglang_router_launcher.arguments import (
    ArgumentsError,
    fresh_keys,
    parsed,
    with_keys,
    with_quick_removal,
)
from sglang_router_launcher.settings import SettingsError, settings_taken_from
from sglang_router_launcher.workers import router_of, workers_of


def main() -> int:
    """Return when smg has ended: after SIGTERM, once its requests are done."""
    try:
        settings = settings_taken_from(os.environ)
        args = parsed(sys.argv[1:])
    except (SettingsError, ArgumentsError) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    keys = fresh_keys()
    try:
        listing.start(settings.list_port, partial(workers_of, router_of(args, keys.reader)))
    except OSError as error:
        print(f"error: cannot listen on {settings.list_port}: {error}", file=sys.stderr)  # noqa: T201
        return 1
    if args.log_json:
        # A picture of 15 lines, whatever the log's format.
        vars(launch_router)["print_banner"] = lambda *_: None
    try:
        launch_router.launch_router(with_quick_removal(with_keys(args, settings.api_key, keys)))
    except (ValueError, RuntimeError):  # smg has said why on standard error
        return 1
    return 0
