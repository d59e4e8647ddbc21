"""How Hypothesis makes up what happens: any step, those that matter most more often than others."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies
from hypothesis.strategies import SearchStrategy

from tests.api.lifecycle_expectations import GATES, IMAGES, SLOTS, VERBS
from tests.api.lifecycle_steps import (
    Act,
    ChangeImage,
    ChangeTheRest,
    Create,
    Delete,
    Finish,
    GoOn,
    Interruption,
    Meddle,
    Meddling,
    PassInBadTimes,
    PassTime,
    See,
    Sight,
    Step,
    Trouble,
    Work,
)
from tests.doubles.fault_plan import ANY_EFFECT, Fault
from tests.doubles.programmable_nova import Ending

ON_CREATE = (
    "compute.create",
    "compute.create",
    "compute.create",
    "networking.create_port",
    "networking.create_port",
    "networking.create_floating_ip",
    "compute.find",
    "networking.ports_named",
    "references.hold",
    "store.update",
    "store.patch_status",
)
ON_REBUILD = (
    "compute.rebuild",
    "compute.rebuild",
    "compute.rebuild",
    "compute.last_rebuild",
    "compute.find",
    "networking.update_port",
    "store.update",
    "store.patch_status",
)
ON_DELETE = (
    "compute.delete",
    "networking.delete_port",
    "networking.delete_floating_ip",
    "networking.floating_ips",
    "compute.find",
    "references.release",
    "store.update",
    "store.patch_status",
)
ON_ANY = ("cloud.tenancy", "compute.instances", "compute.get", "compute.delete", "store.get", ANY_EFFECT)
OF_THE_API = (
    "catalogue.images",
    "cloud.tenancy",
    "compute.create_image",
    "compute.find",
    "compute.start",
    "compute.stop",
    "images.publish",
)


def _among(*weighted: tuple[int, SearchStrategy[Step]]) -> SearchStrategy[Step]:
    """Return one of the strategies, each as often as its weight says."""
    choices = [strategy for weight, strategy in weighted for _ in range(weight)]
    return strategies.sampled_from(choices).flatmap(lambda strategy: strategy)


_LOST = (Fault.LOST_ANSWER, Fault.LATE, Fault.LATE, Fault.CRASH_AFTER, Fault.CRASH_BEFORE)


def _troubles(calls: Sequence[str]) -> SearchStrategy[Trouble]:
    # What is lost is what matters most.
    faults = strategies.sampled_from((*_LOST, *_LOST, *Fault, *Interruption))
    return strategies.builds(
        Trouble, strategies.sampled_from(calls), faults, strategies.sampled_from((5.0, 50.0, 100.0))
    )


def _some(calls: Sequence[str]) -> SearchStrategy[Trouble | None]:
    return strategies.one_of(strategies.none(), _troubles(calls))


_delays = strategies.sampled_from((5.0, 50.0, 100.0))
_which = strategies.integers(0, 5)
_often = strategies.sampled_from((True, True, True, False))
_either = strategies.booleans()
_slots = strategies.sampled_from(SLOTS)
_gates = strategies.sampled_from((None, None, None, GATES[:1], GATES))
_verbs = strategies.sampled_from((*VERBS, "satisfy", "read", "snapshot"))
_requests = strategies.sampled_from((Fault.DOWN, Fault.LOST_ANSWER, Fault.LATE, Fault.CONFLICT, Fault.DENIED))
_tags = strategies.sampled_from(("red", "blue"))
_user_data = strategies.sampled_from((None, "#cloud-config\n# one\n", "#!/bin/sh\necho two\n"))
_seconds = strategies.sampled_from((1, 10, 10, 30, 60, 130))
_endings = strategies.sampled_from((Ending.WELL, Ending.WELL, Ending.FAILED, Ending.UNDONE))

steps: SearchStrategy[Step] = _among(
    (2, strategies.builds(GoOn, strategies.sampled_from((1, 10)))),
    (1, strategies.builds(Create, _which, _gates, _either, strategies.none(), _often)),
    (3, strategies.builds(Create, _which, strategies.none(), _either, _troubles(ON_CREATE))),
    (1, strategies.builds(ChangeImage, _which, _which, strategies.none(), _either, _often)),
    (4, strategies.builds(ChangeImage, _which, _which, _troubles(ON_REBUILD), _often)),
    (1, strategies.builds(ChangeTheRest, _which, _tags, _user_data, _either, _often)),
    (2, strategies.builds(Delete, _which, _some(ON_DELETE), _often)),
    (1, strategies.builds(Act, _slots, _verbs)),
    (1, strategies.builds(Act, _slots, _verbs, strategies.sampled_from(OF_THE_API), _requests)),
    (3, strategies.builds(PassTime, _seconds, _often)),
    (4, strategies.builds(Finish, _which, _endings, _often)),
    (1, strategies.builds(Meddle, _which, strategies.sampled_from(Meddling), strategies.sampled_from(IMAGES), _either)),
    (1, strategies.builds(Work, strategies.integers(1, 3))),
    (1, strategies.builds(See, strategies.sampled_from(Sight))),
    (2, strategies.builds(PassInBadTimes, _which, _troubles(ON_ANY + ON_CREATE + ON_REBUILD))),
)
