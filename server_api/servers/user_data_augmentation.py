"""Adding the trust in an SSH certificate authority to a server's user data (contract 8.5)."""

from __future__ import annotations

from base64 import encodebytes
from hashlib import sha256

import yaml

from server_api.servers.user_data import Multipart, SinglePart, parse

_KEYS_PATH = "/etc/ssh/trusted-user-ca-keys.pub"
_DAEMON_PATH = "/etc/ssh/sshd_config.d/90-unikorn-trusted-user-ca.conf"
_SERVICES = ("systemctl {verb} sshd", "systemctl {verb} ssh", "service ssh {verb}", "service sshd {verb}")
_FILE_NAME = "unikorn-ssh-certificate-authority"


def augment(payload: bytes | None, authority_key: str) -> bytes:
    """Return the user data with a cloud-config that makes the guest's SSH daemon trust the authority.

    ``authority_key`` is the authority's public key as stored. The same input always gives the same bytes, so that a
    create that is tried again asks for the same instance. Raises Unprocessable for a payload that cannot be augmented.
    """
    config = _cloud_config(authority_key)
    user_data = parse(payload, managed=True)
    if user_data is None:
        return config
    headers = f'Content-Type: text/cloud-config\r\nContent-Disposition: attachment; filename="{_FILE_NAME}"\r\n\r\n'
    return _multipart([*_parts(user_data), headers.encode() + config])


def _parts(user_data: object) -> list[bytes]:
    match user_data:
        case Multipart(parts):
            return list(parts)
        case SinglePart(content_type, payload):
            return [_part(content_type, payload)]
    raise TypeError(f"{type(user_data).__name__} has no parts")


def _part(content_type: str, payload: bytes) -> bytes:
    headers = f"Content-Type: {content_type}\r\n"
    if payload.isascii():
        return f"{headers}\r\n".encode() + payload
    # cloud-init reads the message as text, and would mangle every other byte.
    return f"{headers}Content-Transfer-Encoding: base64\r\n\r\n".encode() + encodebytes(payload)


def _multipart(parts: list[bytes]) -> bytes:
    boundary = _boundary(parts)
    delimiter = b"--" + boundary
    head = b'Content-Type: multipart/mixed; boundary="' + boundary + b'"\r\nMIME-Version: 1.0\r\n\r\n'
    return head + b"".join(delimiter + b"\r\n" + part + b"\r\n" for part in parts) + delimiter + b"--\r\n"


def _boundary(parts: list[bytes]) -> bytes:
    content = b"".join(parts)
    boundary = sha256(content).hexdigest().encode()
    while boundary in content:
        boundary = sha256(boundary).hexdigest().encode()
    return boundary


def _cloud_config(authority_key: str) -> bytes:
    commands = [service.format(verb=verb) for verb in ("reload", "restart") for service in _SERVICES]
    document = {
        "write_files": [
            _file(_KEYS_PATH, authority_key),
            _file(_DAEMON_PATH, f"TrustedUserCAKeys {_KEYS_PATH}"),
        ],
        "runcmd": [["sh", "-c", " || ".join(commands)]],
        # cloud-init would otherwise let one part's lists take the place of another's.
        "merge_how": "list(append)+dict(no_replace,recurse_list)+str()",
    }
    return b"#cloud-config\n" + yaml.safe_dump(document, sort_keys=False, width=10_000).encode()


def _file(path: str, content: str) -> dict[str, str]:
    return {"path": path, "owner": "root:root", "permissions": "0644", "content": content}
