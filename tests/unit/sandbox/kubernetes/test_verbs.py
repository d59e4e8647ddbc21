"""Create, read, update, patch and delete, as every client relies on them."""

import pytest

JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def refused(response, code, reason):
    assert response.status_code == code, response.text
    status = response.json
    assert (status["kind"], status["status"], status["code"]) == ("Status", "Failure", code)
    assert status["reason"] == reason
    return status


def test_created_object_carries_what_the_server_owns(api):
    created = api.create("one", uid="mine", creationTimestamp="2001-01-01T00:00:00Z", generation=7)
    metadata = created["metadata"]
    assert metadata["generation"] == 1
    assert metadata["uid"] != "mine"
    assert metadata["creationTimestamp"] > "2001-01-01T00:00:00Z"
    assert metadata["namespace"] == "default"
    assert api.get(api.path(created)) == created


def test_generated_names_are_refused(api):
    body = api.widget()
    body["metadata"] = {"generateName": "job-"}
    status = refused(api.call("POST", api.widgets, body), 422, "Invalid")
    assert [cause["field"] for cause in status["details"]["causes"]] == ["metadata.name"]


def test_taken_name_is_refused(api):
    api.create("one")
    status = refused(api.call("POST", api.widgets, api.widget("one")), 409, "AlreadyExists")
    assert status["details"] == {"name": "one", "group": "example.dev", "kind": "widgets"}


def test_missing_object_is_not_found(api):
    for method, body in (("GET", None), ("PUT", api.widget("no")), ("DELETE", None)):
        status = refused(api.call(method, f"{api.widgets}/no", body), 404, "NotFound")
        assert status["message"] == 'widgets.example.dev "no" not found'


def test_object_in_a_namespace_that_does_not_exist_is_refused(api):
    path = "/apis/example.dev/v1/namespaces/nowhere/widgets"
    assert 'namespaces "nowhere"' in refused(api.call("POST", path, api.widget()), 404, "NotFound")["message"]


def test_object_of_another_namespace_than_the_path_is_refused(api):
    refused(api.call("POST", api.widgets, api.widget(namespace="kube-system")), 400, "BadRequest")


@pytest.mark.parametrize("field", ["apiVersion", "kind"])
def test_object_of_another_kind_than_the_path_is_refused(api, field):
    body = api.widget()
    body[field] = "other"
    refused(api.call("POST", api.widgets, body), 400, "BadRequest")
    del body[field]
    refused(api.call("POST", api.widgets, body), 400, "BadRequest")


def test_update_from_a_stale_read_conflicts(api):
    stale = api.create()
    fresh = api.call("PUT", api.path(stale), {**stale, "spec": {"image": "new"}})
    assert fresh.status_code == 200
    refused(api.call("PUT", api.path(stale), {**stale, "spec": {"image": "newer"}}), 409, "Conflict")
    assert api.get(api.path(stale))["spec"]["image"] == "new"


def test_update_of_a_custom_resource_needs_a_resource_version(api):
    body = api.create()
    del body["metadata"]["resourceVersion"]
    status = refused(api.call("PUT", api.path(body), body), 422, "Invalid")
    assert status["details"]["causes"][0]["field"] == "metadata.resourceVersion"


def test_update_of_a_recreated_object_conflicts(api):
    old = api.create("one")
    api.call("DELETE", api.path(old))
    new = api.create("one")
    old["metadata"]["resourceVersion"] = new["metadata"]["resourceVersion"]
    refused(api.call("PUT", api.path(old), old), 409, "Conflict")


def test_update_may_not_rename(api):
    one = api.create("one")
    renamed = {**one, "metadata": {**one["metadata"], "name": "two"}}
    refused(api.call("PUT", api.path(one), renamed), 400, "BadRequest")


def test_unchanged_object_keeps_its_resource_version_and_tells_no_watch(api):
    one = api.create()
    same = api.merge(api.path(one), {"spec": {"image": "i"}}).json
    assert same["metadata"]["resourceVersion"] == one["metadata"]["resourceVersion"]
    assert api.watch(resourceVersion=one["metadata"]["resourceVersion"]) == []


def test_generation_counts_changes_of_the_desired_state_only(api):
    path = api.path(api.create())
    generations = [
        api.merge(path, {"metadata": {"labels": {"a": "b"}}}).json["metadata"]["generation"],
        api.merge(f"{path}/status", {"status": {"phase": "Up"}}).json["metadata"]["generation"],
        api.merge(path, {"spec": {"size": 5}}).json["metadata"]["generation"],
    ]
    assert generations == [1, 1, 2]


def test_status_is_written_through_its_subresource_only(api):
    body = {**api.widget("one"), "status": {"phase": "Up"}}
    created = api.call("POST", api.widgets, body).json
    assert "status" not in created
    path = api.path(created)
    assert "status" not in api.call("PUT", path, {**created, "status": {"phase": "Up"}}).json
    written = api.call("PUT", f"{path}/status", {**created, "spec": {"image": "x"}, "status": {"phase": "Up"}}).json
    assert written["status"] == {"phase": "Up"}
    assert written["spec"]["image"] == "i"
    assert api.get(f"{path}/status") == written


