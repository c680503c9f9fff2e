"""A studio without a network, for tests: a client of its application, tables, and jobs that are waited for."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
from starlette.testclient import TestClient

from markovia.studio.app import create


class Studio:
    """A client with the few steps that tests repeat."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def ask(self, path: str, body: Any = None, status: int = 200) -> Any:
        """Post, or get where there is no body; the status is as expected."""
        answer = self.client.get(path) if body is None else self.client.post(path, json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    def upload(self, name: str, content: bytes, status: int = 200) -> Any:
        """Upload a table."""
        answer = self.client.post(
            "/api/data",
            params={"name": name},
            content=content,
            headers={"Content-Type": "application/octet-stream"},
        )
        assert answer.status_code == status, answer.text
        return answer.json()

    def table(self, frame: pd.DataFrame, name: str = "rows.csv") -> str:
        """Upload a frame as CSV and return its id."""
        found: str = self.upload(name, frame.to_csv(index=False).encode())["id"]
        return found

    def run(self, body: dict[str, Any], path: str = "/api/jobs") -> Any:
        """Start a job, follow its events to the end, and return it."""
        import json

        job = self.ask(path, body)
        with self.client.stream("GET", f"/api/jobs/{job['id']}/events") as stream:
            told = [
                json.loads(line.removeprefix("data: "))
                for line in stream.iter_lines()
                if line.startswith("data: ")
            ]
        self.told = told
        return told[-1]

    def done(self, body: dict[str, Any], path: str = "/api/jobs") -> Any:
        """Run a job that succeeds, and return its result."""
        job = self.run(body, path)
        assert job["state"] == "done", job["note"]
        return job["result"]


@contextmanager
def studio(state: Path | None = None, folder: Path | None = None) -> Iterator[Studio]:
    """Open a studio."""
    app = create(token="t", state=state, folder=folder)
    with TestClient(app, headers={"Authorization": "Bearer t"}) as client:
        yield Studio(client)
