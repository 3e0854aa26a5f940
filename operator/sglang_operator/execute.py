"""Carry out a plan: the only place that writes to SGLangClusters and their children."""

import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from sglang_controllers.manifest import Manifest, ObjectKey, key_of
from sglang_controllers.names import API_VERSION, KIND, TOKEN_KEY
from sglang_controllers.plan import Apply, Delete, EventRecord, Plan
from sglang_controllers.snapshot import WriteError
from sglang_operator.cache import Cache, Key, uid_of
from sglang_operator.clock import Clock
from sglang_operator.events import event
from sglang_operator.kube import JSON_PATCH, MERGE_PATCH, ApiError, Kube, KubeError
from sglang_operator.managed_fields import ownership_patch
from sglang_operator.resources import BY_KIND, CLUSTERS, EVENTS, PODS, SECRETS, Resource

log = logging.getLogger(__name__)

OWNERSHIP_ATTEMPTS = 3
"""Each fails only when somebody else changed the object between our read and our patch."""


NAMESPACE_GOES = "because it is being terminated"


class Verb(StrEnum):
    CREATE = "create"
    OWN = "own"  # our fields move from the POST's entry to the applied ones
    APPLY = "apply"
    DELETE = "delete"
    STATUS = "status"
    EVENT = "event"


@dataclass(frozen=True, slots=True)
class Write:
    """One request that changed something, or tried to."""

    verb: Verb
    kind: str
    namespace: str
    name: str


@dataclass(slots=True)
class Outcome:
    """What became of a plan.

    `errors`: refusals, by object. `written`: objects whose write succeeded. `stale`: the cache was
    found out of date and has been put right. `failure`: what ended the run early, None: nothing.
    """

    errors: dict[ObjectKey, WriteError] = field(default_factory=dict)
    written: set[ObjectKey] = field(default_factory=set)
    stale: bool = False
    failure: KubeError | None = None


class NotLeadingError(Exception):
    """Another process may be writing by now."""


AfterWrite = Callable[[Write], Awaitable[None]]


async def no_hook(_: Write) -> None:
    return


@dataclass(frozen=True, slots=True)
class Around:
    """What surrounds each write.

    `may_write` is asked before it, `count` is told its outcome (ok, refused or failed), and
    `after_write` runs after one that succeeded.
    """

    may_write: Callable[[], bool]
    count: Callable[[Write, str], None]
    after_write: AfterWrite = no_hook


