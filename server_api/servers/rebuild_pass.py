"""What a pass does about an instance's image: it carries out what the rebuild's table says (contract 7.6)."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from server_api.servers.cloud_model import Instance
from server_api.servers.cloud_requests import may_come_late
from server_api.servers.model import CloudRequest, CloudRequestKind, RebuildMarker
from server_api.servers.observed_state import observe_health_and_phase, rebuild_accepted
from server_api.servers.outcomes import Outcome, Stop, is_unreachable
from server_api.servers.ports import Compute, PortError, Refused, StateConflict, Unavailable
from server_api.servers.progress import Progress
from server_api.servers.rebuild import Action, Decision, RebuildState, Situation, decide

MARKED_SECONDS = 1.0
"""When to look again after a rebuild's marker changed: the next step waits only for it to be written."""

_AWAITED = "waiting to see whether the cloud took the rebuild"


class _Sent(Enum):
    """What became of the rebuild that was submitted last."""

    TAKEN = "taken"
    """The cloud has it, whether or not anybody read the answer."""

    AWAITED = "awaited"
    """The cloud may still take it."""

    LOST = "lost"
    """It never reached the cloud, and will not any more."""


def converge_image(progress: Progress, compute: Compute, instance: Instance) -> None:
    """Bring the instance's image to the desired one, a step at a time. Raises Stop while there is more to wait for."""
    status = progress.server.status
    sent = _sent(progress, compute, instance)
    _forget(progress, sent)
    decision = decide(Situation(status.rebuild, progress.server.spec.image_id, instance))
    progress.learn(rebuild=decision.marker)
    if decision.action is Action.SUBMIT:
        _submit(progress, compute, instance, sent)
    elif decision.action is Action.STAMP:
        progress.become(rebuild_accepted(progress.server.status, progress.now))
    elif decision.action is Action.OBSERVE:
        progress.become(observe_health_and_phase(progress.server.status, instance, progress.now))
    if decision.outcome is not Outcome.SUCCESS:
        again_in = None if decision.marker == status.rebuild else MARKED_SECONDS
        raise Stop(decision.outcome, _explain(decision, instance), again_in)
    if sent is _Sent.AWAITED:
        # Whatever the instance shows: what was submitted could still wipe its disk.
        raise Stop(Outcome.YIELD, _AWAITED)
    if sent is _Sent.TAKEN and decision.marker is None:
        # It may have been taken after the look at the instance: no settling on what that showed.
        raise Stop(Outcome.YIELD, "the cloud had taken a rebuild", MARKED_SECONDS)


def _sent(progress: Progress, compute: Compute, instance: Instance) -> _Sent | None:
    """Say what became of the rebuild on record; None without one."""
    request = progress.server.metadata.cloud_request
    if request is None or request.kind is not CloudRequestKind.REBUILD:
        return None
    if compute.last_rebuild(instance.id) != request.before:
        return _Sent.TAKEN
    return _Sent.AWAITED if may_come_late(request, CloudRequestKind.REBUILD, progress.now) else _Sent.LOST


def _forget(progress: Progress, sent: _Sent | None) -> None:
    """Remove the record of a rebuild that nothing more is to be learned from.

    Else it would speak for a later one to the same image, which it knows nothing of.
    """
    request, marker = progress.server.metadata.cloud_request, progress.server.status.rebuild
    if request is None or sent not in (_Sent.TAKEN, _Sent.LOST):
        return
    if marker != RebuildMarker(request.image_id, RebuildState.INITIATED):
        progress.record(None)


def _submit(progress: Progress, compute: Compute, instance: Instance, sent: _Sent | None) -> None:
    image_id = progress.server.spec.image_id or ""
    if sent is _Sent.AWAITED:
        raise Stop(Outcome.YIELD, _AWAITED)
    request = progress.server.metadata.cloud_request
    if sent is _Sent.TAKEN and request is not None and request.image_id == image_id:
        _accepted(progress, image_id)
        # What became of it is for the next look to say.
        raise Stop(Outcome.YIELD, "the cloud had taken the rebuild", MARKED_SECONDS)
    before = compute.last_rebuild(instance.id)
    progress.record(CloudRequest(CloudRequestKind.REBUILD, progress.moment(), image_id, before))
    try:
        compute.rebuild(instance.id, image_id)
    except Unavailable as error:
        # It may be taken all the same, and late: to submit it again before that could wipe the disk a second time.
        raise Stop(Outcome.YIELD, f"{_AWAITED}: {error}", unreachable=is_unreachable(error)) from None
    except PortError as error:
        progress.record(None)
        raise _refusal(progress, image_id, error) from None
    _accepted(progress, image_id)


def _refusal(progress: Progress, image_id: str, error: PortError) -> Stop:
    if isinstance(error, StateConflict):
        return Stop(Outcome.YIELD, f"the cloud does not take the rebuild yet: {error.detail}")
    if isinstance(error, Refused):
        # It will not take it the next time either. Only another image, or a new server, ends this.
        progress.learn(rebuild=RebuildMarker(image_id, RebuildState.FAILED))
        return Stop(Outcome.TERMINAL, f"server_rebuild_failed: the cloud refused the rebuild: {error.detail}")
    return Stop(Outcome.ERROR, f"the rebuild was not submitted: {error}", unreachable=is_unreachable(error))


def _accepted(progress: Progress, image_id: str) -> None:
    marked = replace(progress.server.status, rebuild=RebuildMarker(image_id, RebuildState.REBUILDING))
    progress.become(rebuild_accepted(marked, progress.now))


def _explain(decision: Decision, instance: Instance) -> str:
    if decision.outcome is Outcome.TERMINAL:
        fault = f": {instance.fault}" if instance.fault else ""
        return f"server_rebuild_failed: choose another image or replace the server{fault}"
    state = decision.marker.state if decision.marker else "none"
    return f"waiting for the image to be realised (rebuild: {state}, instance: {instance.status})"
