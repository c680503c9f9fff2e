"""The README tells the truth: its Python examples run and print what it says."""

import doctest
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.skipif(not README.exists(), reason="an installed package has no README")
def test_the_examples_in_the_readme_print_what_it_says():
    result = doctest.testfile(
        str(README), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    assert result.attempted > 10
    assert result.failed == 0
