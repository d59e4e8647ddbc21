"""Make oslo.messaging's in-process `fake:` transport quick, and quiet while idle.

As shipped each of its listeners sleeps 50 ms between two looks at its queues: a request pays that at every
RPC, and an idle process looks 20 times a second per listener. Here a delivery wakes them.
"""

import threading
import time

from oslo_messaging._drivers import impl_fake

# only a bound, in case anything is put into a queue by another way
LONGEST_SLEEP = 1.0
_SHIPPED_PAUSE = 0.050


def install():
    """Patch the transport; before the first listener is started."""
    clock = _Clock()
    deliver_message = impl_fake.FakeExchange.deliver_message

    def deliver(self, *args, **kwargs):
        deliver_message(self, *args, **kwargs)
        clock.wake()

    impl_fake.FakeExchange.deliver_message = deliver
    impl_fake.time = clock


class _Clock:
    """Stands in for the module `time` within impl_fake: its sleep ends at the next delivery."""

    time = staticmethod(time.time)

    def __init__(self):
        self._delivered = threading.Condition()
        self._deliveries = 0
        self._seen = threading.local()

    def wake(self):
        with self._delivered:
            self._deliveries += 1
            self._delivered.notify_all()

    def sleep(self, seconds):
        with self._delivered:
            # what was delivered between the listener's look and this call must not wait for the next delivery
            if getattr(self._seen, "deliveries", None) == self._deliveries:
                self._delivered.wait(seconds if seconds < _SHIPPED_PAUSE else LONGEST_SLEEP)
            self._seen.deliveries = self._deliveries
