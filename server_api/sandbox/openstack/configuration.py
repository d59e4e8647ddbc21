"""The configuration files and the environment of the services."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from server_api.sandbox.openstack import services
from server_api.sandbox.openstack.services import (
    GLANCE,
    KEYSTONE,
    NEUTRON,
    NOVA,
    PASSWORD,
    PLACEMENT,
    REGION,
    Ports,
)

Options = dict[str, str | int | bool]
Sections = dict[str, Options]

RUNTIME = Path(__file__).parent / "runtime"
RULES_FILE = "SANDBOX_OPENSTACK_RULES"
# the host that Nova's API, conductor and scheduler say they run on
CONTROL_HOST = "sandbox"
UNLIMITED = -1
HOST_RESOURCE_CLASS = "CUSTOM_SANDBOX_HOST"
"""What every compute host has, besides processors and memory, for flavors that are pinned to a host."""
HOST_TRAIT = "CUSTOM_SANDBOX"
"""A trait of every compute host, which the region wants of those that servers are pinned to."""
FLAVOR_TRAIT = "CUSTOM_SANDBOX_PINNING"
"""Another, which the flavor of pinned servers wants."""

PROVIDERS = f"""\
meta:
  schema_version: '1.0'
providers:
  - identification:
      uuid: $COMPUTE_NODE
    inventories:
      additional:
        - {HOST_RESOURCE_CLASS}:
            total: 100
    traits:
      additional:
        - {HOST_TRAIT}
        - {FLAVOR_TRAIT}
"""
"""Nova's configuration of what its hosts report to Placement beyond what the hypervisor says."""


def write(state: Path, virtualenv: Path, ports: Ports) -> None:
    """Write every configuration file below `state`/etc, and make the folders that the services want."""
    contents = {
        KEYSTONE: keystone(state, ports),
        GLANCE: glance(state, ports, virtualenv),
        PLACEMENT: placement(state, ports),
        NEUTRON: neutron(state, ports, virtualenv),
        NOVA: nova(state, ports),
    }
    for service, sections in contents.items():
        file = service.config_file(state)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(render(sections))
    # Nova looks for it beside its configuration, and has no option that says otherwise when run as a WSGI app
    shutil.copy(virtualenv / "etc/nova/api-paste.ini", NOVA.config_file(state).parent)
    providers = _providers(state)
    providers.mkdir(exist_ok=True)
    (providers / "hosts.yaml").write_text(PROVIDERS)
    for folder in ("db", "lock", "images", "staging", "tasks", "neutron", "nova/instances"):
        (state / folder).mkdir(parents=True, exist_ok=True)


def render(sections: Sections) -> str:
    """Return the text of a configuration file as oslo.config reads it."""
    lines = []
    for name, options in sections.items():
        lines.append(f"[{name}]")
        lines += [
            f"{key} = {str(value).lower() if isinstance(value, bool) else value}" for key, value in options.items()
        ]
        lines.append("")
    return "\n".join(lines)


def keystone(state: Path, ports: Ports) -> Sections:
    """Return keystone.conf."""
    return {
        "DEFAULT": _default() | {"public_endpoint": KEYSTONE.url(ports["keystone"])},
        "database": _database(state, "keystone"),
        "token": {"provider": "fernet", "expiration": 86400},
        "fernet_tokens": {"key_repository": f"{state}/fernet"},
        "credential": {"key_repository": f"{state}/credential"},
        # at production strength a login costs a fifth of a second of CPU
        "identity": {"password_hash_algorithm": "bcrypt", "password_hash_rounds": 4},
        "cache": {"enabled": True, "backend": "dogpile.cache.memory"},
        "oslo_messaging_notifications": {"driver": "noop"},
    }


def glance(state: Path, ports: Ports, virtualenv: Path) -> Sections:
    """Return glance-api.conf."""
    return {
        "DEFAULT": _default()
        | {
            "transport_url": "fake:///",
            "enabled_backends": "file:file",
            "worker_self_reference_url": GLANCE.url(ports["glance"]),
            "enabled_import_methods": "[]",
            "node_staging_uri": f"file://{state}/staging",
        },
        "database": _database(state, "glance"),
        "glance_store": {"default_backend": "file"},
        "file": {"filesystem_store_datadir": f"{state}/images"},
        "os_glance_staging_store": {"filesystem_store_datadir": f"{state}/staging"},
        "os_glance_tasks_store": {"filesystem_store_datadir": f"{state}/tasks"},
        "paste_deploy": {
            "flavor": "keystone",
            "config_file": f"{virtualenv}/etc/glance/glance-api-paste.ini",
        },
        "oslo_messaging_notifications": {"driver": "noop"},
        "oslo_concurrency": _locks(state),
        "keystone_authtoken": _token_validation(ports, "glance"),
    }