def test_status_written_from_a_stale_read_conflicts(api):
    stale = api.create()
    api.merge(f"{api.path(stale)}/status", {"status": {"phase": "Up"}})
    refused(api.call("PUT", f"{api.path(stale)}/status", {**stale, "status": {"phase": "Down"}}), 409, "Conflict")


def test_merge_patch_deletes_by_null_and_replaces_lists(api):
    path = api.path(api.create(spec={"mode": "a", "names": ["x", "y"]}))
    patched = api.merge(path, {"spec": {"mode": None, "names": ["z"]}}).json
    assert patched["spec"] == {"image": "i", "size": 1, "names": ["z"]}


def test_merge_patch_with_a_stale_resource_version_conflicts(api):
    one = api.create()
    api.merge(api.path(one), {"spec": {"size": 2}})
    patch = {"metadata": {"resourceVersion": one["metadata"]["resourceVersion"]}, "spec": {"size": 3}}
    refused(api.merge(api.path(one), patch), 409, "Conflict")


def test_json_patch_is_applied_whole_or_not_at_all(api):
    path = api.path(api.create())
    replace = {"op": "replace", "path": "/spec/size", "value": 4}
    patched = api.call("PATCH", path, [replace], content_type=JSON_PATCH)
    assert patched.json["spec"]["size"] == 4
    operations = [{**replace, "value": 5}, {"op": "test", "path": "/spec/image", "value": "other"}]
    refused(api.call("PATCH", path, operations, content_type=JSON_PATCH), 422, "Invalid")
    refused(api.call("PATCH", path, [{"op": "burn"}], content_type=JSON_PATCH), 400, "BadRequest")
    assert api.get(path)["spec"]["size"] == 4


def test_strategic_patch_is_taken_only_where_it_means_a_merge(api):
    maps = "/api/v1/namespaces/default/configmaps"
    api.call("POST", maps, {"metadata": {"name": "m"}, "data": {"a": "1", "b": "2"}})
    patched = api.call("PATCH", f"{maps}/m", {"data": {"a": None, "c": "3"}}, content_type=STRATEGIC)
    assert patched.json["data"] == {"b": "2", "c": "3"}
    for body in ({"metadata": {"finalizers": ["x.dev/y"]}}, {"data": {"$patch": "replace"}}):
        refused(api.call("PATCH", f"{maps}/m", body, content_type=STRATEGIC), 415, "UnsupportedMediaType")
    path = api.path(api.create())
    refused(api.call("PATCH", path, {"spec": {"size": 2}}, content_type=STRATEGIC), 415, "UnsupportedMediaType")


def test_server_side_apply_is_refused_also_for_an_object_that_does_not_exist(api):
    response = api.call("PATCH", f"{api.widgets}/new", api.widget("new"), content_type="application/apply-patch+yaml")
    assert "without --server-side" in refused(response, 415, "UnsupportedMediaType")["message"]


def test_dry_run_is_refused_and_changes_nothing(api):
    one = api.create()
    dry = {"dryRun": "All"}
    refused(api.call("POST", api.widgets, api.widget("dry"), query_string=dry), 400, "BadRequest")
    refused(api.merge(api.path(one), {"spec": {"size": 9}}, **dry), 400, "BadRequest")
    refused(api.call("DELETE", api.path(one), query_string=dry), 400, "BadRequest")
    assert api.get(api.widgets)["items"] == [one]


def test_deletion_answers_what_was_deleted(api):
    one = api.create()
    answer = api.call("DELETE", api.path(one)).json
    assert answer["status"] == "Success"
    assert answer["details"]["uid"] == one["metadata"]["uid"]
    assert not api.exists(one)


def test_finalizer_holds_a_deleted_object_until_it_is_removed(api):
    one = api.create(finalizers=["unikorn"])
    marked = api.call("DELETE", api.path(one)).json
    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    assert api.call("DELETE", api.path(one)).json == marked
    status = refused(api.merge(api.path(one), {"metadata": {"finalizers": ["unikorn", "late.dev/f"]}}), 422, "Invalid")
    assert status["details"]["causes"][0]["field"] == "metadata.finalizers"
    assert api.merge(api.path(one), {"metadata": {"finalizers": []}}).status_code == 200
    assert not api.exists(one)


def test_deletion_time_cannot_be_taken_back(api):
    one = api.create(finalizers=["unikorn"])
    api.call("DELETE", api.path(one))
    assert api.merge(api.path(one), {"metadata": {"deletionTimestamp": None}}).json["metadata"]["deletionTimestamp"]


def test_reset_removes_what_finalizers_hold_and_keeps_definitions_and_namespaces(api):
    api.create(finalizers=["unikorn"])
    api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "kept"}})
    since = api.get(api.widgets)["metadata"]["resourceVersion"]
    api.app.verbs.reset()
    assert api.names() == []
    assert [type_ for type_, _ in api.watch(resourceVersion=since)] == ["DELETED"]
    assert api.get("/api/v1/namespaces/kept")["status"]["phase"] == "Active"
