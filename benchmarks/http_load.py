"""Load on a local HTTP server: clients that keep their connection and ask one request after another.

A client is a thread with `http.client`; what it measures is a request's whole round trip on the loopback interface.
"""

import http.client
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from time import perf_counter
from typing import Any

Request = Callable[[int], tuple[str, str, bytes | None]]
"""From the number of a request to its method, path and body."""


class Server:
    """A server in a process of its own, which prints its address; `token` is that of the address, if it has one."""

    def __init__(self, command: list[str]) -> None:
        start = perf_counter()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://([\w.]+):(\d+)(?:/\?token=(\S+))?", line)
        if found is None:
            raise SystemExit(f"the server said {line!r}")
        self.host, self.port, self.token = found[1], int(found[2]), found[3]
        self.seconds_to_address = perf_counter() - start
        self.headers = {"content-type": "application/json"}
        if self.token:
            self.headers["authorization"] = f"Bearer {self.token}"

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=120)
        connection.request(method, path, None if body is None else json.dumps(body), self.headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        if answer.status != 200:
            raise SystemExit(f"{method} {path}: {answer.status} {data[:300]!r}")
        return json.loads(data) if data[:1] in (b"{", b"[") else data.decode()

    def memory(self) -> float:
        """Return the resident megabytes of the server's process."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(30)


def load(server: Server, request: Request, *, clients: int, seconds: float) -> dict[str, Any]:
    """Let clients ask for some seconds; return requests a second, percentiles in milliseconds, and errors."""
    times: list[float] = []
    errors: list[str] = []
    lock = threading.Lock()
    end = perf_counter() + seconds

    def client(number: int) -> None:
        own, wrong = [], []
        connection = http.client.HTTPConnection(server.host, server.port, timeout=120)
        k = number * 1_000_003
        while perf_counter() < end:
            k += 1
            method, path, body = request(k)
            start = perf_counter()
            try:
                connection.request(method, path, body, server.headers)
                answer = connection.getresponse()
                data = answer.read()
                if answer.status != 200:
                    wrong.append(f"{answer.status} {data[:120]!r}")
            except (OSError, http.client.HTTPException) as error:
                wrong.append(repr(error))
                connection.close()
            own.append(perf_counter() - start)
        connection.close()
        with lock:
            times.extend(own)
            errors.extend(wrong)

    threads = [threading.Thread(target=client, args=(n,)) for n in range(clients)]
    start = perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent = perf_counter() - start
    ranked = sorted(times) or [float("nan")]
    return {
        "requests": len(times),
        "a_second": len(times) / spent,
        **{f"p{q}": 1e3 * ranked[min(len(ranked) - 1, int(len(ranked) * q / 100))] for q in (50, 95, 99)},
        "errors": len(errors),
        "first_error": errors[0] if errors else "",
    }


def markovia_command(*words: str) -> list[str]:
    return [sys.executable, "-m", "markovia", *words]
