"""What the end of a model's download says, by the last line of its script."""

import re
from typing import Any

from sglang_controllers import names
from sglang_controllers.engine_errors import telling_line
from sglang_controllers.reasons import Reason
from sglang_controllers.redaction import excerpt

DOWNLOAD_ERROR = re.compile(r"^error: (?P<kind>[a-z-]+): (?P<what>.+)$", re.MULTILINE)

DOWNLOAD_FAULTS: dict[str, tuple[Reason, str]] = {
    "gated": (
        Reason.MODEL_GATED,
        "Accept its terms and name the Secret with your token in spec.model.tokenSecretRef",
    ),
    "no-model": (
        Reason.MODEL_NOT_FOUND,
        "Correct the hf:// source or spec.model.hubEndpoint, or set spec.model.tokenSecretRef",
    ),
    "no-revision": (Reason.MODEL_NOT_FOUND, "Correct what follows @ in the hf:// source"),
    "unreachable": (
        Reason.MODEL_DOWNLOAD,
        "Check spec.model.hubEndpoint, NetworkPolicies, and HTTPS_PROXY in spec.engine.env",
    ),
    "no-space": (Reason.MODEL_DOWNLOAD, "Give spec.model.cache more room"),
    "not-writable": (Reason.MODEL_DOWNLOAD, "Let uid 1000 write to the folder of spec.model.cache"),
    "no-client": (
        Reason.MODEL_DOWNLOAD,
        "Use an engine image with huggingface_hub, or another source than hf://",
    ),
}
"""What sglang_controllers/scripts/fetch_models.py ends with, and what to do about it."""


def download_finding(ended: dict[str, Any], pod: str) -> tuple[Reason, str]:
    """Reason and message for the terminated state of a download in that pod."""
    log = ended.get("message") or ""
    found = next(reversed(list(DOWNLOAD_ERROR.finditer(log))), None)
    kind, said = (found["kind"], found["what"]) if found else ("", telling_line(log))
    log_command = f"kubectl logs {pod} -c {names.DOWNLOAD_CONTAINER}"
    unknown = (
        Reason.MODEL_DOWNLOAD,
        f"Check spec.model.hubEndpoint; its log: {log_command}",
    )
    reason, fix = DOWNLOAD_FAULTS.get(kind, unknown)
    said = excerpt(said) or f"the download ended with exit code {ended.get('exitCode')}"
    return reason, f"{said}. {fix}"
