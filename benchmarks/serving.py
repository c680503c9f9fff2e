"""Predictions over HTTP: `markovia serve` beside pgmpy behind the same web server.

Run: python benchmarks/serving.py [--model FILE] [--seconds 5] [--clients 8] [--rows 100] [--workers 1]

Both are Starlette on uvicorn in a process of their own, one worker each by default, and get the same rows of the model with
one target left out: single rows, then batches. pgmpy answers by its variable elimination, row by row, as `predict` does
not give probabilities for rows with different columns missing. The answers of the first rows are compared before anything
is timed. pgmpy is skipped where it is not installed.
"""

import argparse
import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from http_load import Server, load, markovia_command

import markovia as mk

PEER = """
import json, logging, socket, sys
import uvicorn
from pgmpy.inference import VariableElimination
from pgmpy.readwrite import BIFReader
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

logging.getLogger("pgmpy").setLevel(logging.ERROR)
model = BIFReader(sys.argv[1]).get_model()
engine = VariableElimination(model)

def one(targets, row):
    given = {n: s for n, s in row.items() if s is not None and n not in targets}
    found = {}
    for t in targets:
        q = engine.query([t], evidence=given, show_progress=False)
        found[t] = dict(zip(q.state_names[t], q.values.tolist()))
    return found

def predict(request_body):
    rows = request_body.get("rows") or [request_body["row"]]
    return [one(request_body["targets"], row) for row in rows]

async def serve(request):
    from anyio.to_thread import run_sync
    body = json.loads(await request.body())
    return JSONResponse(await run_sync(predict, body))

bound = socket.socket()
bound.bind(("127.0.0.1", 0))
bound.listen(512)
print(f"peer at http://127.0.0.1:{bound.getsockname()[1]}", flush=True)
app = Starlette(routes=[Route("/predict", serve, methods=["POST"])])
uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, ws="none")).run([bound])
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    home = os.environ.get("MARKOVIA_BENCHMARKS")
    parser.add_argument(
        "--model", default="asia" if home is None else str(Path(home) / "bif" / "alarm.bif.gz")
    )
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    model: Any = mk.load(given.model)
    target = model.variables[-1]
    frame = model.sample(500, seed=0)
    hidden = np.random.default_rng(0).random(frame.shape) < 0.3
    cells = frame.astype(object).where(~hidden, None).drop(columns=[target])
    rows = cells.to_dict("records")
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "model.bif"
        mk.save(model, plain)
        ours = markovia_command("serve", str(plain), "--port", "0", "--workers", str(given.workers))
        servers = {"markovia": ours}
        if importlib.util.find_spec("pgmpy"):
            servers["pgmpy"] = [sys.executable, "-c", PEER, str(plain)]
        answers = {name: measured(command, rows, target, given) for name, command in servers.items()}
    if "pgmpy" in answers:
        for one, other in zip(answers["markovia"], answers["pgmpy"], strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)
        print("both give the same probabilities")
    return 0


def measured(
    command: list[str], rows: list[Any], target: str, given: argparse.Namespace
) -> list[list[float]]:
    server = Server(command)
    try:
        first = server.ask("POST", "/predict", {"targets": [target], "rows": rows[:5]})
        p = first["p"][target] if isinstance(first, dict) else [list(r[target].values()) for r in first]

        def single(k: int) -> tuple[str, str, bytes]:
            return "POST", "/predict", json.dumps({"targets": [target], "row": rows[k % len(rows)]}).encode()

        def batch(k: int) -> tuple[str, str, bytes]:
            at = k % (len(rows) - given.rows)
            return (
                "POST",
                "/predict",
                json.dumps({"targets": [target], "rows": rows[at : at + given.rows]}).encode(),
            )

        who = "pgmpy" if "-c" in command else "markovia"
        for kind, request, clients, per in (
            ("single", single, given.clients, 1),
            ("batch", batch, 2, given.rows),
        ):
            found = load(server, request, clients=clients, seconds=given.seconds)
            print(
                f"{who:9} {kind:7} {found['a_second']:9,.1f} requests/s {per * found['a_second']:12,.0f} rows/s  "
                f"median {found['p50']:8.2f} ms  p95 {found['p95']:8.2f} ms  {found['errors']} errors {found['first_error']}"
            )
        return p
    finally:
        server.end()


if __name__ == "__main__":
    sys.exit(main())
