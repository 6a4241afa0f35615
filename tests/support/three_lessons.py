"""The three lessons of a small team, for tests of hooks."""

from __future__ import annotations

from tests.support.files import lesson_text

HEAP = "our build dies with heap out of memory"
FILES = {
    "devops/ci-cd/node-heap.md": lesson_text(
        "Node runs out of memory in the CI build",
        "When the build dies with heap out of memory, raise the heap: NODE_OPTIONS.",
    ),
    "devops/docker/layers.md": lesson_text(
        "Docker rebuilds every layer because of one COPY",
        "Install before you copy the sources, so that the layer is cached.",
    ),
    "conventions/dates.md": lesson_text("Dates are UTC", "Store dates in UTC, show local ones."),
}
