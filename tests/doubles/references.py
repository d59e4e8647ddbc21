"""Objects that servers hold on to, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from server_api.servers.ports import Missing, PortError, Referent, ReferentKind, StateConflict


@dataclass(frozen=True, slots=True)
class _Entry:
    referent: Referent
    identity_id: str | None


class InMemoryReferences:
    """``ports.References``. Changes are written to ``journal``, as ``hold KIND ID`` and ``release KIND ID``."""

    def __init__(self, journal: list[str] | None = None) -> None:
        self.journal: list[str] = [] if journal is None else journal
        self._entries: dict[tuple[ReferentKind, str], _Entry] = {}
        self._failures: dict[str, PortError] = {}
        self._version = 0

    def put(self, kind: ReferentKind, id_: str, identity_id: str | None = None, finalizers: Iterable[str] = ()) -> None:
        """Add an object, or replace it. Certificate authorities belong to no identity."""
        self._version += 1
        referent = Referent(kind, id_, tuple(finalizers), str(self._version))
        self._entries[kind, id_] = _Entry(referent, identity_id)

    def remove(self, kind: ReferentKind, id_: str) -> None:
        """Take an object away."""
        del self._entries[kind, id_]

    def finalizers(self, kind: ReferentKind, id_: str) -> tuple[str, ...]:
        """Return the finalizers an object has now."""
        return self._entries[kind, id_].referent.finalizers

    def fail(self, method: str, error: PortError | None) -> None:
        """Let every call of that method raise; None: no longer."""
        if error is None:
            self._failures.pop(method, None)
        else:
            self._failures[method] = error

    def of_identity(self, identity_id: str) -> Sequence[Referent]:
        self._fail_if_asked("of_identity")
        return [entry.referent for entry in self._entries.values() if entry.identity_id == identity_id]

    def ssh_certificate_authority(self, authority_id: str) -> Referent:
        self._fail_if_asked("ssh_certificate_authority")
        return self._existing(ReferentKind.SSH_CERTIFICATE_AUTHORITY, authority_id).referent

    def hold(self, referent: Referent, edge: str) -> None:
        self._fail_if_asked("hold")
        self._write("hold", self._existing(referent.kind, referent.id), referent, (*referent.finalizers, edge))

    def release(self, referent: Referent, edge: str) -> None:
        self._fail_if_asked("release")
        entry = self._entries.get((referent.kind, referent.id))
        if entry is not None:
            kept = tuple(finalizer for finalizer in referent.finalizers if finalizer != edge)
            self._write("release", entry, referent, kept)

    def _write(self, verb: str, entry: _Entry, read: Referent, finalizers: tuple[str, ...]) -> None:
        if entry.referent.resource_version != read.resource_version:
            raise StateConflict("kubernetes", "the object has been modified")
        self._version += 1
        changed = replace(entry.referent, finalizers=finalizers, resource_version=str(self._version))
        self._entries[read.kind, read.id] = replace(entry, referent=changed)
        self.journal.append(f"{verb} {read.kind} {read.id}")

    def _existing(self, kind: ReferentKind, id_: str) -> _Entry:
        if (kind, id_) not in self._entries:
            raise Missing("kubernetes", f"{kind} not found")
        return self._entries[kind, id_]

    def _fail_if_asked(self, method: str) -> None:
        if method in self._failures:
            raise self._failures[method]
