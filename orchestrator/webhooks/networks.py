"""The networks that a source may send from. Without any it may send from anywhere: its signature identifies it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

from django.http import HttpRequest

from orchestrator.configuration.webhook_settings import Network
from orchestrator.webhooks.not_accepted import NotAccepted


def check_network(networks: Sequence[Network], request: HttpRequest) -> None:
    """Check that a request comes from one of a source's networks, if it has any.

    The address is that of the peer. The web server puts the address that a trusted proxy names in its place, and
    ignores the headers of anybody else.

    Raises:
        NotAccepted: 403.
    """
    if not networks:
        return
    address = request.META.get("REMOTE_ADDR", "")
    peer: Any = None
    with suppress(ValueError):  # a unix socket has none
        peer = ip_address(address)
    peer = getattr(peer, "ipv4_mapped", None) or peer
    if peer is None or not any(peer in network for network in networks):
        who = address or "an unknown address"
        detail = f"this source does not send from {who}"
        raise NotAccepted(403, "forbidden_address", detail)
