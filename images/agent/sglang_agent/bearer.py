"""Who may read the state: whoever has the token of the file."""

import hmac
from enum import Enum, auto
from pathlib import Path


class Answer(Enum):
    ALLOWED = auto()
    DENIED = auto()
    NO_TOKEN = auto()
    """There is none to compare with, so nobody is let in."""


def token_in(token_file: Path) -> bytes:
    """Read anew each time: Kubernetes changes the file when the Secret changes. Empty: none."""
    try:
        return token_file.read_bytes().strip()
    except OSError:
        return b""


def checked(token_file: Path, authorization: str | None) -> Answer:
    token = token_in(token_file)
    if not token:
        return Answer.NO_TOKEN
    scheme, _, given = (authorization or "").partition(" ")
    # Compared as bytes: compare_digest refuses text beyond ASCII, which a header may hold.
    same = hmac.compare_digest(given.strip().encode(errors="surrogateescape"), token)
    return Answer.ALLOWED if same and scheme.lower() == "bearer" else Answer.DENIED
