"""What the agent leaves for the operator: how its drain ended, in its container's status."""

import json
import logging
from pathlib import Path

from sglang_agent.agent import Report

LOG = logging.getLogger("sglang_agent")


class TerminationLog:
    """Kubelet reads the file when the container has ended, and puts its text into the pod."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._complained = False

    def drained(self, report: Report) -> None:
        """Written at once: an agent that is killed later has said it. The last drain counts."""
        drain = {
            "outcome": report.outcome,
            "seconds": round(report.seconds, 3),
            "in_flight": report.in_flight,
        }
        try:
            # Never made here: the file is kubelet's, and nobody would read another one.
            with self._path.open("r+", encoding="utf-8") as log:
                log.truncate()
                log.write(json.dumps({"drain": drain}) + "\n")
        except OSError as error:
            if not self._complained:
                LOG.warning("the end of a drain is not left", extra={"reason": str(error)})
            self._complained = True
