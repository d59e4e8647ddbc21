"""Definitions beside those of another installation."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from server_api.sandbox.kubernetes import EmbeddedKubernetes
from server_api.servers import ports
from server_api.store import kinds
from server_api.store.client import KubernetesClient
from server_api.store.definitions import CustomResourceDefinitions

KIND = kinds.CUSTOM_RESOURCE_DEFINITION
NAME = "servers.region.unikorn-cloud.org"


@pytest.fixture
def client(connect: Any) -> Iterator[KubernetesClient]:
    with EmbeddedKubernetes() as empty:
        yield connect(empty.url)


@pytest.fixture
def ours(migrations_directory: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((migrations_directory / "crds" / "servers.yaml").read_text())
    return document


@pytest.fixture
def theirs(ours: dict[str, Any]) -> dict[str, Any]:
    """An installation of another version: one more version, field, value and rule, and less of ours."""
    definition = copy.deepcopy(ours)
    version = definition["spec"]["versions"][0]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["required"] = ["flavorID"]
    spec["properties"]["console"] = {"type": "string"}
    spec["properties"]["sshInjection"]["enum"] = ["ca", "vault"]
    spec["x-kubernetes-validations"] = [{"rule": "self.flavorID == oldSelf.flavorID", "message": "no resize"}]
    del spec["properties"]["infrastructureRef"], spec["properties"]["providerCreateGates"]
    del version["additionalPrinterColumns"]
    later = copy.deepcopy(version) | {"name": "v1", "storage": True}
    definition["spec"]["versions"] = [later, version | {"storage": False}]
    return definition


def spec_of(definition: dict[str, Any], version: str = "v1alpha1") -> dict[str, Any]:
    (found,) = [item for item in definition["spec"]["versions"] if item["name"] == version]
    schema: dict[str, Any] = found["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return schema


def test_a_definition_is_created_and_then_left_alone(client: KubernetesClient, ours: dict[str, Any]) -> None:
    definitions = CustomResourceDefinitions(client)
    assert definitions.plan([ours]) == [f"create customresourcedefinition {NAME}"]
    definitions.apply([ours])
    created = client.get(KIND, "", NAME)
    assert definitions.plan([ours]) == []
    definitions.apply([ours])
    assert client.get(KIND, "", NAME)["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


def test_an_update_adds_ours_and_drops_nothing_of_theirs(
    client: KubernetesClient, ours: dict[str, Any], theirs: dict[str, Any]
) -> None:
    client.create(KIND, "", theirs)
    definitions = CustomResourceDefinitions(client)
    (line,) = definitions.plan([ours])
    assert line.startswith(f"update customresourcedefinition {NAME}: spec.versions[1]")
    definitions.apply([ours])
    merged = client.get(KIND, "", NAME)
    spec = spec_of(merged)
    assert spec["properties"]["console"] == {"type": "string"}
    assert spec["properties"]["infrastructureRef"]["type"] == "string"
    assert spec["properties"]["sshInjection"]["enum"] == ["ca", "vault", "identityKeypair", "none"]
    assert spec["required"] == ["flavorID"], "objects of theirs without an image stay valid"
    assert len(spec["x-kubernetes-validations"]) == 3
    assert [(item["name"], item["storage"]) for item in merged["spec"]["versions"]] == [
        ("v1", True),
        ("v1alpha1", False),
    ]
    assert spec_of(merged, "v1") == spec_of(theirs, "v1")
    assert definitions.plan([ours]) == []


def test_fields_of_theirs_get_no_restriction_that_they_did_not_have(
    client: KubernetesClient, ours: dict[str, Any], theirs: dict[str, Any]
) -> None:
    """An object that breaks one could not be written any more, hence not even be deleted."""
    spec = spec_of(theirs)
    del spec["required"]
    spec["properties"]["flavorID"] = {"type": "string"}
    spec["properties"]["sshInjection"] = {"type": "string"}
    spec["properties"]["tags"] = {"type": "array", "items": {"type": "object", "properties": {"name": {}}}}
    client.create(KIND, "", theirs)
    CustomResourceDefinitions(client).apply([ours])
    merged = spec_of(client.get(KIND, "", NAME))
    assert "required" not in merged
    assert merged["properties"]["flavorID"].keys() == {"type"}
    assert "enum" not in merged["properties"]["sshInjection"]
    assert "required" not in merged["properties"]["tags"]["items"]
    assert merged["properties"]["tags"]["items"]["properties"]["value"] == {"type": "string"}
    assert merged["properties"]["providerCreateGates"]["maxItems"] == 16, "fields of ours alone come whole"


def test_a_version_of_ours_is_added_without_taking_over_storage(
    client: KubernetesClient, ours: dict[str, Any], theirs: dict[str, Any]
) -> None:
    theirs["spec"]["versions"] = theirs["spec"]["versions"][:1]
    client.create(KIND, "", theirs)
    CustomResourceDefinitions(client).apply([ours])
    versions = client.get(KIND, "", NAME)["spec"]["versions"]
    assert [(item["name"], item["storage"]) for item in versions] == [("v1", True), ("v1alpha1", False)]


def test_a_contradiction_is_refused_and_named(
    client: KubernetesClient, ours: dict[str, Any], theirs: dict[str, Any]
) -> None:
    spec_of(theirs)["properties"]["flavorID"] = {"type": "integer"}
    client.create(KIND, "", theirs)
    with pytest.raises(ports.Refused, match=r"flavorID\.type"):
        CustomResourceDefinitions(client).apply([ours])
    assert spec_of(client.get(KIND, "", NAME))["properties"]["flavorID"] == {"type": "integer"}
