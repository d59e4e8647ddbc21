"""Schemathesis over the whole surface: whatever is sent, no failure of ours, and no answer the document forbids.

The cases are the same every time, but for some strings: Hypothesis mixes in constants of the modules it finds loaded.
Where a drawn ID gives way to a real one depends on nothing but the case.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import schemathesis
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from server_api.sandbox.layout import REPOSITORY
from server_api.sandbox.waiting import wait_for
from tests.integration.harness import Sandbox

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
    ignored_auth,
]

COSTLY = "/(start|stop|softreboot|hardreboot|consoleoutput|consolesessions|snapshot)$"
"""Paths of the operations that make Nova or Glance work: fewer cases of those."""

_ALONE = {"extra-data-sources": {"responses": False}, "error-feedback": {"enabled": False}}
"""Generation learns nothing from answers: they differ from run to run, by the IDs in them."""

CONFIGURATION = SchemathesisConfig.from_dict(
    {
        "seed": 20260102,
        "phases": {
            "fuzzing": _ALONE,
            "coverage": {"extra-data-sources": {"responses": False}},
            "examples": {"extra-data-sources": {"responses": False}},
        },
        "suppress-health-check": ["all"],
        "generation": {"deterministic": True, "max-examples": 25},
        "operations": [{"include-path-regex": COSTLY, "generation": {"max-examples": 8}}],
    }
)
UUID_FORM = "(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
NAME_FORM = "[a-z]([a-z0-9-]{0,61}[a-z0-9])?"
GATE = {"conditionType": "gate"}

DOCUMENT = json.loads((REPOSITORY / "docs" / "openapi.json").read_text())
# What v1 creates has random IDs and waits at no gate: hundreds of instances that nobody cleans up.
schema = schemathesis.openapi.from_dict(DOCUMENT, config=CONFIGURATION).exclude(operation_id="createServerV1")

CHECKS_OF_V1 = [check for check in CHECKS if check is not negative_data_rejection]
"""v1 ignores query parameters that it does not know."""


@dataclass(frozen=True)
class Targets:
    """Servers that exist: one that runs, one that waits at a gate, and one to be deleted."""

    running: dict[str, Any]
    gated: dict[str, Any]
    doomed: dict[str, Any]


@pytest.fixture(scope="module")
def targets(sandbox: Sandbox) -> Iterator[Targets]:
    before = ids(sandbox)
    running = sandbox.create()
    gated, doomed = (sandbox.create(sandbox.body(providerCreateGates=[GATE])) for _ in range(2))
    yield Targets(sandbox.running(running["metadata"]["id"]), gated, doomed)
    for id_ in ids(sandbox) - before:
        sandbox.api("ADMIN").delete(id_)
    wait_for("what was created is gone", lambda: ids(sandbox) <= before, 60.0)


def ids(sandbox: Sandbox) -> set[str]:
    return {server["metadata"]["id"] for server in sandbox.api("ADMIN").list().json()}


@schema.parametrize()
def test_whatever_is_sent_is_answered_as_the_document_says(case: Case[Any], region: Sandbox, targets: Targets) -> None:
    aim(case, region, targets)
    if re.search(COSTLY, case.path) and case.meta and case.meta.generation.mode.is_positive:
        settle(region, targets.running["metadata"]["name"])
    token = region.environment["SERVER_API_TOKEN_ADMIN"]
    case.call_and_validate(
        base_url=region.environment["SERVER_API_URL"],
        headers={"Authorization": f"Bearer {token}"},
        checks=CHECKS_OF_V1 if case.path.startswith("/api/v1/") else CHECKS,
        timeout=30,
    )


def aim(case: Case[Any], region: Sandbox, targets: Targets) -> None:
    """Put what exists in the place of well-formed IDs and names in two of three cases: drawn ones are never found."""
    drawn = json.dumps([case.path_parameters, case.query, case.body], default=lambda _: None, sort_keys=True)
    if zlib.crc32(drawn.encode("utf-8", "surrogatepass")) % 3 == 0:
        return
    target = target_of(case, targets)
    replace(case.path_parameters, "serverID", UUID_FORM, target["metadata"]["id"])
    tenant = region.world.first
    replace(case.path_parameters, "organizationID", UUID_FORM, tenant.organization_id)
    replace(case.path_parameters, "projectID", UUID_FORM, tenant.project_id)
    replace(case.path_parameters, "identityID", UUID_FORM, tenant.identity_id)
    replace(case.body, "conditionType", ".{1,63}", GATE["conditionType"])
    if case.method == "PUT":
        replace(member(case.body, "metadata"), "name", NAME_FORM, target["metadata"]["name"])
    spec = member(case.body, "spec")
    replace(spec, "networkId", UUID_FORM, region.world.first.network_id)
    replace(spec, "flavorId", UUID_FORM, target["spec"]["flavorId"])
    replace(spec, "imageId", UUID_FORM, target["spec"]["imageId"])
    replace(spec, "sshCertificateAuthorityId", UUID_FORM, region.world.first.authority_id)
    if isinstance(spec, dict) and case.path == "/api/v2/servers" and spec.get("providerCreateGates", []) == []:
        # Servers that nobody lets through are never made in the cloud, which saves a minute.
        spec["providerCreateGates"] = [GATE]


def settle(region: Sandbox, name: str) -> None:
    """Wait until Nova is done with the case before: it refuses whatever comes while it is at work."""

    def idle() -> bool:
        instance = region.cloud.instance(name)
        return instance is not None and instance["OS-EXT-STS:task_state"] is None

    wait_for("the instance is idle", idle)


def member(body: object, name: str) -> object:
    return body.get(name) if isinstance(body, dict) else None


def replace(members: object, name: str, form: str, value: str) -> None:
    """Put a value in the place of a well-formed one: what is wrong with a case stays wrong."""
    old = member(members, name)
    if isinstance(members, dict) and isinstance(old, str) and re.fullmatch(form, old):
        members[name] = value


def target_of(case: Case[Any], targets: Targets) -> dict[str, Any]:
    if case.method == "DELETE":
        return targets.doomed
    return targets.gated if case.path.endswith("/provider-create-gates") else targets.running