def placement(state: Path, ports: Ports) -> Sections:
    """Return placement.conf."""
    return {
        "DEFAULT": _default(),
        "placement_database": _database(state, "placement"),
        "api": {"auth_strategy": "keystone"},
        "keystone_authtoken": _token_validation(ports, "placement"),
    }


def neutron(state: Path, ports: Ports, virtualenv: Path) -> Sections:
    """Return neutron.conf, which holds what is usually in ml2_conf.ini as well."""
    return {
        "DEFAULT": _default()
        | {
            "transport_url": "fake:///",
            "core_plugin": "ml2",
            # routers and floating IPs
            "service_plugins": "router",
            "auth_strategy": "keystone",
            "api_paste_config": f"{virtualenv}/etc/neutron/api-paste.ini",
            "state_path": f"{state}/neutron",
            "notify_nova_on_port_status_changes": True,
            "notify_nova_on_port_data_changes": True,
            "send_events_interval": 1,
            "dhcp_agent_notification": False,
            "global_physnet_mtu": 1500,
            "rpc_response_timeout": 5,
        },
        "database": _database(state, "neutron"),
        "quotas": {
            "default_quota": UNLIMITED,
            "quota_network": UNLIMITED,
            "quota_subnet": UNLIMITED,
            "quota_port": UNLIMITED,
            "quota_router": UNLIMITED,
            "quota_floatingip": UNLIMITED,
            "quota_security_group": UNLIMITED,
            "quota_security_group_rule": UNLIMITED,
        },
        "ml2": {
            "type_drivers": "local,flat,vlan",
            "project_network_types": "local",
            "mechanism_drivers": "sandbox",
            "extension_drivers": "port_security",
        },
        "ml2_type_flat": {"flat_networks": "*"},
        "ml2_type_vlan": {"network_vlan_ranges": "physnet1:100:199"},
        "oslo_messaging_notifications": {"driver": "noop"},
        "oslo_concurrency": _locks(state),
        "nova": _credentials(ports, "nova"),
        "placement": _credentials(ports, "placement"),
        "keystone_authtoken": _token_validation(ports, "neutron"),
    }


def nova(state: Path, ports: Ports) -> Sections:
    """Return nova.conf, for all of Nova's services."""
    return {
        "DEFAULT": _default()
        | {
            "host": CONTROL_HOST,
            "transport_url": "fake:///",
            "concurrency_backend": "threading",
            "compute_driver": "sandbox_driver.SandboxDriver",
            "state_path": f"{state}/nova",
            "instances_path": f"{state}/nova/instances",
            "my_ip": "127.0.0.1",
            "report_interval": 5,
            # a machine that is busy for a while must not take its hosts for dead
            "service_down_time": 60,
            "rpc_response_timeout": 60,
            # no agent plugs anything, so there is no event to wait for
            "vif_plugging_is_fatal": False,
            "vif_plugging_timeout": 0,
        },
        "api": {"auth_strategy": "keystone"},
        "api_database": _database(state, "nova_api"),
        # one conductor serves the API and the cell: what targets no cell by itself means cell1
        "database": _database(state, "nova_cell1"),
        "conductor": {"workers": 1},
        "scheduler": {"workers": 1},
        "filter_scheduler": {"track_instance_changes": True},
        # after 10 failed builds in a row, which tests provoke, a host would disable itself
        "compute": {
            "consecutive_build_service_disable_threshold": 0,
            "provider_config_location": str(_providers(state)),
        },
        "quota": {
            "instances": UNLIMITED,
            "cores": UNLIMITED,
            "ram": UNLIMITED,
            "key_pairs": UNLIMITED,
            "server_groups": UNLIMITED,
            "server_group_members": UNLIMITED,
        },
        **_consoles(),
        "glance": {"region_name": REGION},
        "cinder": {"os_region_name": REGION},
        "oslo_messaging_notifications": {"driver": "noop"},
        "oslo_concurrency": _locks(state),
        "placement": _credentials(ports, "placement"),
        "neutron": _credentials(ports, "neutron"),
        "service_user": _credentials(ports, "nova") | {"send_service_user_token": True},
        "keystone_authtoken": _token_validation(ports, "nova"),
    }


