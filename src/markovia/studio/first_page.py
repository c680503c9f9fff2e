"""What the first page asks: whether the server lives, and what there is to open. Answered before the library is loaded."""

from markovia import __version__
from markovia.models.gallery.bundled import BUNDLED
from markovia.runtime import ports
from markovia.studio.documents import messages
from markovia.studio.documents.document import dashed
from markovia.studio.documents.endpoints import Call, endpoint

PATIENCE = 60.0
"""Seconds to wait for the model that the server was started with."""


def health(call: Call[None]) -> messages.Health:
    """Say that the server lives."""
    return messages.Health("ok", __version__)


def start(call: Call[None]) -> messages.Start:
    """Say what there is to open."""
    formats = [
        messages.FormatName(suffix, f.name, f.title)
        for f in ports.call("formats").values()
        for suffix in f.suffixes
    ]
    work = call.workspace
    work.ready.wait(PATIENCE)
    return messages.Start(
        version=__version__,
        examples=[
            messages.Example(name, name.replace("-", " ").capitalize(), nodes, dashed(kind))
            for name, (kind, nodes) in BUNDLED.items()
        ],
        formats=messages.Formats(formats, formats),
        folder=work.files(),
        recent=work.recent(),
        recovered=[messages.Recovered(**r) for r in work.recovered()],
        open=[d.id for d in work.documents],
    )


ENDPOINTS = [
    endpoint("GET", "/api/health", health),
    endpoint("GET", "/api/start", start),
]
