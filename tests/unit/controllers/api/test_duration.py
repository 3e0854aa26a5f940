import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_controllers.api.duration import duration_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("1h30m", 5400), ("2h0m5s", 7205), ("00030m", 1800)],
)
def test_units_add_up(text: str, seconds: int) -> None:
    assert duration_s(text) == seconds


@given(st.integers(0, 9), st.integers(0, 59), st.integers(0, 59))
def test_every_time_of_day_is_read_back(hours: int, minutes: int, seconds: int) -> None:
    assert duration_s(f"{hours}h{minutes}m{seconds}s") == hours * 3600 + minutes * 60 + seconds


@pytest.mark.parametrize("text", ["", "m", "1.5h", "500ms", "-30m", "30 m", "30m\n", "٣m", "1d"])
def test_other_notations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="needs a unit"):
        duration_s(text)


def test_a_bare_number_is_answered_with_minutes() -> None:
    with pytest.raises(ValueError, match='write "45m"'):
        duration_s("45")
