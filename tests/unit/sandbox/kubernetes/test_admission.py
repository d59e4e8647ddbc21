"""What is stored is pruned, defaulted and valid; what is not valid is refused with causes that name the fields."""

import pytest

METADATA_LIMIT = 262_144


def causes(response):
    """The fields and messages of a refusal as Invalid."""
    assert response.status_code == 422, response.text
    status = response.json
    assert status["reason"] == "Invalid"
    return {cause["field"]: cause["message"] for cause in status["details"]["causes"]}


def post(api, spec=None, **metadata):
    return api.call("POST", api.widgets, api.widget(None, spec, **metadata))


def test_unknown_fields_are_dropped_with_a_warning(api):
    response = post(api, {"bogus": 1, "free": {"any": {"thing": 1}}}, annotation={})
    assert response.json["spec"] == {"image": "i", "size": 1, "free": {"any": {"thing": 1}}}
    assert "annotation" not in response.json["metadata"]
    assert sorted(response.headers.getlist("Warning")) == [
        '299 - "unknown field \\"metadata.annotation\\""',
        '299 - "unknown field \\"spec.bogus\\""',
    ]


def test_strict_validation_refuses_unknown_fields(api):
    strict = {"fieldValidation": "Strict"}
    response = api.call("POST", api.widgets, api.widget(None, {"bogus": 1}), query_string=strict)
    assert response.status_code == 400
    assert response.json["message"] == 'strict decoding error: unknown field "spec.bogus"'
    maps = "/api/v1/namespaces/default/configmaps"
    response = api.call("POST", maps, {"metadata": {"name": "m"}, "dta": {}}, query_string=strict)
    assert response.status_code == 400


def test_ignored_unknown_fields_give_no_warning(api):
    response = api.call("POST", api.widgets, api.widget(None, {"bogus": 1}), query_string={"fieldValidation": "Ignore"})
    assert response.status_code == 201
    assert "Warning" not in response.headers


def test_defaults_are_filled_in_also_over_null(api):
    assert api.create()["spec"]["size"] == 1
    assert api.create(spec={"size": None})["spec"]["size"] == 1
    assert "mode" not in api.create(spec={"mode": None})["spec"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"size": "x"}, "spec.size"),
        ({"size": -1}, "spec.size"),
        ({"image": ""}, "spec.image"),
        ({"image": None}, "spec.image"),
        ({"mode": "zz"}, "spec.mode"),
        ({"port": [1]}, "spec.port"),
        ({"key": "no base64!"}, "spec.key"),
        ({"names": ["x", "y", "x"]}, "spec.names[2]"),
        ({"names": ["x", 1]}, "spec.names[1]"),
        ({"size": 13}, "spec"),
    ],
)
def test_values_the_schema_forbids_are_refused(api, spec, field):
    assert list(causes(post(api, spec))) == [field]
    assert api.names() == []


def test_every_offending_field_is_named_at_once(api):
    assert set(causes(post(api, {"size": "x", "mode": "zz", "image": ""}))) == {"spec.size", "spec.mode", "spec.image"}


def test_refusal_does_not_quote_the_value(api):
    response = post(api, {"key": "hunter2!", "mode": "hunter2"})
    assert set(causes(response)) == {"spec.key", "spec.mode"}
    assert "hunter2" not in response.text


def test_integer_or_string_takes_both(api):
    assert api.create(spec={"port": 80})["spec"]["port"] == 80
    assert api.create(spec={"port": "http"})["spec"]["port"] == "http"


def test_items_with_the_same_keys_in_a_list_map_are_refused(api):
    path = f"{api.path(api.create())}/status"
    status = {"conditions": [{"type": "Ready", "reason": "A"}, {"type": "Ready", "reason": "B"}]}
    assert list(causes(api.merge(path, {"status": status}))) == ["status.conditions[1]"]


def test_transition_rule_makes_a_field_immutable(api):
    path = api.path(api.create(spec={"host": "h"}))
    assert causes(api.merge(path, {"spec": {"host": None}})) == {"spec": "Invalid value: host may not come or go"}
    assert api.merge(path, {"spec": {"size": 2}}).status_code == 200


