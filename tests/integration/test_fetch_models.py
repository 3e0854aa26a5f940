"""The download as its container runs it, with the real huggingface_hub and a stand-in of the hub."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.hub import Fault, Hub
from sglang_controllers.resources.download import SCRIPT
from tests.integration.control_plane import free_port
from tests.integration.fetching import (
    FILES,
    MODEL,
    PYTHON,
    STRANGER,
    TOKEN,
    WEIGHTS,
    Site,
    ended,
    in_a_mount,
    in_a_pod,
    killed_while_it_fetches,
    put,
    wait_for_answers,
    with_constant,
)

UNWANTED = {"pytorch_model.bin": b"x" * 100, "logo.png": b"png", ".gitattributes": b"*.bin"}


@pytest.fixture(name="site")
def _site(tmp_path: Path) -> Iterator[Site]:
    assert PYTHON.exists(), f"there is no engine environment at {PYTHON}: run make engine-env"
    put(tmp_path / "models", MODEL, FILES | UNWANTED)
    for folder in ("cache", "home"):
        (tmp_path / folder).mkdir()
    gated, branches = frozenset({"org/gated"}), ("main", "release/1")
    hub = Hub(tmp_path / "models", gated, TOKEN, STRANGER, branches)
    site = Site(hub, tmp_path / "cache", tmp_path / "home", tmp_path / "new" / "links")
    yield site
    for process in site.started:
        if process.poll() is None:
            process.kill()
            process.communicate()


@pytest.fixture(name="hub")
def _hub(site: Site) -> Iterator[Hub]:
    with site.hub.serving() as hub:
        yield hub


def test_the_link_leads_to_the_files_that_sglang_reads(site: Site, hub: Hub) -> None:
    done = site.fetch(f"{MODEL}@main")

    assert done.code == 0, done
    assert site.linked() == FILES
    assert (site.links / "model").readlink() == site.model / site.commit
    assert (site.model / f"{site.commit}.complete").exists()
    assert (site.model / "refs" / "main").read_text() == site.commit
    assert "4 of 4 files, 0.5 of 0.5 MiB" in done.out
    assert not hub.got("pytorch_model.bin")


def test_a_pinned_commit_starts_again_without_a_hub(site: Site) -> None:
    with site.hub.serving() as hub:
        assert site.fetch(f"{MODEL}@{site.commit}").code == 0
        asked = len(hub.requests)
        (site.links / "model").unlink()

        done = site.fetch(f"{MODEL}@{site.commit}")

        assert done.code == 0, done
        assert len(hub.requests) == asked
    assert site.linked() == FILES


def test_a_branch_that_moved_gets_a_new_folder_and_the_old_one_stays(site: Site, hub: Hub) -> None:
    assert site.fetch().code == 0
    old = site.model / site.commit
    kept = {path: path.stat().st_mtime_ns for path in old.rglob("*")}
    (hub.root / MODEL / "config.json").write_bytes(b'{"model_type": "qwen3"}')

    done = site.fetch()

    assert done.code == 0, done
    assert site.linked()["config.json"] == b'{"model_type": "qwen3"}'
    assert (site.links / "model").readlink() == site.model / site.commit
    assert {path: path.stat().st_mtime_ns for path in old.rglob("*")} == kept


def test_a_branch_without_its_hub_is_the_last_commit_known(site: Site) -> None:
    source = f"{MODEL}@release/1"
    with site.hub.serving():
        assert site.fetch(source).code == 0
    (site.links / "model").unlink()
    site.script = with_constant("PAUSES_S", "(0.1, 0.1)")

    done = site.fetch(source)

    assert done.out.count("trying again") == 2
    assert done.code == 0, done
    assert site.linked() == FILES
    assert f"the hub cannot be reached: using {site.commit}" in done.out


def test_a_hub_that_refuses_is_not_a_hub_that_is_away(site: Site, hub: Hub) -> None:
    assert site.fetch().code == 0

    done = site.fetch(token="hf_expired")

    assert done.error.startswith("error: gated: ")


def test_a_killed_download_is_gone_on_with(site: Site, hub: Hub) -> None:
    partial = killed_while_it_fetches(site)

    done = site.fetch()

    assert done.code == 0, done
    assert site.linked() == FILES
    assert [len(hub.got(f"/{name}")) for name in FILES] == [1, 1, 2, 1]
    assert not partial.exists()


def test_downloads_that_are_killed_again_and_again_do_not_fill_the_disk(
    site: Site, hub: Hub
) -> None:
    killed_while_it_fetches(site)

    partial = killed_while_it_fetches(site)

    assert len(list(partial.rglob("*.incomplete"))) == 1


def test_two_pods_at_once_fetch_a_commit_once(site: Site, hub: Hub) -> None:
    hub.faults.append(Fault(WEIGHTS, stall_after=100_000))
    first = site.start(MODEL, str(site.links / "first"))
    assert hub.stalled.wait(30)
    second = site.start(MODEL, str(site.links / "second"))
    assert second.stdout
    seen = iter(second.stdout.readline, "")
    assert any("waiting for another pod" in line for line in seen)

    hub.stopped.set()

    assert [ended(first).code, ended(second).code] == [0, 0]
    assert site.linked("first") == site.linked("second") == FILES
    assert len(hub.got("/config.json")) == 1


def test_a_pod_that_dies_leaves_its_turn_to_the_next(site: Site, hub: Hub) -> None:
    hub.faults.append(Fault(WEIGHTS, stall_after=100_000))
    first = site.start(MODEL, str(site.links / "first"))
    assert hub.stalled.wait(30)
    second = site.start(MODEL, str(site.links / "second"))
    assert second.stdout
    assert any("waiting for another pod" in line for line in iter(second.stdout.readline, ""))

    first.terminate()

    assert ended(first).code == 128 + signal.SIGTERM
    assert ended(second).code == 0
    assert site.linked("second") == FILES


@pytest.mark.parametrize(
    ("locks", "folder"),
    [
        ("raise OSError(errno.ENOLCK, 'No locks available')", "first.partial"),
        ("return None", "partial"),
    ],
    ids=["refused to all", "given to all"],
)
def test_a_file_system_without_locks_costs_only_a_second_download(
    site: Site, hub: Hub, locks: str, folder: str
) -> None:
    # NFS without its lock service does the one, FUSE on two nodes the other.
    site.script = f"import errno, fcntl\ndef lockf(*_): {locks}\nfcntl.lockf = lockf\n{SCRIPT}"
    hub.faults.append(Fault(WEIGHTS, stall_after=100_000))
    site.before = in_a_pod("first")
    first = site.start(MODEL, str(site.links / "first"))
    assert hub.stalled.wait(30)
    assert (site.model / f"{site.commit}.{folder}").is_dir()
    site.before = in_a_pod("second")
    second = ended(site.start(MODEL, str(site.links / "second")))
    assert second.code == 0, second
    inodes = {path: path.stat().st_ino for path in (site.model / site.commit).rglob("*")}

    hub.stopped.set()

    done = ended(first)
    assert done.code == 0, done
    assert site.linked("first") == site.linked("second") == FILES
    assert {path: path.stat().st_ino for path in (site.model / site.commit).rglob("*")} == inodes
    assert not list(site.model.glob("*partial"))


def test_a_long_download_tells_how_far_it_is(site: Site, hub: Hub) -> None:
    site.script = with_constant("PROGRESS_S", "0.1")
    hub.faults.append(Fault(WEIGHTS, stall_after=100_000))

    process = site.start(MODEL, str(site.links / "model"))

    assert process.stdout
    seen = (line.strip() for line in iter(process.stdout.readline, ""))
    assert any(line.startswith(f"{MODEL}: 3 of 4 files, 0.") for line in seen)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(WEIGHTS, cut_after=100_000),
        Fault(WEIGHTS, status=503),
        Fault("/api/models/", status=503),
    ],
    ids=["cut in the middle", "a file refused for now", "the hub busy for now"],
)
def test_what_passes_is_tried_again(site: Site, hub: Hub, fault: Fault) -> None:
    hub.faults.append(fault)

    done = site.fetch()

    assert done.code == 0, done
    assert fault.times == 0
    assert site.linked() == FILES


@pytest.mark.parametrize(
    ("token", "says"),
    [
        ("", "without a token, and none is set"),
        ("hf_mistyped", "to the token that is set"),
        (STRANGER, "its account has no access"),
    ],
    ids=["no token", "a wrong token", "a token of somebody else"],
)
def test_a_gated_model_says_what_is_wrong_with_the_token(
    site: Site, hub: Hub, token: str, says: str
) -> None:
    put(hub.root, "org/gated", FILES)

    done = site.fetch("org/gated@main", token)

    assert done.error.startswith(f"error: gated: {hub.url} does not give org/gated@main ")
    assert says in done.error
    assert not (site.links / "model").exists()


def test_a_gated_model_opens_for_the_right_token_which_is_written_nowhere(
    site: Site, hub: Hub
) -> None:
    put(hub.root, "org/gated", FILES)
    hub.faults.append(Fault("config.json", status=503))

    done = site.fetch("org/gated", TOKEN)

    assert done.code == 0, done
    assert site.linked() == FILES
    written = [path for path in (*site.cache.rglob("*"), *site.home.rglob("*")) if path.is_file()]
    assert TOKEN not in done.out + done.err
    assert not [path for path in written if TOKEN.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("token", "says"), [("", "or it is private: no token is set"), (TOKEN, "may not see it")]
)
def test_a_model_that_does_not_exist_may_also_be_private(
    site: Site, hub: Hub, token: str, says: str
) -> None:
    done = site.fetch("org/tyni@main", token)

    assert done.error.startswith(f"error: no-model: {hub.url} has no model org/tyni ")
    assert says in done.error


def test_a_revision_that_does_not_exist_is_told_from_a_model(site: Site, hub: Hub) -> None:
    done = site.fetch(f"{MODEL}@v9")

    assert done.error == (
        f"error: no-revision: {hub.url} has the model {MODEL}, but no revision v9 of it "
        f"({MODEL}@v9)"
    )


def test_a_hub_that_cannot_be_reached_is_named(site: Site) -> None:
    site.hub.port = free_port()
    site.script = with_constant("PAUSES_S", "(0.1, 0.1)")

    done = site.fetch(f"{MODEL}@main")

    assert done.error.startswith(
        f"error: unreachable: {site.hub.url} cannot be reached for {MODEL}"
    )
    assert done.error.endswith("ConnectionRefusedError: [Errno 111] Connection refused")


def test_a_full_disk_is_told_with_what_is_free(site: Site, hub: Hub) -> None:
    site.before = in_a_mount(site.cache, "size=200k")

    done = site.fetch(f"{MODEL}@main")

    assert done.error == (
        f"error: no-space: {MODEL}@main of {hub.url} does not fit into {site.cache}, where "
        "0.0 GiB are free: [Errno 28] No space left on device"
    )


def test_a_read_only_cache_is_told(site: Site, hub: Hub) -> None:
    site.before = in_a_mount(site.cache, "ro")

    done = site.fetch(f"{MODEL}@main")

    assert done.error.startswith(
        f"error: not-writable: {MODEL}@main of {hub.url} cannot be stored in {site.cache}: user "
    )


def test_a_cache_of_another_user_is_told(site: Site, hub: Hub) -> None:
    site.cache.chmod(0o555)
    if os.getuid() == 0:  # which may write everywhere, unless it gives that up
        site.before = ["setpriv", "--bounding-set", "-dac_override", "--inh-caps", "-dac_override"]

    done = site.fetch(f"{MODEL}@main")

    assert done.error.startswith("error: not-writable: ")
    assert "Permission denied" in done.error


def test_an_image_without_the_client_is_told(site: Site, hub: Hub) -> None:
    site.before = ["sh", "-euc", 'shift; exec /usr/bin/env python3 -S "$@"', "sh"]

    done = site.fetch(f"{MODEL}@main")

    assert done.error.startswith(f"error: no-client: {MODEL}@main cannot be fetched from {hub.url}")


def test_an_unknown_failure_keeps_its_traceback(site: Site, hub: Hub) -> None:
    (site.links / "model").mkdir(parents=True)

    done = site.fetch()

    assert "Traceback (most recent call last)" in done.err
    assert done.error.startswith(f"error: failed: {MODEL} cannot be fetched from {hub.url}: ")


def test_several_models_have_a_link_each(site: Site, hub: Hub) -> None:
    put(hub.root, "draft", {"config.json": b"{}", "model.safetensors": bytes(100)})
    pairs = (f"{MODEL}@main", str(site.links / "model"), "draft@main", str(site.links / "draft"))

    done = ended(site.start(*pairs))

    assert done.code == 0, done
    assert site.linked("model") == FILES
    assert site.linked("draft") == {"config.json": b"{}", "model.safetensors": bytes(100)}


def test_a_link_of_an_earlier_start_is_replaced(site: Site, hub: Hub) -> None:
    site.links.mkdir(parents=True)
    (site.links / "model").symlink_to(site.home)

    assert site.fetch().code == 0

    assert site.linked() == FILES


def test_a_folder_without_its_marker_is_looked_at_before_it_is_used(site: Site, hub: Hub) -> None:
    assert site.fetch().code == 0
    (site.model / f"{site.commit}.complete").unlink()
    (site.model / site.commit / WEIGHTS).write_bytes(b"half")

    done = site.fetch()

    assert done.code == 0, done
    assert site.linked() == FILES


def test_the_hub_of_the_end_to_end_tests_is_a_command(site: Site) -> None:
    put(site.hub.root, "org/gated", FILES)
    site.hub.port = free_port()
    options = ["--root", str(site.hub.root), "--port", str(site.hub.port)]
    gated = ["--gated", "org/gated", "--token", TOKEN]
    hub = subprocess.Popen(
        ["python3", "e2e/hub.py", *options, *gated], cwd=Path(__file__).parents[2]
    )
    wait_for_answers(site.hub.port)

    refused, given = site.fetch("org/gated"), site.fetch("org/gated", TOKEN)

    hub.terminate()
    assert hub.wait(10) == 0
    assert refused.error.startswith("error: gated: ")
    assert given.code == 0, given
    assert site.linked() == FILES
