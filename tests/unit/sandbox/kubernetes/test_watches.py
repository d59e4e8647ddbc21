"""Watches: what is told, in which order, and when a watcher has to begin anew."""

import threading

import pytest


def kinds(events):
    return [type_ for type_, _ in events]


def now(api):
    return api.get(api.widgets)["metadata"]["resourceVersion"]


def test_watch_tells_what_happened_since_a_revision(api):
    since = now(api)
    one = api.create("one")
    api.merge(api.path(one), {"spec": {"size": 2}})
    api.call("DELETE", api.path(one))
    events = api.watch(resourceVersion=since)
    assert [(type_, obj["spec"]["size"]) for type_, obj in events] == [("ADDED", 1), ("MODIFIED", 2), ("DELETED", 2)]
    versions = [int(obj["metadata"]["resourceVersion"]) for _, obj in events]
    assert versions == sorted(set(versions))


@pytest.mark.parametrize("query", [{}, {"resourceVersion": "0"}])
def test_watch_without_a_revision_begins_with_the_present(api, query):
    one = api.create()
    assert api.watch(**query) == [("ADDED", one)]


def test_watch_keeps_to_its_namespace_and_kind(api):
    since = now(api)
    api.call("POST", "/apis/example.dev/v1/namespaces/kube-system/widgets", api.widget())
    api.call("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "m"}})
    assert api.watch(resourceVersion=since) == []
    assert kinds(api.watch("/apis/example.dev/v1/widgets", resourceVersion=since)) == ["ADDED"]


def test_object_enters_and_leaves_a_selection(api):
    one = api.create()
    since = now(api)
    for colour in ("red", "red", "blue", "red", None):
        api.merge(api.path(one), {"metadata": {"labels": {"colour": colour}, "annotations": {"n": str(now(api))}}})
    api.call("DELETE", api.path(one))
    events = api.watch(resourceVersion=since, labelSelector="colour=red")
    assert kinds(events) == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]


def test_watch_on_one_name_sees_only_that(api):
    since = now(api)
    api.create("one")
    api.create("two")
    events = api.watch(resourceVersion=since, fieldSelector="metadata.name=two")
    assert [obj["metadata"]["name"] for _, obj in events] == ["two"]


def test_b40_watch_from_compacted_history_gets_410_as_an_error_event(api):
    since = now(api)
    api.create()
    api.app.store.compact()
    [(type_, status)] = api.watch(resourceVersion=since)
    assert type_ == "ERROR"
    assert (status["code"], status["reason"], status["kind"]) == (410, "Expired", "Status")
    assert api.watch(resourceVersion=now(api)) == []


def test_history_is_kept_for_as_many_changes_as_were_asked_for(tmp_path, definition):
    from server_api.sandbox.kubernetes.app import KubernetesApp

    from .conftest import Api

    app = KubernetesApp(tmp_path / "small.db", keep=8)
    api = Api(app)
    api.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    since = now(api)
    for _ in range(8):
        api.create()
    assert kinds(api.watch(resourceVersion=since)) == ["ADDED"] * 8
    for _ in range(4):
        api.create()
    assert kinds(api.watch(resourceVersion=since)) == ["ERROR"]
    app.store.close()


def test_bookmark_at_the_end_carries_the_revision_to_go_on_from(api):
    since = now(api)
    api.call("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "m"}})
    [(type_, mark)] = api.watch(resourceVersion=since, allowWatchBookmarks="true", timeoutSeconds="1")
    assert type_ == "BOOKMARK"
    assert mark["metadata"] == {"resourceVersion": now(api)}
    assert (mark["apiVersion"], mark["kind"]) == ("example.dev/v1", "Widget")


@pytest.mark.parametrize(
    "query",
    [
        {"sendInitialEvents": "true"},
        {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "1"},
        {"limit": "5"},
        {"fieldSelector": "spec.size=1"},
        {"timeoutSeconds": "soon"},
    ],
)
def test_watch_that_cannot_be_honoured_is_refused_before_it_begins(api, query):
    response = api.call("GET", api.widgets, query_string={"watch": "true", **query})
    assert response.status_code == 400


def test_watch_of_a_revision_this_server_never_had_is_refused(api):
    response = api.call("GET", api.widgets, query_string={"watch": "true", "resourceVersion": "999999"})
    assert (response.status_code, response.json["reason"]) == (504, "Timeout")


def test_write_and_closing_wake_a_waiting_watch(own_api):
    store = own_api.app.store
    for wake in (own_api.create, store.interrupt):
        waiting = threading.Thread(target=store.wait, args=(int(now(own_api)), 60.0))
        waiting.start()
        wake()
        waiting.join(10)
        assert not waiting.is_alive()


def test_b45_event_with_characters_of_four_bytes_is_one_line(api):
    since = now(api)
    text = "😀\n\u2028 日本"
    api.create(spec={"note": text})
    [(_, obj)] = api.watch(resourceVersion=since)
    assert obj["spec"]["note"] == text
