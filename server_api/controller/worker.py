"""What one of the controller's workers does all day."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import structlog

from server_api.controller.election import LostLeadership
from server_api.controller.reconciler import Reconciler, Requeue
from server_api.controller.work_queue import WorkQueue

ABANDONED_SECONDS = 1.0
"""Pause after leadership ran out. The elector holds the queue as soon as it notices; until then, a key that
is ready at once would be taken and abandoned in a hot loop."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Worker:
    """Takes keys from the queue and reconciles them, one at a time."""

    queue: WorkQueue
    reconciler: Reconciler

    def run(self, stop: threading.Event) -> None:
        """Work until the queue is closed, and begin nothing once ``stop`` is set."""
        while (key := self.queue.get()) is not None and not stop.is_set():
            self.work(key)

    def work(self, key: str) -> None:
        """Reconcile one key that was taken from the queue, and give it back with its next time."""
        reached = None
        try:
            requeue = self.reconciler.reconcile(key)
            reached = requeue.reached
            self._schedule(key, requeue)
        except LostLeadership:
            # Stays wanted: it waits in the queue until this replica leads again.
            _log.info("pass abandoned, not leading any more", server_id=key)
            self.queue.add_after(key, ABANDONED_SECONDS)
        except Exception:  # noqa: BLE001 - our own defect
            # A defect of ours, for this server: the others must go on.
            _log.exception("pass crashed", server_id=key)
            self.queue.add_rate_limited(key)
        finally:
            self.queue.done(key, reached)

    def _schedule(self, key: str, requeue: Requeue) -> None:
        if requeue.backing_off:
            self.queue.add_rate_limited(key)
            return
        self.queue.forget(key)
        if requeue.after is not None:
            self.queue.add_after(key, requeue.after)
