"""The world of test_create_model.py: one server from its creation to its deletion, its instance and its port.

Inside is the real controller (create_controller.py). Around it are a Nova and a Neutron that take a request, refuse it,
lose the answer, or take it late; builds that fail; people who delete, mend or break the instance behind our back, or
delete the server, or set its failures back; a store with conditional writes that others write too; one or two
controllers, each of which may die between any two calls; and a monitor.

Left out: rebuilds (rebuild_world.py), floating IPs, networks and groups, a project that cannot be reached.

Assumed: a request takes effect less than ``LATE_SECONDS`` after it was recorded or never, a list of Nova's may leave an
instance out for as long after its creation, and no pass takes as long. So time is only whether a record is older than
that. Nobody mends an instance between the look of a pass that shows it broken and its deletion: Nova has no conditional
deletion.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from server_api.servers import create_retry
from server_api.servers.lookup import had_instance
from server_api.servers.ports import PortError
from tests.unit.servers.create_controller import (
    ANSWERS,
    ANY_INSTANCE,
    BOUND,
    CAP,
    CREATE,
    CREATE_PORT,
    TO_A_CREATE,
    TO_A_DELETE,
    Controller,
    Instance,
    Record,
    Status,
    Stored,
)
from tests.unit.servers.create_state import (
    Faults,
    State,
    Worker,
    in_order,
    miscounted,
    with_worker,
    without_instance,
    without_port,
)
from tests.unit.servers.model_search import CONFLICT, Call, Ended, Step, without


class CreateWorld:
    """What may happen next in a world with these faults.

    ``prunes``: forget a pass as soon as another write has made sure that nothing it will do has any effect, which is so
    as long as the record is a conditional write.
    """

    def __init__(self, faults: Faults, controller: Controller | None = None, prunes: bool = True) -> None:
        self._faults = faults
        self._controller = controller or Controller()
        self._provisioning = self._controller.provisioning(faults.controllers)
        self._prunes = prunes

    @property
    def start(self) -> State:
        """A server that was just asked for."""
        return State(self._faults.budget, Stored(gated=self._faults.gated))

    def is_settled(self, state: State) -> bool:
        """Say whether the server is provisioned, parked as an error or gone, and nothing changes that by itself."""
        stored, found = state.stored, state.instance
        if state.workers or state.late or state.looking:
            return False
        if stored is None:
            return True
        if stored.deleted or (found is not None and (found.leaving or found.status == "BUILD")):
            return False
        status = stored.status
        if found is not None and self._controller.looked(status, found.seen) != status:
            return False
        if state.due:
            # An error that is looked at again and again, to no avail: the instance was taken away.
            return status.available == "Errored" and status.healthy == ("Unknown", "Unknown") and found is None
        if status.available == "Provisioned":
            return state.vanished if found is None else found.launched
        return status.available == "Errored"

    # What may happen next

    def steps(self, state: State) -> Iterator[Step[State]]:
        """Yield everything that may happen."""
        if state.wrong:
            return
        yield from self._nova(state)
        yield from self._late_requests(state)
        yield from self._time(state)
        if state.stored is not None:
            yield from self._people(state, state.stored)
            yield from self._monitor(state, state.stored)
            yield from self._a_pass_begins(state, state.stored)
        for index, worker in enumerate(state.workers):
            others = state._replace(workers=tuple(without(state.workers, index)))
            yield from self._goes_on(others, worker)

    def _fault(self, kind: str, state: State) -> State | None:
        if not state.faults or kind not in self._faults.kinds:
            return None
        return state._replace(faults=state.faults - 1)

    def _nova(self, state: State) -> Iterator[Step[State]]:
        found = state.instance
        if found is None:
            return
        if found.leaving:
            yield Step("the instance is gone", without_instance(state), fair=True)
            return
        if found.status == "BUILD":
            launched = state._replace(instance=Instance("ACTIVE", launched=True))
            yield Step("the instance launches", launched, fair=True)
            failed = state._replace(instance=Instance("ERROR"), creates=0, failed=state.failed + 1)
            yield Step("the build fails", failed, fair=True)
        if (bad := self._fault("vanish", state)) is not None:
            known = state.stored is not None and had_instance(state.stored.status.as_stored)
            after = without_instance(bad)._replace(vanished=True)
            yield Step("somebody deletes the instance", after if known else after._replace(creates=0, attempts=0))
        bad = self._fault("mend and break", state)
        if bad is None:
            return
        if found.status == "ACTIVE":
            yield Step("the instance breaks", bad._replace(instance=Instance("ERROR", launched=True)))
        if found.status == "ERROR" and not any(worker.is_about_to_remove for worker in state.workers):
            yield Step("somebody mends the instance", bad._replace(instance=Instance("ACTIVE", launched=True)))

    def _late_requests(self, state: State) -> Iterator[Step[State]]:
        for index, request in enumerate(state.late):
            others = state._replace(late=tuple(without(state.late, index)))
            yield Step(f"the {request} is lost", others, fair=True)
            yield Step(f"the {request} is taken late", self._taken(others, request), fair=True)

    def _time(self, state: State) -> Iterator[Step[State]]:
        stored = state.stored
        if stored is None or stored.record is None or stored.record.old or state.late:
            return
        # Else it could still be sent, which would be later than assumed.
        if not any(worker.old for worker in state.workers):
            old = stored._replace(record=stored.record._replace(old=True))
            yield Step("time passes", state._replace(stored=old), fair=True)

    def _people(self, state: State, stored: Stored) -> Iterator[Step[State]]:
        if not stored.deleted:
            # A deletion reads no more of the status, and the rest would only multiply the states.
            status = Status(scheduled=had_instance(stored.status.as_stored))
            after = self._written(state, stored._replace(deleted=True, status=status, gated=False))
            yield Step("the user deletes the server", after if stored.finalizer else self._deleted(after))
        if stored.gated and stored.status.gate != "True" and not stored.deleted:
            opened = stored._replace(status=stored.status._replace(gate="True"))
            yield Step("the gate is opened", self._written(state, opened), fair=True)
        if (bad := self._fault("conflict", state)) is not None and (state.workers or state.looking):
            yield Step("somebody writes the server", self._written(bad, stored))
        if stored.status.failures and (bad := self._fault("operator", state)) is not None:
            allowed = stored._replace(status=stored.status._replace(failures=0))
            # The failure that is being dealt with counts among those allowed now.
            failed = create_retry.failed(stored.status.as_stored) or state.instance == Instance("ERROR")
            counts = not stored.status.retrying and (failed or state.instance is not None)
            after = self._written(bad, allowed)._replace(attempts=int(counts), failed=int(failed and counts))
            yield Step("the operator sets the failures back", after)
        if state.port and state.instance is None and (bad := self._fault("port taken away", state)) is not None:
            yield Step("somebody deletes the port", without_port(bad))

    def _monitor(self, state: State, stored: Stored) -> Iterator[Step[State]]:
        if state.looking is not None:
            after = self._written(state, stored._replace(status=state.looking))
            yield Step("the monitor's write is stored", after, fair=True)
        elif state.instance is not None and not stored.deleted:
            seen = self._controller.looked(stored.status, state.instance.seen)
            if seen != stored.status:
                yield Step("the monitor looks", state._replace(looking=seen), fair=True)

    # The controller

    def _a_pass_begins(self, state: State, stored: Stored) -> Iterator[Step[State]]:
        if state.due and all(worker.deposed for worker in state.workers):
            passes = self._controller.deprovisioning if stored.deleted else self._provisioning
            worker = Worker(passes, passes.begin(stored), removes=self._controller.removes(stored))
            yield Step("a pass begins", with_worker(state, worker)._replace(due=False), fair=True)
        if len(state.workers) < self._faults.controllers and (bad := self._fault("stolen lease", state)) is not None:
            workers = [worker._replace(deposed=True) for worker in state.workers]
            if workers and not state.workers[0].deposed:
                # The new leader begins with a pass over everything.
                yield Step("the lease is stolen", bad._replace(workers=tuple(workers), due=True))

    def _goes_on(self, others: State, worker: Worker) -> Iterator[Step[State]]:
        """Yield what a pass does next; ``others`` is the state without it."""
        at = worker.point.at
        if isinstance(at, Ended):
            yield Step("a pass ends", others._replace(due=others.due or at.result), fair=True)
            return
        if at.name in ("find", "get"):
            yield from self._finds(others, worker, at)
        elif at.name == "ports":
            bound = others.instance is not None and others.instance.launched
            holding = worker._replace(holds_port=others.port)
            yield Step(
                "a pass looks for ports", self._answer(others, holding, bound if others.port else None), fair=True
            )
        elif at.name in ("record", "write", "finalizer"):
            yield from self._writes(others, worker, at)
        else:
            for name, after, answer in self._sends(others, at.name, worker):
                yield Step(f"a pass: {name}", self._answer(after, worker, answer), name.endswith("taken"))
        if (worker.removes or not worker.stale) and (bad := self._fault("crash", others)) is not None:
            yield Step(f"a pass dies before {at.name}", bad._replace(due=True))

    def _finds(self, others: State, worker: Worker, at: Call) -> Iterator[Step[State]]:
        found = others.instance
        holding = worker._replace(holds=found is not None)
        answer = found and (ANY_INSTANCE if worker.passes is self._controller.deprovisioning else found.seen)
        if at.name == "get" and at.argument != BOUND and not worker.holds:
            holding, answer = worker, None
        name = f"a pass finds {found.status if found and answer else 'nothing'}"
        yield Step(name, self._answer(others, holding, answer), fair=True)
        record = others.stored.record if others.stored else None
        may_be_stale = at.name == "find" and record is not None and record.kind == CREATE and not record.old
        if found is not None and may_be_stale and (bad := self._fault("stale list", others)) is not None:
            yield Step("a pass reads a stale list", self._answer(bad, worker, None))

    def _writes(self, others: State, worker: Worker, at: Call) -> Iterator[Step[State]]:
        stored = others.stored
        refused = worker.stale
        if at.name == "record":
            assert isinstance(at.argument, tuple)
            kind, conditional = at.argument
            refused = refused and conditional
        if refused or stored is None:
            yield Step(f"a pass's {at.name} is refused", self._answer(others, worker, CONFLICT), fair=True)
            return
        if at.name == "record":
            after = stored._replace(record=None if kind is None else Record(kind))
        elif at.name == "finalizer":
            after = stored._replace(finalizer=bool(at.argument))
        else:
            assert isinstance(at.argument, Status)
            after = stored._replace(status=at.argument)
            others = others._replace(wrong=others.wrong or miscounted(others, stored.status, at.argument))
        written = self._written(others, after)
        if after.deleted and not after.finalizer:
            written = self._deleted(written)
        worker = worker._replace(stale=False)
        if at.name == "record" and after.record is not None:
            written = written._replace(workers=in_order([other._replace(old=True) for other in written.workers]))
            worker = worker._replace(old=True)
        yield Step(f"a pass writes its {at.name}", self._answer(written, worker, None), fair=True)

    def _sends(
        self, state: State, request: str, worker: Worker | None = None
    ) -> Iterator[tuple[str, State, PortError | None]]:
        """Yield what may become of a request: its name, the state after it, and the answer."""
        kind = "port answers" if request.endswith("port") else "answers"
        possible = TO_A_DELETE if request.startswith("delete") else TO_A_CREATE
        for name in possible:
            if name == "taken":
                yield f"{request} {name}", self._taken(state, request, worker), None
                continue
            bad = self._fault(kind, state)
            if bad is None or (name == "refused" and request != CREATE):
                continue
            if name.startswith("taken"):
                bad = self._taken(bad, request, worker)
            elif name.endswith("late"):
                bad = bad._replace(late=tuple(sorted((*bad.late, request))))
            yield f"{request} {name}", bad, ANSWERS[name]

    def _taken(self, state: State, request: str, worker: Worker | None = None) -> State:
        if request == CREATE_PORT:
            return state._replace(port=True, wrong=state.wrong or ("two ports" if state.port else ""))
        if request == "delete-port":
            return self._deletes_port(state, worker)
        if request == "delete":
            return self._deletes(state, worker)
        creates, attempts = state.creates + 1, state.attempts + 1
        wrong = state.wrong
        if state.instance is not None:
            wrong = wrong or "two instances"
        elif creates > 1:
            wrong = wrong or "created again without a failure"
        elif attempts > CAP:
            wrong = wrong or "created more often than allowed"
        return state._replace(instance=Instance(), creates=creates, attempts=attempts, vanished=False, wrong=wrong)

    def _deletes(self, state: State, worker: Worker | None) -> State:
        if state.instance is None or worker is None or not worker.holds:
            return state
        wrong = ""
        if state.instance.launched and state.stored is not None and not state.stored.deleted:
            wrong = "a launched instance deleted"
        return state._replace(instance=state.instance._replace(leaving=True), wrong=state.wrong or wrong)

    def _deletes_port(self, state: State, worker: Worker | None) -> State:
        if worker is None or not worker.holds_port:
            return state
        wrong = ""
        if state.instance is not None and not state.instance.leaving:
            wrong = "the port of an instance deleted"
        return without_port(state)._replace(wrong=state.wrong or wrong)

    def _answer(self, others: State, worker: Worker, answer: Any) -> State:
        return with_worker(others, worker._replace(point=worker.passes.answer(worker.point, answer)))

    def _written(self, state: State, after: Stored) -> State:
        """Return the state after a write of the server: who read it before cannot write it any more."""
        left = [self._overtaken(worker) for worker in state.workers]
        woken = state.stored is not None and state.stored != after and self._controller.wakes(state.stored, after)
        return state._replace(
            stored=after,
            workers=in_order([worker for worker in left if worker is not None]),
            due=state.due or woken or None in left,
            looking=None,
        )

    def _overtaken(self, worker: Worker) -> Worker | None:
        """Return what is left of a pass once somebody else wrote the server; None: nothing that has any effect."""
        if worker.stale or not self._prunes:
            return worker._replace(stale=True)
        if worker.removes or worker.point.waits_for(CREATE, CREATE_PORT):
            worker = worker._replace(point=worker.passes.overtaken(worker.point), stale=True)
            return None if isinstance(worker.point.at, Ended) else worker
        return None

    def _deleted(self, state: State) -> State:
        return state._replace(stored=None, due=False, looking=None)
