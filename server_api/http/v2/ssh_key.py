"""The key pairs that servers were created with."""

from __future__ import annotations

from flask import Response

from server_api.http import audit, responses
from server_api.http.authentication import caller
from server_api.http.blueprint import ALWAYS, DEPENDENCIES
from server_api.http.schemas import ssh_key as schemas
from server_api.http.services import services
from server_api.http.v2.blueprint import servers_blueprint

blueprint = servers_blueprint("ssh-key", __name__, "SSH keys of compute servers.")


@blueprint.route("/<server_id:serverID>/sshkey", methods=["GET"])
@blueprint.response(200, schemas.SSHKeySchema, description="The private key.", example=schemas.EXAMPLE)
@blueprint.errors(*ALWAYS, 403, 404, *DEPENDENCIES)
@audit.always
def get_ssh_key(server_id: str) -> Response:
    """Read a server's private SSH key.

    Returns the private key of the identity's key pair, for servers that were created with it (`sshInjection` is
    `identityKeypair`); for all others there is none, and the answer is 404. The answer is never cached.
    """
    key = services().ssh_keys.private_key(caller(), server_id)
    return responses.json(200, {"privateKey": key}, responses.NO_STORE)
