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
PARENT_PATTERN = r"/\.\.(/|$)"
"""A path that climbs out of its volume. Kubernetes refuses it in a subPath."""

FORMS = (
    "a source is oci://IMAGE, pvc://CLAIM/PATH or image:///PATH, without spaces and without '..'; "
    'write "oci://registry.example.com/models/smollm2:v1", "pvc://models/smollm2" '
    'or "image:///models/smollm2"'
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


Source = OciImage | ClaimPath | ImagePath


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
    raise ValueError(FORMS)
