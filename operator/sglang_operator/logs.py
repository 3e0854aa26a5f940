"""One line per event, on standard error: JSON for machines, or text for people."""

import logging
import sys
from typing import Any

from pythonjsonlogger.json import JsonFormatter

FIELDS = ("namespace", "cluster", "object", "reason")
"""What log records may carry beside their message. Manifests are never logged: they hold secrets
that users put into env.
"""


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        said: dict[str, Any] = {f: getattr(record, f) for f in FIELDS if hasattr(record, f)}
        return line + "".join(f" {name}={value}" for name, value in said.items())


def set_up(log_format: str, level: str) -> None:
    """Send every record of ours to standard error, and of others what warns."""
    handler = logging.StreamHandler(sys.stderr)
    if log_format == "json":
        handler.setFormatter(
            JsonFormatter(
                "%(levelname)s %(name)s %(message)s",
                rename_fields={"levelname": "level", "name": "logger"},
                timestamp="time",
            )
        )
    else:
        handler.setFormatter(TextFormatter("%(asctime)s %(levelname)-7s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("sglang_operator").setLevel(level.upper())
    # Every handler call of Kopf is a line at INFO; its own retries are lines at ERROR, one each.
    logging.getLogger("kopf").setLevel(logging.ERROR)
