"""A download that failed says why, and what to do."""

import pytest

from sglang_controllers.diagnosis import diagnosis
from tests.builders import a_pod, download_ended


@pytest.mark.parametrize(
    ("said", "reason", "says"),
    [
        (
            "error: gated: https://h does not give a/b@main without a token, and none is set\n",
            "ModelGated",
            "name the Secret with your token in spec.model.tokenSecretRef",
        ),
        (
            "error: no-model: https://h has no model a/b",
            "ModelNotFound",
            "Correct the hf:// source or spec.model.hubEndpoint",
        ),
        ("error: no-revision: https://h has no revision x", "ModelNotFound", "follows @"),
        (
            "a/b: trying again in 4 s: ConnectError\nerror: unreachable: http://h cannot be reached",
            "ModelDownload",
            "spec.model.hubEndpoint",
        ),
        ("error: no-space: a/b does not fit", "ModelDownload", "spec.model.cache more room"),
        ("error: not-writable: a/b cannot be stored", "ModelDownload", "Let uid 1000 write"),
        ("error: no-client: huggingface_hub is missing", "ModelDownload", "another source"),
        (
            "Traceback\nerror: failed: a/b cannot be fetched: ValueError: x",
            "ModelDownload",
            "kubectl logs pod-1 -c download",
        ),
        ("", "ModelDownload", "the download ended with exit code 1"),
    ],
)
def test_a_failed_download_says_why(said: str, reason: str, says: str) -> None:
    finding = diagnosis(a_pod(**download_ended(said)), ())

    assert finding is not None
    assert finding.reason == reason
    assert says in finding.message
