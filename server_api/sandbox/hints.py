"""What to try on a sandbox that is ready: lines that work when they are pasted into a shell."""

import json
import shlex
from collections.abc import Mapping

from server_api.servers.naming import server_id

SERVER_NAME = "hello"


def curl_lines(env: Mapping[str, str]) -> list[str]:
    """Return the life of a server as five commands: create, list, get, stop, delete.

    They carry real IDs and a real token. The server's ID is known beforehand, since it follows from network and name.
    """
    body = {
        "metadata": {"name": SERVER_NAME},
        "spec": {
            "networkId": env["SERVER_API_NETWORK_ID"],
            "flavorId": env["SERVER_API_FLAVOR_ID"],
            "imageId": env["SERVER_API_IMAGE_ID"],
            "networking": {
                "publicIP": True,
                "securityGroups": [env["SERVER_API_SECURITY_GROUP_ID"]],
            },
        },
    }
    servers = f"{env['SERVER_API_URL']}/api/v2/servers"
    one = f"{servers}/{server_id(env['SERVER_API_NETWORK_ID'], SERVER_NAME)}"
    # -w: an accepted stop or delete has no body, and silence would look like failure
    curl = [
        "curl",
        "-sS",
        "-w",
        r"\n%{http_code}\n",
        "-H",
        f"Authorization: Bearer {env['SERVER_API_TOKEN_USER']}",
    ]
    json_body = ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
    commands = [
        [*curl, *json_body, servers],
        [*curl, servers],
        [*curl, one],
        [*curl, "-X", "POST", f"{one}/stop"],
        [*curl, "-X", "DELETE", one],
    ]
    return [shlex.join(command) for command in commands]


def lines(env: Mapping[str, str], environment_file: str) -> list[str]:
    """Return the whole text that is shown when the sandbox is ready."""
    create, list_, get, stop, delete = curl_lines(env)
    return [
        "",
        "# create a server, list servers, look at it until its powerState is Running, stop it, delete it:",
        *(create, list_, get, stop, delete),
        "",
        f"# the same from the other sides, after:  . {shlex.quote(environment_file)}",
        "kubectl get servers",
        "openstack --os-cloud sandbox server list --all-projects   # pip install python-openstackclient",
        "# the main job, step by step:  tox run -e sandbox -- demo   (or: server-api sandbox demo)",
        f"# the API's own documentation: {env['SERVER_API_URL']}/docs",
    ]
