"""Discovery: which groups, versions and resources are served."""

from __future__ import annotations

from typing import Any

from .registry import Registry
from .resources import Resource

# The API level these semantics follow; clients decide by it what they may ask for.
VERSION = {
    "major": "1",
    "minor": "33",
    "gitVersion": "v1.33.0+server-api-sandbox",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}

_STATUS_VERBS = ["get", "patch", "update"]


def discover(registry: Registry, path: list[str]) -> dict[str, Any] | None:
    """The discovery document at a path (its segments), None where there is none."""
    match path:
        case []:
            return {"paths": ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/readyz", "/version"]}
        case ["version"]:
            return VERSION
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            groups = [_group(name, versions) for name, versions in _versions(registry).items() if name]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["apis", group]:
            versions = _versions(registry).get(group)
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions)} if versions else None
        case ["api", version]:
            return _resources(registry, "", version)
        case ["apis", group, version]:
            return _resources(registry, group, version)
    return None


def _versions(registry: Registry) -> dict[str, list[str]]:
    versions: dict[str, list[str]] = {}
    for resource in registry:
        of_group = versions.setdefault(resource.group, [])
        if resource.version not in of_group:
            of_group.append(resource.version)
    return versions


def _group(name: str, versions: list[str]) -> dict[str, Any]:
    described = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": described, "preferredVersion": described[0]}


def _resources(registry: Registry, group: str, version: str) -> dict[str, Any] | None:
    served = [item for item in registry if (item.group, item.version) == (group, version)]
    if not served:
        return None
    described = [entry for resource in served for entry in _describe(resource)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": served[0].api_version,
        "resources": described,
    }


def _describe(resource: Resource) -> list[dict[str, Any]]:
    main: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.singular or resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        main["shortNames"] = list(resource.short_names)
    if resource.categories:
        main["categories"] = list(resource.categories)
    if not resource.has_status:
        return [main]
    status = {
        "name": f"{resource.plural}/status",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _STATUS_VERBS,
    }
    return [main, status]
