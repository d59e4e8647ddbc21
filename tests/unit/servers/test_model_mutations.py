"""Whether the model checks would notice: each guard is taken away, and a search finds what goes wrong without it.

What may go wrong in these worlds may go wrong in those of test_rebuild_model.py and test_create_model.py too, where the
code as it is passes. The rows of the rebuild's table have mutations of their own, in test_rebuild.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pytest

from server_api.controller import triggers
from server_api.servers import (
    attachment,
    create_retry,
    creation,
    deprovisioning,
    lookup,
    provisioning,
    rebuild_pass,
    removal,
)
from server_api.servers.cloud_model import Instance as ShownInstance
from server_api.servers.cloud_requests import may_come_late
from server_api.servers.model import (
    CloudRequest,
    CloudRequestKind,
    ConditionType,
    Reason,
    Server,
    ServerStatus,
)
from server_api.servers.naming import cloud_port
from server_api.servers.outcomes import Stop
from server_api.servers.ports import Compute, Networking, Tenancy
from server_api.servers.progress import Progress
from tests.unit.servers import create_state, rebuild_controller, rebuild_world
from tests.unit.servers.builders import SERVER
from tests.unit.servers.create_controller import Instance, Record, Status, Stored
from tests.unit.servers.create_state import is_beyond_a_closed_gate, is_left_over
from tests.unit.servers.create_world import CreateWorld
from tests.unit.servers.model_search import Found, explore
from tests.unit.servers.rebuild_world import RebuildWorld, is_sent_beside_another, is_taken_twice

CREATE, CREATE_PORT, REBUILD = CloudRequestKind.CREATE, CloudRequestKind.CREATE_PORT, CloudRequestKind.REBUILD
Patch = Callable[[pytest.MonkeyPatch], None]


def instead(target: Any, name: str, value: Any) -> Patch:
    return lambda patch: patch.setattr(target, name, value)


def never_late(target: Any, of_kind: CloudRequestKind) -> Patch:
    def late(request: CloudRequest | None, kind: CloudRequestKind, now: datetime) -> bool:
        return kind is not of_kind and may_come_late(request, kind, now)

    return instead(target, "may_come_late", late)


def nothing(*_: object) -> None:
    pass


def record_without_condition(progress: Progress, request: CloudRequest | None) -> None:
    metadata = replace(progress.stored.metadata, cloud_request=request, resource_version="")
    progress.stored = progress._servers.update(replace(progress.stored, metadata=metadata))
    progress.server = replace(progress.stored, status=progress.server.status)


NO_RECORD = instead(Progress, "record", nothing)
NO_CONDITION = instead(Progress, "record", record_without_condition)


# The image rebuild

ASKED = rebuild_world.State(
    nova=rebuild_controller.Nova(image=rebuild_controller.OTHER),
    status=rebuild_controller.Status((rebuild_controller.DESIRED, "Initiated")),
    due=True,
)
"""The user has just asked for another image."""

QUIET = rebuild_world.Faults(crashes=False, rollback=False, foreign_rebuilds=False, errors=False, unreadable=False)


def sent_without_asking_nova(progress: Progress, *_: object) -> rebuild_pass._Sent | None:
    request = progress.server.metadata.cloud_request
    if request is None:
        return None
    late = may_come_late(request, REBUILD, progress.now)
    return rebuild_pass._Sent.AWAITED if late else rebuild_pass._Sent.LOST


def forget_at_once(progress: Progress, _: object) -> None:
    progress.record(None)


@pytest.mark.parametrize(
    ("patch", "faults"),
    [
        pytest.param(NO_RECORD, replace(QUIET, crashes=True, rollback=True), id="no record"),
        pytest.param(NO_CONDITION, replace(QUIET, controllers=2), id="a record without a condition"),
        pytest.param(never_late(rebuild_pass, REBUILD), QUIET, id="no waiting for a late one"),
        pytest.param(
            instead(rebuild_pass, "_sent", sent_without_asking_nova),
            replace(QUIET, crashes=True, rollback=True),
            id="no question for the last rebuild",
        ),
        pytest.param(instead(rebuild_pass, "_forget", forget_at_once), QUIET, id="a record forgotten at once"),
    ],
)
def test_mutation_without_this_guard_an_image_may_be_rebuilt_twice(
    patch: Patch, faults: rebuild_world.Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch(monkeypatch)
    world = RebuildWorld(faults, prunes=patch is not NO_CONDITION)

    with pytest.raises(Found):
        explore(ASKED, world.steps, lambda state: is_taken_twice(state) or is_sent_beside_another(state))


@pytest.mark.parametrize(
    "excuse", ["the cloud had taken a rebuild", "waiting to see whether the cloud took the rebuild"]
)
def test_mutation_settling_on_an_old_look_leaves_another_image(excuse: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = rebuild_pass.converge_image

    def settle(progress: Progress, compute: Compute, instance: ShownInstance) -> None:
        try:
            original(progress, compute, instance)
        except Stop as stop:
            if stop.reason != excuse or progress.server.status.rebuild is not None:
                raise

    monkeypatch.setattr(provisioning, "converge_image", settle)
    search = explore(ASKED, RebuildWorld(QUIET).steps)

    with pytest.raises(AssertionError):
        search.assert_each_leads_to(rebuild_world.is_settled)


# Create, retry and deletion

FAILED = Stored(
    Status(healthy=("False", "Errored"), phase="Building", scheduled=True, available="Provisioned"),
    Record(CREATE.value),
    finalizer=True,
)
"""A server whose first build has just failed."""


def failed_ever(status: ServerStatus) -> bool:
    healthy = status.condition(ConditionType.HEALTHY)
    return healthy is not None and healthy.reason == Reason.ERRORED


def a_create_fails_also_after_launch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(create_retry, "failed", failed_ever)
    patch.setattr(triggers, "failed", failed_ever)


def launch_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    def never_launched(tenancy: Tenancy, server: Server) -> ShownInstance | None:
        found = lookup.find_instance(tenancy, server)
        return found and replace(found, launched_at=None)

    patch.setattr(create_retry, "find_instance", never_launched)


def no_record_of_a_removal(patch: pytest.MonkeyPatch) -> None:
    original = Progress.record

    def record(progress: Progress, request: CloudRequest | None) -> None:
        if request is None or request.kind is not CloudRequestKind.REMOVE:
            original(progress, request)

    patch.setattr(Progress, "record", record)


def one_attempt_more(patch: pytest.MonkeyPatch) -> None:
    original = create_retry.due
    patch.setattr(create_retry, "due", lambda progress, attempts: original(progress, attempts + 1))


def port_first(patch: pytest.MonkeyPatch) -> None:
    original = deprovisioning._remove_instance

    def remove(progress: Progress, tenancy: Tenancy) -> None:
        deprovisioning._remove_port(progress, tenancy.networking)
        original(progress, tenancy)

    patch.setattr(deprovisioning, "_remove_instance", remove)


def ports_looked_up_too_late(patch: pytest.MonkeyPatch) -> None:
    original = removal.remove_ports

    def remove(networking: Networking, _: object) -> None:
        original(networking, networking.ports_named(cloud_port(SERVER)))

    patch.setattr(removal, "remove_ports", remove)


@dataclass(frozen=True)
class Mutation:
    """``wrong`` is what is found without the guard, when ``kinds`` of things go wrong, so often in all."""

    patch: Patch
    wrong: str
    kinds: tuple[str, ...] = ()
    budget: int = 1
    controllers: int = 1
    gated: bool = False
    failed: bool = False
    """Begin with a server whose first build has just failed, and not with a new one."""


MUTATIONS = {
    "no record": Mutation(NO_RECORD, "two instances", ("answers",)),
    "a record without a condition": Mutation(NO_CONDITION, "two instances", ("stolen lease",), controllers=2),
    "no waiting for a late create": Mutation(never_late(creation, CREATE), "two instances", ("answers",)),
    "no waiting for a late port": Mutation(never_late(attachment, CREATE_PORT), "two ports", ("port answers",)),
    "a retry that trusts an old list": Mutation(
        instead(create_retry, "_wait_for_a_fresh_list", nothing),
        "the port of an instance deleted",
        ("stale list",),
        failed=True,
    ),
    "a retry that forgets a late port": Mutation(
        instead(create_retry, "_wait_for_a_late_port", nothing), "two ports", ("port taken away", "port answers"), 2
    ),
    "an instance that vanished is created again": Mutation(
        instead(creation, "had_instance", lambda _: False), "created again without a failure", ("vanish",)
    ),
    "a retry without a look at the launch": Mutation(
        launch_not_looked_at, "a launched instance deleted", ("mend and break",), 2, failed=True
    ),
    "a create fails also after a launch": Mutation(
        a_create_fails_also_after_launch, "a launched server's create failed", ("mend and break",), failed=True
    ),
    "a retry that does not record its removal": Mutation(
        no_record_of_a_removal, "a launched instance deleted", ("stolen lease",), controllers=2, failed=True
    ),
    "a retry that takes ports that it finds after its record": Mutation(
        ports_looked_up_too_late, "the port of an instance deleted", ("stolen lease",), controllers=2, failed=True
    ),
    "no cap": Mutation(one_attempt_more, "created more often than allowed"),
    "a deletion that does not wait for a late create": Mutation(
        never_late(deprovisioning, CREATE), "left over", ("answers",)
    ),
    "a deletion that does not wait for a late port": Mutation(
        never_late(deprovisioning, CREATE_PORT), "left over", ("port answers",)
    ),
    "a deletion that takes the port first": Mutation(port_first, "the port of an instance deleted"),
    "a gate that does not hold": Mutation(
        instead(provisioning, "_check_gates", nothing), "beyond a closed gate", gated=True
    ),
}


def found_wrong(state: create_state.State) -> str:
    if is_left_over(state):
        return "left over"
    return "beyond a closed gate" if is_beyond_a_closed_gate(state) else state.wrong


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutation_without_this_guard_a_server_goes_wrong(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation = MUTATIONS[name]
    mutation.patch(monkeypatch)
    faults = create_state.Faults(mutation.budget, mutation.controllers, mutation.gated, kinds=frozenset(mutation.kinds))
    world = CreateWorld(faults, prunes=mutation.patch is not NO_CONDITION)
    start = world.start
    if mutation.failed:
        start = start._replace(stored=FAILED, instance=Instance("ERROR"), port=True, attempts=1, failed=1)

    with pytest.raises(Found):
        explore(start, world.steps, lambda state: found_wrong(state) == mutation.wrong)
