"""The support inquiry as a workflow: what the steps do is in `reading`, `triage` and `desk`."""

from dataclasses import dataclass, field
from datetime import timedelta

from examples.readers import Unreadable
from examples.support_inquiry import desk
from examples.support_inquiry.findings import (
    AgentDecision,
    CustomerReplied,
    Medium,
    Priority,
)
from examples.support_inquiry.reading import (
    classify,
    describe_image,
    extract_document,
    judge_speech,
    note_unreadable,
    read_text,
    transcribe_audio,
)
from examples.support_inquiry.triage import merge, prioritize
from orchestrator.definition import (
    Workflow,
    ask,
    catch,
    fork,
    join,
    route,
    start,
    step,
    then,
    undo,
    wait,
)

classified = step(classify, gives="classification", retries=0)
text = step(read_text, gives="tone", timeout=30)
image = step(describe_image, gives="picture", timeout=60)
audio = step(transcribe_audio, gives="speech", timeout=120, concurrency=2)
voice = step(judge_speech, gives="voice", timeout=30)
document = step(extract_document, gives="document", timeout=60, heartbeat=20)
image_unreadable = step(note_unreadable, "image_unreadable")
audio_unreadable = step(note_unreadable, "audio_unreadable")
document_unreadable = step(note_unreadable, "document_unreadable")
merged = step(merge, "merge", gives="merged")
prioritized = step(prioritize, gives="triage")

reply = step(desk.reply, transactional=True)
assign = step(desk.assign, gives="agent", transactional=True)
answer = step(desk.answer, transactional=True)
refund = step(desk.refund, transactional=True)
ask_customer = step(desk.ask_customer, transactional=True)
escalate = step(desk.escalate, transactional=True)
close = step(desk.close, transactional=True)

agent_decides = ask(
    "agent_decides", AgentDecision, deadline=timedelta(hours=8), late=escalate
)
customer_replied = wait(
    CustomerReplied, "customer_replied", deadline=desk.PATIENCE, late=close
)


class SupportInquiry(Workflow):
    """Reads an inquiry in every medium it uses, then replies, assigns or escalates."""

    correlation = "ticket"

    @dataclass(frozen=True)
    class Input:
        ticket: str
        customer: str
        text: str = ""
        attachments: list[str] = field(default_factory=list)

    @staticmethod
    def summary(input: Input) -> str:
        """Like "Mia Sato: My order is late (late-order.flac)"."""
        files = f"({', '.join(input.attachments)})" if input.attachments else ""
        return f"{input.customer}: {' '.join(filter(None, [input.text[:100], files]))}"

    flow = (
        start(classified),
        fork(
            classified,
            on="media",
            into={
                Medium.TEXT: text,
                Medium.IMAGE: image,
                Medium.AUDIO: audio,
                Medium.DOCUMENT: document,
            },
        ),
        then(audio, voice),
        catch(image, error=Unreadable, to=image_unreadable),
        catch(audio, error=Unreadable, to=audio_unreadable),
        catch(document, error=Unreadable, to=document_unreadable),
        join(
            text,
            image,
            image_unreadable,
            voice,
            audio_unreadable,
            document,
            document_unreadable,
            into=merged,
        ),
        then(merged, prioritized),
        route(
            prioritized,
            on="priority",
            to={
                Priority.LOW: reply,
                Priority.NORMAL: assign,
                Priority.URGENT: escalate,
            },
        ),
        then(assign, agent_decides),
        undo(assign, by=desk.release),
        route(
            agent_decides,
            on="",
            to={
                AgentDecision.ANSWER: answer,
                AgentDecision.REFUND: refund,
                AgentDecision.ASK_CUSTOMER: ask_customer,
                AgentDecision.ESCALATE: escalate,
            },
        ),
        then(ask_customer, customer_replied, answer),
    )
