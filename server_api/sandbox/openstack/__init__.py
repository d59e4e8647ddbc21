"""A real OpenStack control plane on one machine, with a fake hypervisor.

Keystone, Glance, Placement, Neutron and Nova: from PyPI into a virtual environment of its own, on SQLite, without
broker, memcached or containers, as five processes on 127.0.0.1. docs/sandbox-rules.md tells how to make it slow and
failing on demand.
"""

from server_api.sandbox.openstack.launcher import OpenStack
from server_api.sandbox.openstack.rules import write_rules

__all__ = ["OpenStack", "write_rules"]
