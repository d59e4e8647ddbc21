from pathlib import Path

import pytest
import yaml

from server_api.access.acl import Acl
from server_api.access.authentication import Credentials
from server_api.access.source import CallerAuthenticator
from server_api.access.token_file import TokenFile
from server_api.sandbox.memory import Memory
from server_api.sandbox.seed import write_identity, write_tokens
from server_api.sandbox.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.recalled(Memory(tmp_path / "seed.json"))


def allows(world: World, role: str, permission: str, operation: str, *, other: bool = False) -> bool:
    tenant = world.second if other else world.first
    acl = Acl.from_document(world.callers[role].acl)
    return acl.allows(permission, operation, tenant.organization_id, tenant.project_id)


@pytest.mark.parametrize(
    ("role", "operations"),
    [("ADMIN", "create read update delete"), ("USER", "create read update delete"), ("READER", "read"), ("OTHER", "")],
)
def test_who_may_do_what_with_servers_of_the_first_project(world: World, role: str, operations: str) -> None:
    granted = [op for op in ("create", "read", "update", "delete") if allows(world, role, "region:servers", op)]
    assert granted == operations.split()


def test_other_is_the_user_of_the_second_organization(world: World) -> None:
    user, other = world.callers["USER"], world.callers["OTHER"]
    assert other.grants == user.grants
    assert allows(world, "OTHER", "region:servers", "create", other=True)
    assert not allows(world, "USER", "region:servers", "read", other=True)
    assert not allows(world, "ADMIN", "region:servers", "read", other=True)


@pytest.mark.parametrize("kind", ["networks", "securitygroups", "sshcertificateauthorities"])
@pytest.mark.parametrize("role", ["ADMIN", "USER", "READER"])
def test_what_a_server_refers_to_can_be_read_and_nothing_more(world: World, role: str, kind: str) -> None:
    assert allows(world, role, f"region:{kind}:v2", "read")
    assert not allows(world, role, f"region:{kind}:v2", "create")


def test_only_the_admin_may_satisfy_gates_and_create_images_for_the_organization(world: World) -> None:
    for role in world.callers:
        acl = Acl.from_document(world.callers[role].acl)
        assert allows(world, role, "region:servers:v2/provider-create-gates", "update") == (role == "ADMIN")
        assert acl.allows("region:images", "create", world.first.organization_id) == (role == "ADMIN")


def test_the_file_of_tokens_opens_to_each_caller_and_holds_no_token(world: World, tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    write_tokens(path, world)
    tokens = CallerAuthenticator(TokenFile(path))
    for caller in world.callers.values():
        principal = tokens.authenticate(Credentials(authorization=f"Bearer {caller.token}"))
        assert principal.subject == f"{caller.role.lower()}@sandbox"
        assert caller.token not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_stand_in_identity_service_knows_the_same_callers_and_each_project(world: World, tmp_path: Path) -> None:
    tokens, identity = tmp_path / "tokens.yaml", tmp_path / "identity.yaml"
    write_tokens(tokens, world)
    write_identity(identity, world)
    file, service = yaml.safe_load(tokens.read_text()), yaml.safe_load(identity.read_text())
    assert {name: service[name] for name in file} == file
    assert service["organizations"] == [
        {"id": tenant.organization_id, "projects": [tenant.project_id]} for tenant in world.tenants
    ]
    assert identity.stat().st_mode & 0o777 == 0o600


def test_the_service_has_what_the_contract_gives_it_everywhere(world: World, tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    write_tokens(path, world)
    (service,) = yaml.safe_load(path.read_text())["services"]
    acl = Acl.from_document(service["acl"])
    assert service["commonName"] == "unikorn-compute"
    for operation in ("create", "read", "update", "delete"):
        assert acl.allows("region:servers", operation, "any organization", "any project")
    assert not acl.allows("region:networks:v2", "create", "any organization", "any project")


def test_no_secret_is_shown_by_repr(world: World) -> None:
    text = repr(world)
    secrets = [caller.token for caller in world.callers.values()] + [world.service_password]
    for tenant in world.tenants:
        secrets += [tenant.password, tenant.private_key]
    assert [secret for secret in secrets if secret in text] == []


def test_the_images_are_what_design_section_5_lists(world: World) -> None:
    flavor = world.flavors["virtual"]
    images = world.images
    for name in ("ready", "ready-too"):
        image = images[name]
        assert image.content
        assert image.min_disk <= flavor.disk
        assert image.architecture == "x86_64"
        assert image.virtualization in ("virtualized", "any")
        assert image.organization_id is None
    assert images["foreign"].properties["unikorn:organization:id"] == world.second.organization_id
    assert images["aarch64"].properties["architecture"] == "aarch64"
    assert images["baremetal"].properties["unikorn:virtualization"] == "baremetal"
    assert images["too-large"].min_disk > flavor.disk
    assert not images["not-ready"].content