@pytest.mark.parametrize("name", ["Upper", "under_score", "-a", "a..b", "a/b", "a" * 254, "a\n"])
def test_name_that_is_no_subdomain_is_refused(api, name):
    assert list(causes(api.call("POST", api.widgets, api.widget(name)))) == ["metadata.name"]


def test_name_is_required(api):
    assert list(causes(api.call("POST", api.widgets, {**api.widget(), "metadata": {}}))) == ["metadata.name"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("a", "v" * 64),
        ("a", "ends-"),
        ("a", "two words"),
        ("a", "slash/ed"),
        ("a", "newline\n"),
        ("k" * 64, "v"),
        ("pre/fix/ed", "v"),
        ("Upper.dev/k", "v"),
        ("", "v"),
    ],
)
def test_b46_label_outside_kubernetes_syntax_is_refused(api, key, value):
    assert list(causes(post(api, labels={key: value}))) == ["metadata.labels"]


def test_b46_labels_within_kubernetes_syntax_are_stored(api):
    labels = {"a": "", "unikorn-cloud.org/name": "v" * 63, "A.b_c-d": "X.y_z-0"}
    assert api.create(labels=labels)["metadata"]["labels"] == labels


def test_b47_annotations_are_limited_in_total(api):
    key = "example.dev/a"
    fits = "x" * (METADATA_LIMIT - len(key))
    assert api.create(annotations={key: fits})
    assert list(causes(post(api, annotations={key: fits + "x"}))) == ["metadata.annotations"]
    assert list(causes(post(api, annotations={key: fits[:-1] + "é"}))) == ["metadata.annotations"]


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"labels": {"a": 1}}, "metadata.labels.a"),
        ({"labels": "a=b"}, "metadata.labels"),
        ({"finalizers": ["not a name"]}, "metadata.finalizers"),
        ({"ownerReferences": [{"kind": "Widget"}]}, "metadata.ownerReferences[0].uid"),
    ],
)
def test_metadata_of_the_wrong_shape_is_refused(api, metadata, field):
    assert field in causes(post(api, **metadata))


def test_b41_nulls_in_stored_positions_are_dropped(api):
    body = {**api.widget(labels=None, annotations=None, finalizers=None, ownerReferences=None), "status": None}
    created = api.call("POST", api.widgets, body).json
    assert set(created) == {"apiVersion", "kind", "metadata", "spec"}
    assert not {"labels", "annotations", "finalizers", "ownerReferences"} & set(created["metadata"])


def test_secret_keeps_base64_and_takes_text_through_string_data(api):
    secrets = "/api/v1/namespaces/default/secrets"
    created = api.call("POST", secrets, {"metadata": {"name": "s"}, "data": {"a": "YQ=="}, "stringData": {"b": "é"}})
    assert created.json["data"] == {"a": "YQ==", "b": "w6k="}
    assert "stringData" not in created.json
    assert created.json["type"] == "Opaque"
    refusal = api.merge(f"{secrets}/s", {"data": {"a": "plain text"}})
    assert list(causes(refusal)) == ["data.a"]
    assert "plain text" not in refusal.text
    assert list(causes(api.merge(f"{secrets}/s", {"type": "other"}))) == ["type"]


@pytest.mark.parametrize("plural", ["secrets", "configmaps"])
def test_immutable_data_which_is_not_implemented_is_refused(api, plural):
    path = f"/api/v1/namespaces/default/{plural}"
    body = {"metadata": {"name": "x"}, "data": {"a": "YQ=="}}
    assert list(causes(api.call("POST", path, {**body, "immutable": True}))) == ["immutable"]
    assert api.call("POST", path, {**body, "immutable": False}).status_code == 201


def test_event_belongs_to_the_namespace_of_what_it_is_about(api):
    event = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Widget", "name": "w", "namespace": "kube-system"}}
    response = api.call("POST", "/api/v1/namespaces/default/events", event)
    assert list(causes(response)) == ["involvedObject.namespace"]
