"""Where a source may send from. Without a list it may from anywhere: the signature says who it is."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

from django.http import HttpRequest

from orchestrator.webhook_settings import Network
from orchestrator.webhooks.not_accepted import NotAccepted


def check_network(networks: Sequence[Network], request: HttpRequest) -> None:
    """Makes sure that a request comes from one of a source's networks, if it has any.

    The address is that of the peer. A server that was told of trusted proxies has put in its place the one that such a
    proxy names; what anybody else says in a header counts for nothing.

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
        detail = f"{who} is none that this source sends from"
        raise NotAccepted(403, "forbidden_address", detail)
