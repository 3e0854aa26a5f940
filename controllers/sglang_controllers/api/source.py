"""Where a model's files come from: `spec.model.source`."""

import re
from dataclasses import dataclass

OCI_PATTERN = (
    r"^oci://[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:[0-9]+)?"
    r"(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*"
    r"(:[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127})?(@sha256:[a-f0-9]{64})?$"
)
CLAIM_PATTERN = r"^pvc://[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(/[^\s]*)?$"
IMAGE_PATH_PATTERN = r"^image:///[^\s]+$"
HUB_PATTERN = (
    r"^hf://[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?"
    r"(@[A-Za-z0-9][A-Za-z0-9._/-]*)?$"
)
PARENT_PATTERN = r"/\.\.(/|$)"
"""A path that climbs out of its volume. Kubernetes refuses it in a subPath."""

FORMS = (
    "a source is hf://ORG/NAME@REVISION, oci://IMAGE, pvc://CLAIM/PATH or image:///PATH, without "
    "spaces and without '..'; "
    'write "hf://Qwen/Qwen3-8B@main", "oci://registry.example.com/models/smollm2:v1", '
    '"pvc://models/smollm2" or "image:///models/smollm2"'
)
"""The rule and its fix, as the API server and the operator both say it."""


@dataclass(frozen=True, slots=True)
class OciImage:
    """An OCI image whose files are the model, mounted as a volume."""

    reference: str


@dataclass(frozen=True, slots=True)
class ClaimPath:
    """A folder of a PersistentVolumeClaim. An empty `path` is the volume's root."""

    claim: str
    path: str


@dataclass(frozen=True, slots=True)
class ImagePath:
    """A folder inside the engine's own image."""

    path: str


@dataclass(frozen=True, slots=True)
class HubModel:
    """A model of a hub that speaks Hugging Face's API, downloaded before the engine starts.

    `revision` is a commit, tag or branch.
    """

    repository: str
    revision: str


Source = OciImage | ClaimPath | ImagePath | HubModel

DEFAULT_REVISION = "main"


def parse_source(text: str) -> Source:
    """What `text` names. ValueError with rule and fix for any other form."""
    if re.search(PARENT_PATTERN, text):
        raise ValueError(FORMS)
    if re.fullmatch(OCI_PATTERN, text, re.ASCII):
        return OciImage(text.removeprefix("oci://"))
    if re.fullmatch(CLAIM_PATTERN, text, re.ASCII):
        claim, _, path = text.removeprefix("pvc://").partition("/")
        return ClaimPath(claim, "/".join(part for part in path.split("/") if part))
    if re.fullmatch(IMAGE_PATH_PATTERN, text, re.ASCII):
        return ImagePath("/" + text.removeprefix("image:///").strip("/"))
    if re.fullmatch(HUB_PATTERN, text, re.ASCII):
        repository, _, revision = text.removeprefix("hf://").partition("@")
        return HubModel(repository, revision or DEFAULT_REVISION)
    raise ValueError(FORMS)
