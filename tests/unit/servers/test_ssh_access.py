"""The SSH modes of contract 1.7."""

from __future__ import annotations

import pytest

from server_api.servers import ssh_access
from server_api.servers.errors import Unprocessable
from server_api.servers.model import SSHInjection
from tests.unit.servers.builders import AUTHORITY, spec

CA, KEY_PAIR, NONE = SSHInjection.CA, SSHInjection.IDENTITY_KEYPAIR, SSHInjection.NONE


@pytest.mark.parametrize(
    ("said", "authority_id", "expected"),
    [
        (None, None, KEY_PAIR),
        (None, AUTHORITY, CA),
        ("none", None, NONE),
        ("none", AUTHORITY, NONE),
        ("ca", None, CA),
        ("ca", AUTHORITY, CA),
        ("identityKeypair", None, KEY_PAIR),
        ("identityKeypair", AUTHORITY, KEY_PAIR),
    ],
)
def test_what_was_said_applies_else_what_the_authority_implies(
    said: str | None, authority_id: str | None, expected: SSHInjection
) -> None:
    assert ssh_access.resolve(said, authority_id) is expected
    assert ssh_access.resolved_mode(spec(ssh_injection=said, ssh_certificate_authority_id=authority_id)) is expected


@pytest.mark.parametrize(
    ("mode", "authority_id", "pinned"),
    [(CA, AUTHORITY, None), (CA, AUTHORITY, "host"), (KEY_PAIR, None, None), (NONE, None, None), (NONE, None, "host")],
)
def test_c29_c30_modes_that_go_with_what_else_was_asked_for(
    mode: SSHInjection, authority_id: str | None, pinned: str | None
) -> None:
    ssh_access.check(mode, authority_id, pinned)


@pytest.mark.parametrize(
    ("mode", "authority_id", "pinned", "reason"),
    [
        pytest.param(CA, None, None, "ca requires", id="c25"),
        pytest.param(CA, None, "host", "ca requires", id="c25-pinned"),
        pytest.param(KEY_PAIR, AUTHORITY, None, "identityKeypair excludes", id="c26"),
        pytest.param(KEY_PAIR, AUTHORITY, "host", "identityKeypair excludes", id="c26-pinned"),
        pytest.param(KEY_PAIR, None, "host", "not available with infrastructureRef", id="c28"),
        pytest.param(NONE, AUTHORITY, None, "none excludes", id="c27"),
        pytest.param(NONE, AUTHORITY, "host", "none excludes", id="c27-pinned"),
    ],
)
def test_c25_to_c28_modes_that_contradict_what_else_was_asked_for(
    mode: SSHInjection, authority_id: str | None, pinned: str | None, reason: str
) -> None:
    with pytest.raises(Unprocessable, match=reason) as refusal:
        ssh_access.check(mode, authority_id, pinned)

    assert refusal.value.field == "spec.sshInjection"
