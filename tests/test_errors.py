"""What errors and warnings have in common: the first unknown name is told, and a warning is about the user's own line."""

import warnings

import pytest

import markovia as mk
from markovia.errors import UnknownVariable, check_known


def test_the_first_name_that_is_not_known_is_told_with_the_nearest_one():
    check_known(["a", "b"], {"b": 0, "a": 1})
    with pytest.raises(
        UnknownVariable, match=r"unknown variable 'rian' in the data \(did you mean 'rain'\?\)"
    ) as caught:
        check_known(["rain", "rian", "wet"], ["rain", "snow"], "the data")
    assert caught.value.name == "rian"


@pytest.mark.parametrize("suffix", ["uai", "dagitty"])
def test_a_warning_points_at_the_line_outside_the_package(suffix, tmp_path):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        mk.examples.sprinkler().save(tmp_path / f"model.{suffix}")
    assert [one.filename for one in told] == [__file__]
