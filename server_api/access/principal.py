"""Who a request comes from."""

from __future__ import annotations

from dataclasses import dataclass

from server_api.access.acl import Acl


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller: subject, account type (``user``, ``service`` or ``system``) and rights."""

    subject: str
    account_type: str
    acl: Acl
