"""How gunicorn serves the API: ``gunicorn -c deploy/gunicorn.conf.py wsgi:app``.

Numbers come from the settings (``server-api settings`` lists them). Clients, caches and threads are made in each
worker, after the fork, because nothing is preloaded.
"""

from __future__ import annotations

import os
import shutil
import signal
import ssl
import tempfile
from typing import Any, cast

from server_api import logs
from server_api.http import draining, token_buckets
from server_api.settings import Settings

_settings = Settings.from_environment()
logs.configure(_settings.log_level)

bind = _settings.bind
worker_class = "server_api.http.gunicorn_worker.EnvelopeWorker"
# Constants, and not the number of processors: in a container that would be the node's.
workers = _settings.workers
threads = _settings.threads
preload_app = False

# Of a worker's heartbeat, and no limit of a request: that is SERVER_API_REQUEST_DEADLINE.
timeout = 30
# After the listener has closed. Requests in hand may need their whole deadline.
graceful_timeout = int(_settings.request_deadline) + 5
keepalive = 5

# A bearer token may be large, 12 KiB say; a larger header than this is answered 431, with a line in the log.
limit_request_field_size = 16_384
limit_request_fields = 100
# Long enough for about a hundred IDs in a list's query; beyond it 414.
limit_request_line = 8_190
# Only a proxy on the same host may speak for another client.
forwarded_allow_ips = "127.0.0.1,::1"

# Before the workers are forked, so that they count together.
token_buckets.share()

# HTTPS of our own, for installations without a proxy in front. Services may then show a certificate; a caller without
# one needs a token. One that the authorities below have not signed ends the handshake. gunicorn reads the files for
# each connection, so that renewed certificates need no restart, and speaks nothing older than TLS 1.2.
certfile = str(_settings.tls_certificate) if _settings.tls_certificate else None
keyfile = str(_settings.tls_key) if _settings.tls_key else None
ca_certs = str(_settings.tls_client_ca) if _settings.tls_client_ca else None
cert_reqs = ssl.CERT_OPTIONAL if _settings.tls_client_ca else ssl.CERT_NONE
if _settings.tls_certificate is None and (_settings.tls_key or _settings.tls_client_ca):
    raise ValueError("SERVER_API_TLS_KEY and SERVER_API_TLS_CLIENT_CA need SERVER_API_TLS_CERTIFICATE")

# It can stop and scale this program, and nothing here uses it.
control_socket_disable = True

accesslog = None  # The application logs requests itself, with subject and trace ID.
logconfig_dict = logs.dict_config(_settings.log_level)

# Workers write their metrics there, and each answers /metrics for all. It has to be known before they import.
_own_metrics_directory = None
if not os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
    _own_metrics_directory = tempfile.mkdtemp(prefix="server-api-metrics-")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = _own_metrics_directory


def when_ready(_arbiter: Any) -> None:
    """Put the draining in front of gunicorn's own way of stopping, whose handler is in place by now."""
    stop = cast(draining.Handler, signal.getsignal(signal.SIGTERM))
    draining.delay_sigterm(stop, _settings.drain_seconds)


def child_exit(_arbiter: Any, worker: Any) -> None:
    """Forget the gauges of a worker that is gone."""
    from prometheus_client import multiprocess

    multiprocess.mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]


def on_exit(_arbiter: Any) -> None:
    """Remove what was made for this run."""
    if _own_metrics_directory is not None:
        shutil.rmtree(_own_metrics_directory, ignore_errors=True)