class Executor:
    """`identity` is the process that events name as their reporter."""

    def __init__(
        self,
        kube: Kube,
        cache: Cache,
        around: Around,
        clock: Clock,
        identity: str,
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._around = around
        self._clock = clock
        self._identity = identity

    async def carry_out(self, key: Key, cluster: Manifest, plan: Plan) -> Outcome:
        """All writes of a plan, in order.

        A refused one stops only what relies on it: deletions wait until everything that may
        replace the deleted exists, but for what is aside; events until their transition is in the
        status.
        """
        outcome, itself = Outcome(), ObjectKey(KIND, key.name)
        try:
            for manifest in plan.create:
                await self._attempt(key_of(manifest), outcome, self._create(key, cluster, manifest))
            # A token that is there already is no progress, and must not look like a busy cluster.
            outcome.written -= {target for target in outcome.written if target.kind == SECRETS.kind}
            for apply in plan.apply:
                await self._attempt(key_of(apply.manifest), outcome, self._apply(key, apply))
            aside = {ObjectKey("ConfigMap", name) for name in plan.aside}
            if outcome.errors.keys() <= aside and not outcome.stale:
                for delete in plan.delete:
                    target = ObjectKey(delete.kind, delete.name)
                    await self._attempt(target, outcome, self._delete(key, delete))
            # A status that was planned on an outdated view would be put right by the next run, after
            # everybody has been told.
            if plan.status is not None and not outcome.stale:
                await self._attempt(itself, outcome, self._status(key, cluster, plan.status))
        except KubeError as error:
            outcome.failure = error
            return outcome
        if itself in outcome.written or (plan.status is None and not outcome.stale):
            await self._events(cluster, plan.events)
        return outcome

    async def _attempt(
        self, target: ObjectKey, outcome: Outcome, write: Awaitable[WriteError | None]
    ) -> None:
        """Run one write and note its end.

        What may pass by itself is raised: nothing of it belongs in a status.
        """
        try:
            error = await write
        except _StaleError:
            outcome.stale = True
            return
        except ApiError as refused:  # of a read that the write needed
            if refused.may_pass:
                raise
            error = WriteError("get", refused.status, refused.reason, refused.message)
        if error is None:
            outcome.written.add(target)
        else:
            outcome.errors[target] = error

    async def _create(self, key: Key, cluster: Manifest, manifest: Manifest) -> WriteError | None:
        resource = BY_KIND[manifest["kind"]]
        manifest = _placed(manifest, key)
        name = manifest["metadata"]["name"]
        write = Write(Verb.CREATE, resource.kind, key.namespace, name)
        if resource is SECRETS:
            return await self._create_token(write, manifest)
        try:
            made = await self._write(write, partial(self._kube.create, resource, manifest))
        except ApiError as error:
            if error.reason == "AlreadyExists" and await self._adopt(key, cluster, resource, name):
                raise _StaleError from error
            return _recorded(write, error)
        self._cache.put(made, key)
        await self._around.after_write(write)
        return None

    async def _create_token(self, write: Write, manifest: Manifest) -> WriteError | None:
        """A Secret with a token that is in no memory but the API server's.

        One that is there already is as good: we could not even see whose it is.
        """
        filled = {**manifest, "stringData": {TOKEN_KEY: secrets.token_urlsafe(32)}}
        try:
            await self._write(write, partial(self._kube.create, SECRETS, filled))
        except ApiError as error:
            if error.reason == "AlreadyExists":
                return None
            return _recorded(write, error)
        await self._around.after_write(write)
        return None

    async def _adopt(self, key: Key, cluster: Manifest, resource: Resource, name: str) -> bool:
        """Whether the object in the way is the cluster's own, unseen so far, or gone again."""
        live = await self._live(resource, key, name)
        if live is None:
            return True
        owners = live["metadata"].get("ownerReferences") or ()
        ours = any(o.get("controller") and o["uid"] == uid_of(cluster) for o in owners)
        if ours:
            self._cache.put(live, key, just_read=True)
        return ours

    async def _apply(self, key: Key, apply: Apply) -> WriteError | None:
        resource = BY_KIND[apply.manifest["kind"]]
        manifest = _placed(apply.manifest, key, apply.uid)
        name = manifest["metadata"]["name"]
        write = Write(Verb.APPLY, resource.kind, key.namespace, name)
        try:
            if apply.complete:
                await self._own_fields(resource, key, name, apply.uid)
            made = await self._write(write, partial(self._kube.apply, resource, manifest))
        except ApiError as error:
            if error.status == 422 and apply.complete and resource.kind == "Service":
                return await self._replace_ports(key, resource, apply, error)
            if resource is PODS and error.status in (404, 409):  # it has gone; its event comes
                raise _StaleError from error
            return await self._refused(write, key, resource, error, apply.uid)
        self._cache.put(made, key)
        await self._around.after_write(write)
        return None

    async def _replace_ports(
        self, key: Key, resource: Resource, apply: Apply, refusal: ApiError
    ) -> WriteError | None:
        """Put the ports of a Service right where an apply cannot.

        Ports are told apart by number: one whose number somebody changed stays beside ours, and
        two of one name are refused. The next run applies what else differs. Where the ports were
        right already, `refusal` has another cause, and stands.
        """
        name = apply.manifest["metadata"]["name"]
        write = Write(Verb.APPLY, resource.kind, key.namespace, name)
        patch = {
            "metadata": {"uid": apply.uid},
            "spec": {"ports": apply.manifest["spec"]["ports"]},
        }
        request = partial(self._kube.patch, resource, key.namespace, name, patch, MERGE_PATCH)
        try:
            made = await self._write(write, request)
        except ApiError as error:
            return await self._refused(write, key, resource, error, apply.uid)
        if not self._cache.put(made, key):
            return await self._refused(write, key, resource, refusal, apply.uid)
        await self._around.after_write(write)
        return None

    async def _own_fields(self, resource: Resource, key: Key, name: str, uid: str) -> None:
        """Let the coming apply remove what it no longer names."""
        write = Write(Verb.OWN, resource.kind, key.namespace, name)
        for attempt in range(1, OWNERSHIP_ATTEMPTS + 1):
            live = await self._live(resource, key, name)
            if live is None or uid_of(live) != uid:
                return  # the apply that follows is refused by its uid
            patch = ownership_patch(live)
            if patch is None:
                return
            request = partial(self._kube.patch, resource, key.namespace, name, patch, JSON_PATCH)
            try:
                self._cache.put(await self._write(write, request), key)
            except ApiError as error:
                if error.status != 409 or attempt == OWNERSHIP_ATTEMPTS:
                    raise
            else:
                await self._around.after_write(write)
                return

    async def _delete(self, key: Key, delete: Delete) -> WriteError | None:
        resource = BY_KIND[delete.kind]
        write = Write(Verb.DELETE, resource.kind, key.namespace, delete.name)
        request = partial(self._kube.delete, resource, key.namespace, delete.name, delete.uid)
        try:
            answer = await self._write(write, request)
        except ApiError as error:
            return await self._refused(write, key, resource, error, delete.uid)
        if answer.get("kind") == resource.kind and answer["metadata"].get("finalizers"):
            self._cache.put(answer, key)  # somebody's finalizer keeps it a while
        else:
            self._cache.remove(_stub(resource, key, delete.name, delete.uid))
        await self._around.after_write(write)
        return None

    async def _status(self, key: Key, cluster: Manifest, status: Manifest) -> WriteError | None:
        uid = uid_of(cluster)
        write = Write(Verb.STATUS, KIND, key.namespace, key.name)
        manifest = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"namespace": key.namespace, "name": key.name, "uid": uid},
            "status": status,
        }
        try:
            made = await self._write(write, partial(self._kube.apply, CLUSTERS, manifest, "status"))
        except ApiError as error:
            return await self._refused(write, key, CLUSTERS, error, uid)
        self._cache.put(made)
        await self._around.after_write(write)
        return None

    async def _events(self, cluster: Manifest, records: tuple[EventRecord, ...]) -> None:
        """Tell what happened. An event that cannot be written is worth a log line, no more."""
        for record in records:
            told = event(cluster, record, self._clock.now(), self._identity)
            namespace, name = cluster["metadata"]["namespace"], cluster["metadata"]["name"]
            write = Write(Verb.EVENT, KIND, namespace, name)
            extra = {"namespace": namespace, "cluster": name, "reason": record.reason}
            log.info("%s: %s", record.reason, record.message, extra=extra)
            try:
                await self._write(write, partial(self._kube.create, EVENTS, told))
            except KubeError as error:
                known = isinstance(error, ApiError) and error.reason == "AlreadyExists"
                if not (known and record.once):  # told already
                    log.warning("event not written: %s", error, extra=extra)
                continue
            await self._around.after_write(write)

    async def _write(self, write: Write, request: Callable[[], Awaitable[Manifest]]) -> Manifest:
        """The answer to a request, counted."""
        if not self._around.may_write():
            raise NotLeadingError
        try:
            answer = await request()
        except ApiError as error:
            self._around.count(write, "failed" if error.may_pass else "refused")
            raise
        except KubeError:
            self._around.count(write, "failed")
            raise
        self._around.count(write, "ok")
        return answer

    async def _refused(
        self, write: Write, key: Key, resource: Resource, error: ApiError, uid: str
    ) -> WriteError | None:
        """The record of a refusal, unless it came from an outdated view of the object."""
        if error.status in (404, 409):
            live = await self._live(resource, key, write.name)
            if live is None or uid_of(live) != uid:
                self._cache.remove(_stub(resource, key, write.name, uid))
                if live is not None:
                    self._cache.put(live, just_read=True)
                raise _StaleError from error
            if self._cache.put(live, key, just_read=True):
                raise _StaleError from error
        return _recorded(write, error)

    async def _live(self, resource: Resource, key: Key, name: str) -> Manifest | None:
        """The object as it is in the API server now, None: there is none."""
        try:
            return await self._kube.get(resource, key.namespace, name)
        except ApiError as error:
            if error.status == 404:
                return None
            raise


class _StaleError(Exception):
    """The write was planned on an outdated view, which has been put right since."""


def _recorded(write: Write, error: ApiError) -> WriteError:
    """A refusal for the status; what may pass by itself goes on as an exception."""
    if NAMESPACE_GOES in error.message:  # and the cluster with it: nobody has to do anything
        raise _StaleError from error
    if error.may_pass:
        raise error
    return WriteError(write.verb, error.status, error.reason, error.message)


def _placed(manifest: Manifest, key: Key, uid: str | None = None) -> Manifest:
    """The manifest in the cluster's namespace, bound to one object where `uid` is given."""
    bound: Mapping[str, str] = {"uid": uid} if uid else {}
    return {
        **manifest,
        "metadata": {**manifest["metadata"], "namespace": key.namespace, **bound},
    }


def _stub(resource: Resource, key: Key, name: str, uid: str) -> Manifest:
    return {
        "kind": resource.kind,
        "metadata": {"namespace": key.namespace, "name": name, "uid": uid},
    }
