"""What all tests of figures do when they are done."""

from collections.abc import Iterator

import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")
