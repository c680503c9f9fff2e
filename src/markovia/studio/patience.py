"""Clients that connect and say nothing, or a letter a minute, are let go."""

import asyncio
from typing import Any

PATIENCE = 15.0
"""Seconds that a new connection has for the head of its first request."""


def patient_protocol() -> Any:
    """Return uvicorn's protocol, which now ends a connection whose first request does not arrive."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    class PatientProtocol(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            asyncio.get_running_loop().call_later(PATIENCE, self._lose_patience)

        def _lose_patience(self) -> None:
            if self.cycle is None and not self.transport.is_closing():
                self.transport.close()

    return PatientProtocol