def _providers(state: Path) -> Path:
    return NOVA.config_file(state).parent / "providers"


def environment(state: Path, virtualenv: Path) -> dict[str, str]:
    """Return the environment in which the services and their management commands run.

    Ours, without what would lead them to another OpenStack or to a proxy, and with the folders of their
    files.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OS_", "PYTHON")) and not name.lower().endswith("_proxy")
    }
    return inherited | {
        "PATH": f"{virtualenv}/bin:{inherited.get('PATH', os.defpath)}",
        "PYTHONPATH": str(RUNTIME),
        "PYTHONWARNINGS": "ignore",
        "NO_PROXY": "*",
        # the cache of entry points, which would lie in the home directory
        "XDG_CACHE_HOME": str(virtualenv.parent / "xdg"),
        RULES_FILE: str(state / "rules.json"),
        **{f"OS_{each.name.upper()}_CONFIG_DIR": str(each.config_file(state).parent) for each in services.SERVICES},
        "OS_KEYSTONE_CONFIG_FILES": str(KEYSTONE.config_file(state)),
        "OS_NEUTRON_CONFIG_FILES": NEUTRON.config,
        "OS_NOVA_DISABLE_EVENTLET_PATCHING": "1",
        # glibc takes 8 arenas a core otherwise: with hundreds of threads that is much memory
        "MALLOC_ARENA_MAX": "2",
    }


def serve_command(virtualenv: Path, service: str, ports: Ports, hosts: Sequence[str]) -> list[str]:
    """Return the command line of one service."""
    # -P: the current directory has folders named as the packages
    argv = [f"{virtualenv}/bin/python", "-P", "-m", "sandbox_runtime.serve", service, str(ports[service])]
    if service == NOVA.name:
        argv += ["--hosts", ",".join(hosts)]
        argv += ["--wait-for", KEYSTONE.endpoint(ports["keystone"])]
        argv += ["--wait-for", PLACEMENT.url(ports["placement"])]
    return argv


def clouds(ports: Ports) -> str:
    """Return a clouds.yaml with the administrator as `sandbox`, and a plain member as `sandbox-member`."""
    lines = ["clouds:"]
    for cloud, user in (("sandbox", "admin"), ("sandbox-member", "demo")):
        lines += [
            f"  {cloud}:",
            f"    region_name: {REGION}",
            "    auth:",
            f"      auth_url: {KEYSTONE.endpoint(ports['keystone'])}",
            f"      username: {user}",
            f"      password: {PASSWORD}",
            f"      project_name: {user}",
            "      user_domain_name: Default",
            "      project_domain_name: Default",
        ]
    return "\n".join(lines) + "\n"


def _default() -> Options:
    # standard error is the log that `Processes` keeps: one file per service to read
    return {"debug": False, "use_stderr": True}


def _database(state: Path, name: str) -> Options:
    return {"connection": services.database_url(state, name), "sqlite_synchronous": False}


def _locks(state: Path) -> Options:
    return {"lock_path": f"{state}/lock"}


def _credentials(ports: Mapping[str, int], user: str) -> Options:
    return {
        "auth_type": "password",
        "auth_url": KEYSTONE.endpoint(ports["keystone"]),
        "username": user,
        "password": PASSWORD,
        "project_name": "service",
        "user_domain_name": "Default",
        "project_domain_name": "Default",
        "region_name": REGION,
    }


def _token_validation(ports: Ports, user: str) -> Options:
    return _credentials(ports, user) | {
        "www_authenticate_uri": KEYSTONE.endpoint(ports["keystone"]),
        "service_token_roles": "service",
        "service_token_roles_required": True,
    }


def _consoles() -> Sections:
    # URLs and tokens only: no proxy listens behind them
    return {
        "vnc": {
            "enabled": True,
            "novncproxy_base_url": "http://127.0.0.1:6080/vnc_lite.html",
            "server_listen": "127.0.0.1",
            "server_proxyclient_address": "127.0.0.1",
        },
        "spice": {"enabled": True, "html5proxy_base_url": "http://127.0.0.1:6082/spice_auto.html"},
        "serial_console": {"enabled": True, "base_url": "ws://127.0.0.1:6083/"},
    }
