"""Server-side printing, as `kubectl get` asks for it."""

import datetime

import orjson
import pytest

from server_api.sandbox.kubernetes.presentation import age

TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
NOW = datetime.datetime(2026, 6, 1, 12, tzinfo=datetime.UTC)


def table(api, path=None, **query):
    response = api.call("GET", path or api.widgets, headers=TABLE, query_string=query)
    assert response.status_code == 200, response.text
    assert (response.json["kind"], response.json["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    return response.json


def test_columns_are_those_of_the_definition_behind_the_name(api):
    columns = table(api)["columnDefinitions"]
    assert [(column["name"], column["priority"]) for column in columns] == [
        ("Name", 0),
        ("Ready", 0),
        ("Size", 0),
        ("Mode", 1),
        ("Age", 0),
    ]


def test_cells_are_the_values_at_the_paths(api):
    one = api.create("one", {"size": 7, "mode": "b"})
    empty = table(api, api.path(one))["rows"][0]["cells"]
    assert empty[:4] == ["one", None, 7, "b"]
    status = {"conditions": [{"type": "Other", "reason": "X"}, {"type": "Ready", "reason": "Done"}]}
    api.merge(f"{api.path(one)}/status", {"status": status})
    assert table(api)["rows"][0]["cells"][1] == "Done"


def test_value_of_another_type_than_the_column_prints_as_nothing(empty_api, definition):
    columns = [{"name": "Image", "type": "integer", "jsonPath": ".spec.image"}]
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = columns
    empty_api.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    empty_api.create("one")
    assert table(empty_api)["rows"][0]["cells"] == ["one", None]


def test_kind_without_columns_shows_name_and_age(empty_api, definition):
    del definition["spec"]["versions"][0]["additionalPrinterColumns"]
    empty_api.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    assert [column["name"] for column in table(empty_api)["columnDefinitions"]] == ["Name", "Age"]


def test_rows_carry_metadata_the_object_or_nothing(api):
    one = api.create("one")
    partial = table(api)["rows"][0]["object"]
    assert partial == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": one["metadata"]}
    assert table(api, includeObject="Object")["rows"][0]["object"] == one
    assert table(api, includeObject="None")["rows"][0]["object"] is None


def test_table_of_a_list_has_its_pages(api):
    for name in "abc":
        api.create(name)
    metadata = table(api, limit="2")["metadata"]
    assert [row["cells"][0] for row in table(api, **{"continue": metadata["continue"]})["rows"]] == ["c"]


def test_watch_tells_the_columns_once(api):
    api.create("one")
    api.create("two")
    query = {"watch": "true", "timeoutSeconds": "1"}
    lines = api.call("GET", api.widgets, headers=TABLE, query_string=query).data.splitlines()
    tables = [orjson.loads(line)["object"] for line in lines]
    assert [len(item["columnDefinitions"]) for item in tables] == [5, 0]
    assert [item["rows"][0]["cells"][0] for item in tables] == ["one", "two"]


def test_built_in_kinds_have_columns_of_their_own(api):
    api.call("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
    assert table(api, "/api/v1/namespaces/default/secrets")["rows"][0]["cells"][:2] == ["s", "Opaque"]
    assert table(api, "/api/v1/namespaces/default")["rows"][0]["cells"][:2] == ["default", "Active"]


@pytest.mark.parametrize(
    ("past", "shown"),
    [
        ({"seconds": 0}, "0s"),
        ({"seconds": 119}, "119s"),
        ({"seconds": 120}, "2m"),
        ({"minutes": 10, "seconds": 5}, "10m"),
        ({"minutes": 179}, "179m"),
        ({"hours": 9, "minutes": 5}, "9h"),
        ({"hours": 47}, "47h"),
        ({"days": 2, "hours": 4}, "2d"),
        ({"days": 760}, "760d"),
        ({"seconds": -60}, "<invalid>"),
    ],
)
def test_age_is_written_as_kubectl_writes_it(past, shown):
    timestamp = (NOW - datetime.timedelta(**past)).isoformat().replace("+00:00", "Z")
    assert age(timestamp, NOW) == shown


@pytest.mark.parametrize("text", ["", "yesterday", "2026-01-01T00:00:00"])
def test_time_that_is_none_has_no_age(text):
    assert age(text, NOW) == "<invalid>"
