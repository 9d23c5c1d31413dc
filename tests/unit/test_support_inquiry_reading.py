"""What the readers find in the sample media: the words, lines and pages that were put there."""

import json
from io import StringIO
from pathlib import Path

import pytest

import bootstrap
from examples import readers
from examples.readers import Unreadable, light
from examples.support_inquiry import attachments, reading
from examples.support_inquiry.findings import Classification, Medium
from orchestrator import Permanent
from orchestrator.management.commands import up
from orchestrator.serving import programs
from tests.readers import Bystander, with_extra
from tests.services.cases import cases
from tests.services.python import printed
from tests.services.sizes import size

MEDIA, BROKEN = attachments.MEDIA, "the machine is broken"


@with_extra("pictures")
@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("overdue-invoice.png", ["Invoice 4711 overdue"]),
        ("machine-display.png", ["Error 17", "Motor stopped"]),
    ][: size(1, full=2)],
)
def test_the_text_in_a_picture_is_read(name: str, lines: list[str]) -> None:
    found = reading.describe_image(Classification([Medium.IMAGE], image=name))

    assert found.lines == lines
    assert found.certainty > 0.9
    assert found.reader.startswith("RapidOCR")


@with_extra("speech")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("late-order.flac", "my order is late and i want my money back"),
        ("urgent-call.flac", f"this is urgent {BROKEN} please call me back"),
        ("thanks.flac", "thank you the delivery was great"),
    ][: size(1, full=3)],
)
def test_the_words_of_a_recording_are_heard(name: str, words: str) -> None:
    context = Bystander()

    recording = Classification([Medium.AUDIO], recording=name)
    heard = reading.transcribe_audio(recording, context)

    assert heard.words == words
    assert heard.reader.startswith("PocketSphinx")
    assert context.told == [(0, 2), (1, 2), (2, 2)]


@with_extra("documents")
def test_a_document_is_read_page_by_page() -> None:
    context = Bystander()

    found = reading.extract_document(document("complaint.pdf"), context)

    one = ["Complaint", "Order 4711 arrived broken.", "The box was open."]
    other = ["I want a refund of 120 euros", "before the end of the month."]
    assert found.lines == one + other
    assert context.told == [(1, 2), (2, 2)]


def test_a_document_is_read_on_from_where_the_last_attempt_was_stopped() -> None:
    context = Bystander(saved=[["the first page, read before"]])

    found = reading.extract_document(document("complaint.pdf"), context)

    assert found.lines[0] == "the first page, read before"
    assert found.lines[1] == "I want a refund of 120 euros"
    assert context.told == [(2, 2)]


def document(name: str) -> Classification:
    return Classification([Medium.DOCUMENT], document=name)


@with_extra("moods")
@pytest.mark.parametrize(
    ("text", "mood"),
    [
        ("Thank you, everything works very well now!", 1),
        ("This is a terrible service and I am angry.", -1),
    ],
)
def test_the_mood_of_an_english_text_is_judged(text: str, mood: int) -> None:
    tone = reading.read_text(text)

    assert tone.language == "English"
    assert tone.mood * mood > 0.3
    assert tone.reader.startswith("VADER")


@cases(
    "text, language",
    ("Die Lieferung ist nicht da und ich warte auf mein Geld.", "German"),
    ("Le colis est arrivé mais il ne marche pas.", "French"),
    ("荷物がまだ届いていません。", "Japanese"),
)
def test_the_mood_of_another_language_is_left_open(text: str, language: str) -> None:
    tone = reading.read_text(text)

    assert (tone.language, tone.mood, tone.reader) == (language, 0.0, "not judged")


@cases(
    "kind, name", ("text_in", "damaged-scan.png"), ("speech_in", "damaged-call.flac")
)
def test_damaged_files_are_unreadable_in_both_ways(kind: str, name: str) -> None:
    for own in (readers, light):
        with pytest.raises(Unreadable, match=name):
            getattr(own, kind)(MEDIA / name)


