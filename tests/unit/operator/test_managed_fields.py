"""Our fields move from the POST's entry to the applied ones, and nobody else's do."""

from typing import Any

from sglang_operator.managed_fields import Fields, owned_by_apply, ownership_patch


def an_entry(manager: str, operation: str, fields: dict[str, Any], **more: str) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "fieldsV1": fields, **more}


POSTED = an_entry("sglang-operator", "Update", {"f:spec": {"f:a": {}, "f:ports": {".": {}}}})
APPLIED = an_entry("sglang-operator", "Apply", {"f:spec": {"f:b": {}, "f:ports": {"k:1": {}}}})
STATUS = an_entry("sglang-operator", "Update", {"f:status": {}}, subresource="status")
FOREIGN = an_entry("kubectl", "Update", {"f:metadata": {"f:labels": {}}})


def test_what_was_posted_becomes_applied() -> None:
    assert owned_by_apply([POSTED]) == [{**POSTED, "operation": "Apply"}]


def test_posted_and_applied_fields_become_one_set() -> None:
    merged = owned_by_apply([APPLIED, POSTED])

    fields: Fields = {"f:spec": {"f:a": {}, "f:b": {}, "f:ports": {".": {}, "k:1": {}}}}
    assert merged == [an_entry("sglang-operator", "Apply", fields)]


def test_others_keep_their_entries_and_so_does_our_status() -> None:
    merged = owned_by_apply([FOREIGN, POSTED, STATUS])

    assert merged is not None
    assert merged[1:] == [FOREIGN, STATUS]


def test_there_is_nothing_to_do_where_all_is_applied() -> None:
    assert owned_by_apply([APPLIED, FOREIGN, STATUS]) is None
    assert owned_by_apply([]) is None


def test_the_patch_holds_only_for_the_version_that_was_read() -> None:
    live = {"metadata": {"resourceVersion": "7", "managedFields": [POSTED]}}

    patch = ownership_patch(live)

    assert patch is not None
    assert {op["path"]: op["value"] for op in patch} == {
        "/metadata/managedFields": [{**POSTED, "operation": "Apply"}],
        "/metadata/resourceVersion": "7",
    }


def test_the_inputs_are_left_alone() -> None:
    before: Fields = {"f:spec": {"f:a": {}, "f:ports": {".": {}}}}

    owned_by_apply([APPLIED, POSTED])

    assert POSTED["fieldsV1"] == before
