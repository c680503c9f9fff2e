"""Clients that connect and say nothing, or a letter a minute, are let go."""

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

PATIENCE = 15.0
"""Seconds that a new connection has for the head of its first request."""


class PatientProtocol(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """uvicorn's protocol, which ends a connection whose first request does not arrive."""

    def connection_made(self, transport: Any) -> None:
        """Begin a connection, and the wait for its request."""
        super().connection_made(transport)
        asyncio.get_running_loop().call_later(PATIENCE, self._lose_patience)

    def _lose_patience(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()