def test_a_damaged_document_is_unreadable(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.pdf"
    damaged.write_bytes((MEDIA / "complaint.pdf").read_bytes()[:200])

    for pages in (readers.pages_of, light.pages_of):
        with pytest.raises(Unreadable, match=r"damaged\.pdf"):
            pages(damaged)


@with_extra("pictures", "speech", "documents")
def test_the_captions_of_the_light_readers_say_what_the_real_ones_find() -> None:
    for picture in captioned(".png"):
        assert light.text_in(picture).lines == readers.text_in(picture).lines
    for recording in captioned(".flac"):
        real, caption = readers.speech_in(recording), light.speech_in(recording)
        assert (caption.words, caption.seconds) == (real.words, real.seconds)
    for pdf in captioned(".pdf"):
        assert light.pages_of(pdf) == readers.pages_of(pdf)
        for number in range(light.pages_of(pdf)):
            page, light_page = readers.page_of(pdf, number), light.page_of(pdf, number)
            assert light_page.lines == page.lines


def captioned(suffix: str) -> list[Path]:
    found = [path for path in MEDIA.glob(f"*{suffix}") if Path(f"{path}.json").exists()]
    assert found
    return found


def test_the_light_readers_say_that_they_are_light() -> None:
    assert "light" in light.text_in(MEDIA / "overdue-invoice.png").reader
    assert "light" in light.speech_in(MEDIA / "thanks.flac").reader
    assert "light" in light.mood_of("thank you").reader
    assert light.mood_of("this is terrible, thank you").score == 0
    assert json.loads((MEDIA / "thanks.flac.json").read_text())["words"]


@cases("name", "../models.py", "nothing.png", "", "/etc/hostname")
def test_no_name_leads_out_of_the_folder_of_attachments(name: str) -> None:
    with pytest.raises(FileNotFoundError, match="there is no attachment"):
        attachments.attachment(name)


def test_an_inquiry_is_sorted_by_medium() -> None:
    found = reading.classify("Hello", ["a.pdf", "b.flac", "c.png"])

    assert found == Classification(
        [Medium.TEXT, Medium.DOCUMENT, Medium.AUDIO, Medium.IMAGE],
        image="c.png",
        recording="b.flac",
        document="a.pdf",
    )


@cases(
    "text, names, reason",
    (" ", [], "the inquiry is empty"),
    ("Hello", ["run.exe"], "nobody here reads 'run.exe'"),
    ("Hello", ["a.png", "b.png"], "a second image, 'b.png'"),
)
def test_the_unreadable_is_refused(text: str, names: list[str], reason: str) -> None:
    with pytest.raises(Permanent, match=reason):
        reading.classify(text, names)


def test_where_the_extra_is_not_installed_all_readers_are_light() -> None:
    program = """
import sys
for name in ("av", "cv2", "onnxruntime", "pocketsphinx", "pypdf", "rapidocr", "vaderSentiment"):
    sys.modules[name] = None  # importing it now fails
import bootstrap
from examples import readers
print({getattr(readers, name).__module__ for name in readers.READERS})
"""
    assert printed(program).strip() == "{'examples.readers.light'}"


def test_nothing_heavy_is_loaded_before_something_is_read() -> None:
    program = """
import sys
import examples.readers
print([name for name in ("av", "cv2", "numpy", "onnxruntime", "pocketsphinx") if sys.modules.get(name)])
"""
    assert printed(program).strip() == "[]"


def test_the_first_start_and_up_look_for_the_modules_that_the_readers_need() -> None:
    needed = {module for modules in readers.NEEDED.values() for module in modules}
    ours = bootstrap.MEDIA.modules[len(bootstrap.RUNTIME.modules) :]

    assert set(programs.READERS) == set(ours) == needed - {"pocketsphinx"}


@with_extra("pictures", "speech", "moods", "documents", "films")
def test_nothing_is_fetched_when_media_are_read() -> None:
    program = f"""
import socket
from pathlib import Path
def refused(*arguments): raise AssertionError("the network is used")
socket.socket.connect = socket.getaddrinfo = refused
from examples import readers
media = Path({str(MEDIA)!r})
films = media.parents[1] / "video_analysis" / "media"
readers.text_in(media / "overdue-invoice.png")
readers.speech_in(media / "thanks.flac")
readers.mood_of("thank you")
readers.page_of(media / "address.pdf", 0)
print(readers.look_at(films / "team.webm", 2.0).faces)
"""
    assert printed(program) == "2\n"


@pytest.mark.parametrize("lacking", [True, False])
def test_the_demonstration_says_in_one_line_that_its_readers_are_light(
    lacking: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up, "lacks_media_readers", lambda: lacking)
    said = StringIO()

    ours = programs.Programs(tmp_path, MEDIA)
    children = up.Command(stdout=said).demo(ours, "http://site")

    names = ["exchange", "demo orders", "demo inquiries", "demo films"]
    assert [child.name for child in children] == names
    lines = said.getvalue().splitlines()
    assert len(lines) == lacking
    assert all("python3 manage.py install media" in line for line in lines)
