"""What the codec lets through is stored and read alike by every database."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.definition.codec import digest, encode
from orchestrator.models import Definition
from tests.services.cases import cases
from tests.services.doing import fresh
from tests.unit.test_definition_codec import Anything

pytestmark = pytest.mark.django_db

texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.fixture
def row() -> Definition:
    """Return a row with a JSON column."""
    return Definition.objects.create(name="n", version=1, kind="k", graph={})


@settings(
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(value=values)
def test_what_is_stored_comes_back_as_it_was(row: Definition, value: object) -> None:
    stored(row, value)
    assert row.graph == encode(Anything(value))


def stored(row: Definition, value: object) -> None:
    """Store a value, and see that it is read as it was."""
    row.graph = encode(Anything(value))
    row.save()
    expected = digest(row.graph)
    assert digest(fresh(row).graph) == expected


@cases("number", 1e16, 1e23, -1.5e300, 5e-324, 1e-7, 0.1, -0.0, 2**70, 10**4000)
def test_a_number_at_the_edge_comes_back_as_is(row: Definition, number: float) -> None:
    stored(row, number)
