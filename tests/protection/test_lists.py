"""Lists of many callers at once, over caches that all of them share: each sees its own rows and no other."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from flask import Flask
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from server_api.sandbox.identity_service import StandInIdentityService
from server_api.store import kinds, labels
from tests.api.world import (
    FLAVOR,
    IDENTITY,
    IMAGE,
    NETWORK,
    ORGANIZATION,
    OTHER_NETWORK,
    OTHER_ORGANIZATION,
    OTHER_PROJECT,
    PROJECT,
    REGION,
    SECOND_NETWORK,
    SECOND_PROJECT,
    SERVERS,
    World,
)
from tests.doubles.identity import known, person
from tests.protection import tenants
from tests.protection.matrix import PLACES as FIRST_PLACES
from tests.protection.matrix import READING_SERVICE, SERVICES, V2, Grants, Place, Rights, grants, impersonating, subject

THREADS = 8
ORGANIZATIONS = (ORGANIZATION, OTHER_ORGANIZATION)
# A project's ID in the other organization, too: it must not be taken for the same project.
PLACES: tuple[Place, ...] = (
    (ORGANIZATION, PROJECT),
    (ORGANIZATION, SECOND_PROJECT),
    (OTHER_ORGANIZATION, OTHER_PROJECT),
    (OTHER_ORGANIZATION, PROJECT),
)
NETWORK_IDS = (NETWORK, SECOND_NETWORK, OTHER_NETWORK)
READ = grants(SERVERS, "read")


@dataclass(frozen=True)
class Row:
    """A stored server."""

    id: str
    place: Place
    network: str


ROWS = tuple(
    Row(f"b0000000-0000-4000-8000-{number:012d}", place, NETWORK_IDS[number % len(NETWORK_IDS)])
    for number, place in enumerate(PLACES * 4)
)


@dataclass(frozen=True)
class Query:
    """Who asks for a list, as itself or through a service, and the filters."""

    who: int
    by_service: bool
    organizations: frozenset[str]
    projects: frozenset[str]
    networks: frozenset[str]

    def parameters(self) -> dict[str, list[str]]:
        """Return the filters as a query."""
        return {
            "organizationID": sorted(self.organizations),
            "projectID": sorted(self.projects),
            "networkID": sorted(self.networks),
        }

    def expected(self, rights: Rights) -> set[str]:
        """Return the servers that somebody with those rights gets to see (contract 5.6).

        Whoever has rights in organizations is shown these only, also when it may read everywhere.
        """
        named = {*rights.organizations, *(organization for organization, _ in rights.projects)}
        return {
            row.id
            for row in ROWS
            if rights.allow((SERVERS, "read"), row.place)
            and (not named or row.place[0] in named)
            and (not self.organizations or row.place[0] in self.organizations)
            and (not self.projects or row.place[1] in self.projects)
            and (not self.networks or row.network in self.networks)
        }


granted: st.SearchStrategy[Grants] = st.sampled_from([frozenset(), READ, grants(SERVERS, "update")])
all_rights = st.builds(
    Rights,
    everywhere=st.sampled_from([frozenset(), frozenset(), frozenset(), READ]),
    organizations=st.dictionaries(st.sampled_from(ORGANIZATIONS), granted, max_size=2),
    projects=st.dictionaries(st.sampled_from(PLACES), granted, max_size=3),
)
some_projects = st.frozensets(st.sampled_from([PROJECT, SECOND_PROJECT, OTHER_PROJECT, tenants.NOBODYS]), max_size=2)
queries = st.builds(
    Query,
    who=st.integers(0, 3),
    by_service=st.booleans(),
    organizations=st.frozensets(st.sampled_from([*ORGANIZATIONS, tenants.NOBODYS]), max_size=2),
    projects=some_projects,
    networks=st.frozensets(st.sampled_from(NETWORK_IDS), max_size=2),
)


@pytest.fixture
def rows(world: World, app: Flask) -> World:
    """A region with these servers and none besides."""
    for id_ in FIRST_PLACES:
        world.remove(kinds.SERVER, id_)
    for row in ROWS:
        organization, project = row.place
        its_labels = {
            labels.ORGANIZATION: organization,
            labels.PROJECT: project,
            labels.REGION_ID: REGION,
            labels.IDENTITY_ID: IDENTITY,
            labels.NETWORK_ID: row.network,
            labels.API_VERSION: "2",
        }
        spec = {"networks": [{"id": row.network}], "flavorID": FLAVOR, "image": {"id": IMAGE}}
        world.add(kinds.SERVER, row.id, its_labels, spec)
    return world


class Examples:
    """Numbers for tokens, so that no example finds what another one left in the caches."""

    def __init__(self) -> None:
        self._count = 0

    def next(self) -> int:
        """Return a number for the first time."""
        self._count += 1
        return self._count


@pytest.fixture
def examples() -> Examples:
    return Examples()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(people=st.lists(all_rights, min_size=4, max_size=4), asked=st.lists(queries, min_size=4, max_size=16))
def test_no_list_has_a_foreign_row_whoever_asks_at_the_same_time(
    app: Flask,
    rows: World,
    identity: StandInIdentityService,
    examples: Examples,
    people: list[Rights],
    asked: list[Query],
) -> None:
    example = examples.next()
    names = [f"person-{example}-{number}" for number in range(len(people))]
    identity.know(_known(names, people))

    def seen(query: Query) -> set[str]:
        headers = _headers(names[query.who], query.by_service)
        response = app.test_client().get(V2, query_string=query.parameters(), headers=headers)
        assert response.status_code == 200, response.text
        return {item["metadata"]["id"] for item in response.get_json()}

    with ThreadPoolExecutor(THREADS) as pool:
        results = list(pool.map(seen, asked * 2))
    for query, result in zip(asked * 2, results, strict=True):
        rights = people[query.who]
        rights = rights.limited_to(SERVICES[READING_SERVICE]) if query.by_service else rights
        assert result == query.expected(rights), query


def _known(names: list[str], people: list[Rights]) -> dict[str, Any]:
    """Return what the stand-in knows: everybody's token, all of one owner, and everybody as an actor of services.

    Two tokens of one owner have different rights, as with different scopes: what is kept is the token's.
    """
    documents = [rights.document() for rights in people]
    tokens = (person(name, document, "owner@example.com") for name, document in zip(names, documents, strict=True))
    actors = (person(f"of-{name}", document, subject(name)) for name, document in zip(names, documents, strict=True))
    return known(
        *tokens,
        *actors,
        services={name: Rights(everywhere=role).document() for name, role in SERVICES.items()},
        projects={ORGANIZATION: [], OTHER_ORGANIZATION: []},
    )


def _headers(name: str, by_service: bool) -> Mapping[str, str]:
    return impersonating(name, READING_SERVICE) if by_service else {"Authorization": f"Bearer {name}"}
