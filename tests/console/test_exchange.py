"""The simulated exchange as a process of its own, alone and end to end: request out, signed call back."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest
from django.db.models import F

from examples.order_listing.messages import Destination
from examples.order_listing.models import HistoryEntry, Order
from examples.order_listing.orders import place_order
from examples.order_listing.promise import disagreements
from orchestrator.engine import operations
from orchestrator.models import (
    CommandStatus,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepRun,
)
from orchestrator.serving import port
from tests.services.asking import asked
from tests.services.cases import cases
from tests.services.exchange import ExchangeProcess, post_json
from tests.services.patience import bar, wait_for
from tests.services.workers import Workers

WHAT = "50 MWh base load, Tokyo area"
ORDER = {"request_id": "r-1", "order_id": "O-1", "description": WHAT}
REQUESTS = IssuedCommand.objects.filter(type="RequestExternalCreation")


class Client(HTTPServer):
    """A webhook that takes down the ids and bodies it gets; it answers 503 to the first few."""

    def __init__(self, number: int, failures: int = 0) -> None:
        super().__init__(("127.0.0.1", number), Taker)
        self.failures = failures
        self.taken: list[tuple[str, dict[str, object]]] = []
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def end(self) -> None:
        self.shutdown()
        self.server_close()


class Taker(BaseHTTPRequestHandler):
    server: Client

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.taken.append((self.headers["webhook-id"], body))
        refused = len(self.server.taken) <= self.server.failures
        self.send_response(503 if refused else 202)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def taker() -> Iterator[Client]:
    client = Client(0)
    yield client
    client.end()


@pytest.fixture(scope="module")
def running(taker: Client) -> Iterator[ExchangeProcess]:
    exchange = ExchangeProcess(
        f"http://127.0.0.1:{taker.server_port}/hook", shortest=0, longest=0.05
    )
    exchange.start()
    yield exchange
    exchange.stop()


@pytest.fixture
def client(taker: Client) -> Client:
    """Return a client that has taken nothing yet."""
    taker.taken, taker.failures = [], 0
    return taker


@pytest.fixture
def lone_exchange(running: ExchangeProcess, client: Client) -> ExchangeProcess:
    """Return an exchange that behaves."""
    running.behave(twice=0, lose=0)
    return running


def order(exchange: ExchangeProcess, key: str | None = None) -> dict[str, object]:
    key = key or uuid4().hex
    return post_json(f"{exchange.url}/orders", ORDER, **{"Idempotency-Key": key})


def told(client: Client, number: int) -> list[tuple[str, dict[str, object]]]:
    """The messages that the client has taken, once there are so many."""
    wait_for(lambda: len(client.taken) == number, 10)
    return client.taken


# Alone


@pytest.mark.once
def test_an_order_is_taken_at_once_and_announced_with_its_request_id(
    lone_exchange: ExchangeProcess, client: Client
) -> None:
    answer = order(lone_exchange)

    [(_, message)] = told(client, 1)
    assert answer["request_id"] == "r-1"
    facts = {"order_id": "O-1", "external_id": answer["external_id"]}
    assert message == {
        "type": "ExternalOrderCreated",
        "process_id": "r-1",
        "data": {**facts, "description": WHAT},
    }


@pytest.mark.once
def test_the_same_idempotency_key_never_makes_a_second_order(
    lone_exchange: ExchangeProcess, client: Client
) -> None:
    first, again, other = (order(lone_exchange, key) for key in ("k-1", "k-1", "k-2"))

    told(client, 2)
    assert first == again
    assert first["external_id"] != other["external_id"]


@pytest.mark.once
@pytest.mark.parametrize("twice", [True, False])
def test_a_message_said_twice_or_sent_until_it_is_taken_keeps_its_id(
    twice: bool, lone_exchange: ExchangeProcess, client: Client
) -> None:
    lone_exchange.behave(twice=twice)
    client.failures = 0 if twice else 2

    order(lone_exchange)

    first, *again = told(client, 2 if twice else 3)
    assert all(one == first for one in again)


@pytest.mark.once
def test_a_client_that_is_away_gets_its_messages_later() -> None:
    number = port.free_port()
    exchange = ExchangeProcess(f"http://127.0.0.1:{number}/hook", shortest=0, longest=0)
    exchange.start()
    order(exchange)

    client = Client(number)

    told(client, 1)
    client.end()
    exchange.stop()


@pytest.mark.once
def test_a_lost_answer_is_an_order_all_the_same(
    lone_exchange: ExchangeProcess, client: Client
) -> None:
    lone_exchange.behave(lose=True)

    with pytest.raises(HTTPError, match="503"):
        order(lone_exchange, "lost")

    told(client, 1)
    assert order(lone_exchange, "lost")["request_id"] == "r-1"


@pytest.mark.once
@cases(
    "path, body, sent, status",
    ("/orders", ORDER, {}, 400),
    ("/orders", {"request_id": "r-1"}, {"Idempotency-Key": "k"}, 422),
    ("/orders", ["r-1"], {"Idempotency-Key": "k"}, 422),
    ("/behaviour", {"fale": 1}, {}, 422),
    ("/behaviour", {"fail": 2}, {}, 422),
    ("/behaviour", {"shortest": 5, "longest": 1}, {}, 422),
    ("/behaviour", None, {}, 422),
    ("/elsewhere", {}, {}, 404),
    ("/orders", {"x": "y" * 70_000}, {"Idempotency-Key": "k"}, 413),
)
def test_a_request_of_another_form_is_refused(
    lone_exchange: ExchangeProcess,
    path: str,
    body: object,
    sent: dict[str, str],
    status: int,
) -> None:
    with pytest.raises(HTTPError, match=str(status)):
        post_json(lone_exchange.url + path, body, **sent)


@pytest.mark.once
def test_what_is_not_json_is_refused(lone_exchange: ExchangeProcess) -> None:
    request = Request(f"{lone_exchange.url}/orders", b"{", {"Idempotency-Key": "k"})  # noqa: S310

    with pytest.raises(HTTPError, match="400"):
        urlopen(request, timeout=60)  # noqa: S310


@pytest.mark.once
def test_it_stops_at_once_whatever_it_still_has_to_say() -> None:
    exchange = ExchangeProcess("http://127.0.0.1:9/hook", shortest=0, longest=0)
    exchange.start()
    exchange.behave(longest=600, shortest=600, born=5)
    order(exchange)
    began = time.monotonic()

    assert exchange.stop() == 0
    assert time.monotonic() - began < bar(5)  # it still had things to say for 600 s


@pytest.mark.once
def test_a_missing_key_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROCESSION_WEBHOOK_SECRET_EXCHANGE")
    exchange = ExchangeProcess("http://127.0.0.1:1/hook")

    exchange.program.start()
    wait_for(lambda: not exchange.program.alive, 10)

    assert exchange.stop() == 1
    said = exchange.program.log.read_text().splitlines()[-1]
    assert said.startswith("The signing key is missing")


# End to end


def completed(count: int, *, retrying: bool = False) -> None:
    """Wait until so many have completed; if wished, retry those whose request the exchange has failed five times."""
    ended = ProcessInstance.objects.filter(status=Status.COMPLETED)
    rows = ProcessInstance.objects.values_list("step", "status")

    def all_ended() -> bool:
        failed = ProcessInstance.objects.filter(status=Status.FAILED)
        for process in failed if retrying else ():
            assert "the exchange" in process.incidents.latest("opened_at").message
            operations.retry(process.pk, request=asked())
        return ended.count() == count

    wait_for(all_ended, 45, lambda: list(rows))


def entered(
    destination: Destination,
) -> Callable[[], tuple[Order, ProcessInstance, IssuedCommand]]:
    """Enter an order; what reads it, its process and its request to the exchange anew."""
    pk = place_order(destination, WHAT).pk

    def read() -> tuple[Order, ProcessInstance, IssuedCommand]:
        order = Order.objects.get(pk=pk)
        process = ProcessInstance.objects.get(pk=order.process_id)
        return order, process, REQUESTS.get(instance=process)

    return read


@pytest.mark.django_db(transaction=True)
def test_an_order_goes_out_comes_back_and_ends_as_the_exchange_has_it(
    exchange: ExchangeProcess, workers: Workers
) -> None:
    read = entered(Destination.BOTH)
    completed(1)
    # The call back may be handled before the answer to the request is stored.
    wait_for(lambda: not REQUESTS.filter(status=CommandStatus.RUNNING).exists(), 20)
    final, _, request = read()
    steps = StepRun.objects.order_by("id").values_list("node", flat=True)
    assert " ".join(steps) == (
        "NotStarted AwaitingExternalCreation AwaitingExternalListing"
        " AwaitingInternalListing Completed"
    )
    told = (request.status, request.answer, request.attempt)
    assert told == (CommandStatus.DONE, "HTTP 202", 1)
    assert final.external_id.startswith("EX-")
    assert final.external_listed_at
    assert final.internal_listed_at
    assert final.notice == "Listed: both markets"
    assert HistoryEntry.objects.get().text == f"Entered: {WHAT}"

    # One that is rejected completes with the reason.
    exchange.behave(reject=True)
    read = entered(Destination.EXTERNAL)
    completed(2)
    final, process, _ = read()
    assert (final.notice, final.external_listed_at) == ("Refused by the exchange", None)
    assert process.data["reason"] == final.reason != ""

    # A call that fails is tried again under the same key.
    exchange.behave(reject=False, fail=True)
    read = entered(Destination.EXTERNAL)
    wait_for(lambda: REQUESTS.filter(attempt__gte=2).exists(), 15)
    exchange.behave(fail=False)
    completed(3)
    assert read()[2].status == CommandStatus.DONE

    # One that is refused is not tried again, and needs a person.
    exchange.behave(refuse=True)
    read = entered(Destination.EXTERNAL)
    wait_for(lambda: ProcessInstance.objects.filter(status=Status.FAILED).exists(), 15)
    _, process, request = read()
    assert (request.status, request.attempt) == (CommandStatus.FAILED, 1)
    assert "HTTP 403" in Incident.objects.get().message
    assert process.step == "AwaitingExternalCreation"

    # One that is born on the exchange is taken over.
    orders, events = Order.objects.count(), InboxEvent.objects.count()
    exchange.behave(refuse=False, born=20)
    wait_for(lambda: InboxEvent.objects.count() > events, 10)
    exchange.behave(born=0)
    live = ProcessInstance.objects.live().exclude(status=Status.FAILED)
    wait_for(lambda: Order.objects.count() > orders and not live.exists(), 45)
    born = Order.objects.filter(order_id=F("external_id")).first()
    assert born is not None
    process = ProcessInstance.objects.get(pk=born.process_id)
    assert born.destination == process.data["destination"] == Destination.EXTERNAL
    assert disagreements() == []


@pytest.mark.django_db(transaction=True)
def test_with_every_trouble_at_once_each_order_ends_once(
    exchange: ExchangeProcess, workers: Workers
) -> None:
    exchange.behave(fail=0.2, lose=0.3, early=0.3, twice=0.5, late=0.3, reject=0.2)
    for destination in (*Destination,) * 5:
        place_order(destination, WHAT)

    completed(15, retrying=True)

    announced = InboxEvent.objects.filter(source="exchange", verdict="moved").count()
    assert announced == 10  # of all but the internal ones
    assert disagreements() == []
    assert not Incident.objects.open().exists()
