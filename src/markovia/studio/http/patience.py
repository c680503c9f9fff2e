"""Clients that connect and say nothing, or a letter a minute, are let go."""

import asyncio
from typing import Any

PROTOCOL = "markovia.studio.http.patience:PatientProtocol"
"""Where uvicorn finds the protocol: several workers are told the name, because a class made in a function cannot travel."""
PATIENCE = 15.0
"""Seconds that a new connection has for the head of its first request."""


def __getattr__(name: str) -> Any:
    if name != "PatientProtocol":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    class PatientProtocol(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
        """Uvicorn's protocol, which ends a connection whose first request does not arrive."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            asyncio.get_running_loop().call_later(PATIENCE, self._lose_patience)

        def _lose_patience(self) -> None:
            if self.cycle is None and not self.transport.is_closing():
                self.transport.close()

    return PatientProtocol
