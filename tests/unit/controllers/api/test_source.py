import pytest

from sglang_controllers.api.source import ClaimPath, ImagePath, OciImage, Source, parse_source

DIGEST = f"sha256:{'a' * 64}"


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("oci://smollm2", OciImage("smollm2")),
        ("oci://smollm2:dev", OciImage("smollm2:dev")),
        ("oci://localhost:5000/a/b-c__d:1.0_x", OciImage("localhost:5000/a/b-c__d:1.0_x")),
        (f"oci://ghcr.io/a/b:v1@{DIGEST}", OciImage(f"ghcr.io/a/b:v1@{DIGEST}")),
        ("pvc://models", ClaimPath("models", "")),
        ("pvc://models/", ClaimPath("models", "")),
        ("pvc://models/a//b/", ClaimPath("models", "a/b")),
        ("pvc://models/..a/b..", ClaimPath("models", "..a/b..")),
        ("image:///models/smollm2", ImagePath("/models/smollm2")),
        ("image:///models/smollm2/", ImagePath("/models/smollm2")),
    ],
)
def test_a_source_names_one_place(text: str, source: Source) -> None:
    assert parse_source(text) == source


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Qwen/Qwen3-8B",
        "oci://",
        "oci://a//b",
        "oci://a/B",
        "oci://a:b:c",
        "oci://a@sha256:123",
        "OCI://a",
        "pvc://",
        "pvc:///path",
        "pvc://-a",
        "pvc://a/..",
        "pvc://a/../b",
        "pvc://a/b c",
        "pvc://a\n",
        "image://models",
        "image:///",
        "image:///a/../b",
    ],
)
def test_any_other_form_is_refused_with_three_examples(text: str) -> None:
    with pytest.raises(ValueError, match=r"oci://.*pvc://.*image:///"):
        parse_source(text)
