"""Where a source may send from. Without a list it may from anywhere: the signature says who it is."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address

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
    try:
        peer = ip_address(address)
    except ValueError:  # a unix socket has none
        raise _elsewhere(address) from None
    if isinstance(peer, IPv6Address) and peer.ipv4_mapped:
        peer = peer.ipv4_mapped
    if not any(peer in network for network in networks):
        raise _elsewhere(address)


def _elsewhere(address: str) -> NotAccepted:
    detail = f"{address or 'an unknown address'} is none that this source sends from"
    return NotAccepted(403, "forbidden_address", detail)
