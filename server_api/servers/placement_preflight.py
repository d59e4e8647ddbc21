"""Asking Placement whether a host can take a server that is pinned to it (contract 6.6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from server_api.servers.cloud_model import Flavor
from server_api.servers.outcomes import Outcome, Stop
from server_api.servers.ports import Placement
from server_api.servers.surroundings import PlacementPreflight

_RESOURCES, _TRAIT, _CUSTOM = "resources:", "trait:", "CUSTOM_"
_SIGNS = {"required": "", "forbidden": "!"}


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a host must have: one of a resource class, and traits (``!NAME``: not that one)."""

    resource_class: str
    traits: tuple[str, ...]


def require_host(placement: Placement, flavor: Flavor | None, preflight: PlacementPreflight, host: str) -> None:
    """Return when Placement offers the host for the flavor.

    ``flavor`` None: the region does not offer it any more. ``host`` is a resource provider's name or ID. Raises Stop: a
    yield when the host is not offered at present, an error when the flavor does not say what to ask for.
    """
    if flavor is None:
        raise Stop(Outcome.ERROR, "the region does not offer the flavor any more, so Placement cannot be asked")
    requirement = requirement_of(flavor, preflight)
    wanted = host.strip()
    offered = placement.providers(requirement.resource_class, requirement.traits)
    if not any(wanted in (provider.id, provider.name) for provider in offered):
        raise Stop(Outcome.YIELD, f"waiting for Placement to offer the host {wanted}")


def requirement_of(flavor: Flavor, preflight: PlacementPreflight) -> Requirement:
    """Return what a pinned server of the flavor needs. Raises Stop when the flavor does not say so clearly."""
    specs = flavor.extra_specs
    traits = (*sorted(_flavor_traits(specs)), *(trait.strip().upper() for trait in preflight.required_traits))
    return Requirement(_resource_class(specs), tuple(dict.fromkeys(trait for trait in traits if trait)))


def _resource_class(specs: Mapping[str, str]) -> str:
    classes = set()
    for key, value in specs.items():
        if not key.lower().startswith(_RESOURCES):
            continue
        name = key[len(_RESOURCES) :].strip().upper()
        try:
            amount = float(value)
        except ValueError:
            raise _inconsistent(f"the amount of {key} is not a number") from None
        if amount > 0 and name.startswith(_CUSTOM):
            classes.add(name)
    if len(classes) != 1:
        raise _inconsistent(f"exactly one custom resource class is needed, and it names {len(classes)}")
    return classes.pop()


def _flavor_traits(specs: Mapping[str, str]) -> list[str]:
    traits = []
    for key, value in specs.items():
        if not key.startswith(_TRAIT):
            continue
        name = key[len(_TRAIT) :].strip().upper()
        sign = _SIGNS.get(value)
        if sign is None or not name:
            raise _inconsistent(f"{key} is neither required nor forbidden")
        traits.append(sign + name)
    return traits


def _inconsistent(reason: str) -> Stop:
    return Stop(Outcome.ERROR, f"the flavor does not say what Placement is to be asked for: {reason}")
