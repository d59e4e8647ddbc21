"""A TCP proxy whose connections can fall silent, as a network does that loses packets without a word."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from server_api.sandbox.processes import LOOPBACK

_CHUNK = 65536


class SilentProxy:
    """Forwards connections to a port of this machine; ``port`` is its own."""

    def __init__(self, upstream_port: int) -> None:
        self._upstream_port = upstream_port
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port = int(self._listener.getsockname()[1])
        self._lock = threading.Lock()
        self._open: set[_Connection] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def silence(self) -> int:
        """Forward nothing any more on the connections there are, which stay open, and return how many there are.

        New ones are forwarded.
        """
        with self._lock:
            silenced = [connection for connection in self._open if not connection.silent.is_set()]
            for connection in silenced:
                connection.silent.set()
        return len(silenced)

    def close(self) -> None:
        """Accept nothing more, and close every connection."""
        self._listener.close()
        with self._lock:
            for connection in self._open:
                connection.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                upstream = socket.create_connection((LOOPBACK, self._upstream_port))
                connection = _Connection(client, upstream)
                with self._lock:
                    self._open.add(connection)
                for source, target in ((client, upstream), (upstream, client)):
                    threading.Thread(target=self._pump, args=(connection, source, target), daemon=True).start()

    def _pump(self, connection: "_Connection", source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while received := source.recv(_CHUNK):
                if not connection.silent.is_set():
                    target.sendall(received)
        # what has fallen silent does not tell that its other end has gone, either
        if not connection.silent.is_set():
            connection.close()
            with self._lock:
                self._open.discard(connection)


class _Connection:
    def __init__(self, client: socket.socket, upstream: socket.socket) -> None:
        self.silent = threading.Event()
        self._sockets = client, upstream

    def close(self) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@contextmanager
def silent_proxy(upstream_port: int) -> Iterator[SilentProxy]:
    """Have a proxy inside of the block."""
    proxy = SilentProxy(upstream_port)
    try:
        yield proxy
    finally:
        proxy.close()
