"""`.sandbox/env`: where everything of a running sandbox is, to be sourced by a shell."""

import shlex
from pathlib import Path

from server_api.sandbox.layout import Layout, write_private
from server_api.sandbox.services import API, Choices, kubeconfig
from server_api.sandbox.world import SERVICE, World


def variables(layout: Layout, choices: Choices, world: World, clouds: Path, rules: Path) -> dict[str, str]:
    """Return the variables that design section 5 names, and no others."""
    first = world.first
    ids = {
        "ORGANIZATION": first.organization_id,
        "PROJECT": first.project_id,
        "REGION": world.region_id,
        "IDENTITY": first.identity_id,
        "NETWORK": first.network_id,
        "SECURITY_GROUP": first.security_group_id,
        "SSH_CA": first.authority_id,
        "FLAVOR": world.flavors["virtual"].id,
        "IMAGE": world.images["ready"].id,
        "IMAGE_2": world.images["ready-too"].id,
    }
    return {
        "SERVER_API_URL": choices.url(API),
        **{f"SERVER_API_TOKEN_{caller.role}": caller.token for caller in world.callers.values()},
        "SERVER_API_SERVICE_CERT": str(layout.certificates / f"{SERVICE}.crt"),
        "SERVER_API_SERVICE_KEY": str(layout.certificates / f"{SERVICE}.key"),
        **{f"SERVER_API_{name}_ID": value for name, value in ids.items()},
        "KUBECONFIG": kubeconfig(layout, choices),
        "OS_CLIENT_CONFIG_FILE": str(clouds),
        "SANDBOX_OPENSTACK_RULES": str(rules),
    }


def write(path: Path, values: dict[str, str]) -> None:
    """Replace the file at once and as a whole; it holds tokens, so only its owner can read it."""
    write_private(path, "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items()))
