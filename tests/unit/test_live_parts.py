"""Live parts of a page: what of it is sent again, and what is not even rendered."""

import pytest
from django.template import Context, Template, TemplateSyntaxError

from monitoring.live.fragments import Fragments
from tests.services.cases import cases


def rendered(text: str, **context: object) -> str:
    """The page as it is loaded."""
    return Template("{% load live %}" + text).render(Context(context))


def sent(text: str, **context: object) -> str:
    """What an open page is sent."""
    fragments = Fragments()
    rendered(text, fragments=fragments, **context)
    return fragments.html


def part(target: str, text: str, swap: str = "outerMorph") -> str:
    return f'<hx-partial hx-target="#{target}" hx-swap="{swap}">{text}</hx-partial>'


def test_a_page_is_rendered_as_if_the_tags_were_not_there() -> None:
    text = 'a{% live "one" swap="innerHTML" when=no %}b{% endlive %}{% still %}c{% endstill %}'

    assert rendered(text, no=False) == "abc"


def test_of_an_open_page_only_live_parts_are_sent_in_their_order() -> None:
    text = 'a{% live "one" %}b{% endlive %}c{% live "two" swap="innerMorph" %}d{% endlive %}e'

    assert sent(text) == part("one", "b") + part("two", "d", "innerMorph")


def test_conditions_and_loops_around_a_part_hold_for_what_is_sent() -> None:
    text = (
        "{% for name in names %}{% if name != 'b' %}"
        "{% live name %}{{ name }}{% endlive %}{% endif %}{% endfor %}"
    )

    assert sent(text, names="abc") == part("a", "a") + part("c", "c")


def test_a_part_within_a_part_is_its_content() -> None:
    text = '{% live "one" when=due %}a{% live "two" %}b{% endlive %}{% endlive %}'

    assert sent(text, due=True) == part("one", "ab")
    assert sent(text, due=False) == part("two", "b")


def test_what_stays_is_rendered_only_with_a_part_around_it() -> None:
    text = '{% live "one" when=due %}{% still %}{{ costly }}{% endstill %}{% endlive %}'
    calls = []

    def costly() -> str:
        calls.append("rendered")
        return "a"

    assert sent(text, due=False, costly=costly) == ""
    assert calls == []
    assert sent(text, due=True, costly=costly) == part("one", "a")


def test_a_target_cannot_leave_its_attribute_and_contents_are_escaped_once() -> None:
    text = "{% live name %}{{ content }}{% endlive %}"

    escaped = part("&quot;&gt;&lt;b&gt;", "&lt;i&gt;")
    assert sent(text, name='"><b>', content="<i>") == escaped


def test_after_an_error_in_a_part_nothing_is_taken_for_its_content() -> None:
    fragments = Fragments()

    text = '{% live "one" %}{{ fails }}{% endlive %}'
    with pytest.raises(ZeroDivisionError):
        rendered(text, fragments=fragments, fails=lambda: 1 // 0)

    assert (bool(fragments.kept), fragments.html) == (False, "")


@cases("tag", "live", 'live "one" often=True', 'live "one" "two"', 'live "one" when')
def test_a_tag_that_is_written_wrongly_is_refused(tag: str) -> None:
    with pytest.raises(TemplateSyntaxError, match="live"):
        rendered("{% " + tag + " %}{% endlive %}")
