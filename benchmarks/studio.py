"""How fast the studio's server answers: clicks on alarm and munin, its start, and many clients at once.

Run: python benchmarks/studio.py [--networks FOLDER] [--clients 50] [--seconds 60]

FOLDER has `alarm.bif.gz` and `munin.bif.gz` (the Bayesian network repository); bundled models are used without it. A click
is one finding more or less and all posteriors back, as the page asks: a round trip on the loopback interface, without the
browser's drawing. The exit code is 1 where a client saw an error.
"""

import argparse
import json
import os
import random
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from http_load import Server, load, markovia_command

CLICKS = 120


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    home = os.environ.get("MARKOVIA_BENCHMARKS")
    parser.add_argument("--networks", type=Path, default=None if home is None else Path(home) / "bif")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    folder = str(given.networks or ".")
    with tempfile.TemporaryDirectory() as state:
        server = Server(markovia_command("studio", folder, "--no-browser", "--state", state))
        try:
            return measured(server, given)
        finally:
            server.end()


def measured(server: Server, given: argparse.Namespace) -> int:
    start = perf_counter()
    server.ask("GET", "/")
    print(
        f"start: address after {server.seconds_to_address:.2f} s, page {perf_counter() - start:.2f} s later"
    )
    files = ("alarm.bif.gz", "munin.bif.gz") if given.networks else ()
    for way in [*({"file": f} for f in files), {"example": "asia"}]:
        start = perf_counter()
        view = server.ask("POST", "/api/models", way)
        print(
            f"{view['name']}: {len(view['nodes']):,} nodes, opened and laid out in {perf_counter() - start:.2f} s"
        )
        times = clicks(server, view)
        print(
            f"  click: median {1e3 * times[len(times) // 2]:.1f} ms, p95 {1e3 * times[int(len(times) * 0.95)]:.1f} ms"
        )
    before = server.memory()
    names = [n for n in view["nodes"] if n["states"]]

    def request(k: int) -> tuple[str, str, bytes]:
        node = names[k % len(names)]
        body = {"given": {node["name"]: {"state": node["states"][k % len(node["states"])]}}}
        return "POST", f"/api/models/{view['id']}/marginals", json.dumps(body).encode()

    found = load(server, request, clients=given.clients, seconds=given.seconds)
    print(
        f"{given.clients} clients, {given.seconds:g} s on {view['name']}: {found['a_second']:,.0f} requests a second, "
        f"median {found['p50']:.1f} ms, p95 {found['p95']:.1f} ms, p99 {found['p99']:.1f} ms, {found['errors']} errors "
        f"{found['first_error']}; memory {before:.0f} MB before, {server.memory():.0f} MB after"
    )
    return int(found["errors"] > 0)


def clicks(server: Server, view: dict[str, Any]) -> list[float]:
    """Observe and retract states one by one, as a user would; return the sorted seconds of possible findings."""
    rng = random.Random(0)
    nodes = [n for n in view["nodes"] if n["states"]]
    findings: dict[str, Any] = {}
    times = []
    verb = f"/api/models/{view['id']}/marginals"
    beliefs = server.ask("POST", verb, {})["marginals"]
    while len(times) < CLICKS:
        node = rng.choice(nodes)
        if node["name"] in findings or len(findings) > 5:
            findings.pop(next(iter(findings)))
        else:  # a state that can be
            p = beliefs[node["name"]]["p"]
            findings[node["name"]] = {"state": node["states"][p.index(max(p))]}
        start = perf_counter()
        beliefs = server.ask("POST", verb, {"given": findings})["marginals"]
        times.append(perf_counter() - start)
    return sorted(times)


if __name__ == "__main__":
    sys.exit(main())
