"""All of Nova in one process: API, conductor, scheduler, and one compute service per host.

They are joined by oslo.messaging's `fake:` transport: its exchanges are shared by all transports of a
process.
"""

import sys
import time
import urllib.error
import urllib.request

from nova import monkey_patch

# as nova's own commands do, before anything else of Nova is imported
monkey_patch.patch(backend="threading")

import os_vif  # noqa: E402
from nova import context, service  # noqa: E402
from nova.api.openstack import wsgi_app  # noqa: E402
from nova.compute import manager  # noqa: E402
from nova.compute import rpcapi as compute_rpcapi  # noqa: E402
from nova.objects import host_mapping  # noqa: E402

from sandbox_runtime import driver, transport  # noqa: E402

# services stop when nothing refers to them any more
_running = []


def load(hosts, wait_for):
    """Start all services of Nova, computes on `hosts` once the URLs `wait_for` answer, and return the WSGI app."""
    transport.install()
    # Nova loads drivers from within nova.virt only
    sys.modules["nova.virt.sandbox_driver"] = driver
    # all compute services here share one state_path, and so one compute_id file: cut the check out, as the
    # fixture ComputeNodeIdFixture of Nova's functional tests does
    manager.ComputeManager._ensure_existing_node_identity = lambda self, service_ref: None

    application = wsgi_app.init_application("osapi_compute", "nova-api-os-compute")
    os_vif.initialize()
    _start(service.CONF.host, "nova-conductor", "conductor")
    _start(service.CONF.host, "nova-scheduler", "scheduler")
    # a compute service that finds no Placement at its start tries again only a minute later
    for url in wait_for:
        _wait_for(url)
    for host in hosts:
        _start(host, "nova-compute", compute_rpcapi.RPC_TOPIC, topic_alt=compute_rpcapi.RPC_TOPIC_ALT)
    host_mapping.discover_hosts(context.get_admin_context())
    return application


def _start(host, binary, topic, **kwargs):
    instance = service.Service.create(host=host, binary=binary, topic=topic, **kwargs)
    instance.start()
    _running.append(instance)


def _wait_for(url, timeout=60):
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{url} does not answer")
