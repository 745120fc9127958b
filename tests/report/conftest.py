"""One Chromium for all tests of the explorer."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def explorer_page() -> Iterator[Any]:
    from browsers import chromium
    from explorer_page import Page

    with chromium(logs=("browser", "performance")) as browser:
        yield Page(browser)


@pytest.fixture
def page(explorer_page: Any) -> Any:
    """The explorer in Chromium; the module of a test may have another browser."""
    return explorer_page
