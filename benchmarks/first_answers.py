"""What a newcomer waits for: a change point's first posterior, a seasonal ARIMA, the first touch of `mk.engines`.

Run: python benchmarks/first_answers.py [--runs N]

Every row runs in fresh processes with an empty cache of machine code, ours and the peer's in turn; what counts is
processor time (the least of the runs) from the first import on. The change point is the coal-mining series (111 years,
its switch one of 111 states and summed out); the peer is NumPyro with the sum written by hand. The ARIMA rows fit
(1, 0, 1)(1, 0, 1, 12), (0, 1, 1)(0, 1, 1, 12) and (2, 1, 0)(0, 1, 1, 4) to series of 144, 400 and 400 points; the
peer is statsmodels, and both log-likelihoods are printed, since a search that stops early is no faster.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

COAL = (
    "4 5 4 0 1 4 3 4 0 6 3 3 4 0 2 6 3 3 5 4 5 3 1 4 4 1 5 5 3 4 2 5 2 2 3 4 2 1 3 2 2 1 1 1 1 3 0 0 1 0 1 1 0 0 3 1 0 3 "
    "2 2 0 1 1 1 0 1 0 1 0 0 0 2 1 0 0 0 1 1 0 2 3 3 1 1 2 1 1 1 1 2 4 2 0 0 1 4 0 0 0 1 0 0 0 0 0 1 0 0 1 0 1"
)
CLOCK = "import json; from time import process_time as now; start = now()\n"
COAL_OURS = f"""
import numpy as np, jax.numpy as jnp, markovia as mk
from markovia import distributions as dist
m = mk.BayesianNetwork()
m.add("early", dist.Exponential(1.0))
m.add("late", dist.Exponential(1.0))
m.add("switch", dist.Categorical(probs=np.full(111, 1 / 111)))
m.add("year", mk.Input(), plate="row")
m.add("deaths", lambda early, late, switch, year: dist.Poisson(jnp.where(year < switch, early, late)), plate="row")
given = {{"row": {{"year": np.arange(111), "deaths": np.array("{COAL}".split(), float)}}}}
post = m.query(["early", "late"], given=given, engine=mk.engines.NUTS(seed=1))
first, middle = now() - start, now()
m.query(["early", "late"], given=given, engine=mk.engines.NUTS(seed=2))
print(json.dumps({{"first": first, "again": now() - middle, "value": post.mean("early")}}))
"""
COAL_PEER = f"""
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp, numpyro, numpyro.distributions as dist
from jax.scipy.special import logsumexp
from numpyro.infer import MCMC, NUTS
deaths, year = jnp.array([float(x) for x in "{COAL}".split()]), jnp.arange(111)
def model():
    early = numpyro.sample("early", dist.Exponential(1.0))
    late = numpyro.sample("late", dist.Exponential(1.0))
    rate = jnp.where(year[None] < jnp.arange(111)[:, None], early, late)
    numpyro.factor("deaths", logsumexp(dist.Poisson(rate).log_prob(deaths).sum(1) - jnp.log(111.0)))
def draw(seed):
    four = dict(num_chains=4, chain_method="vectorized", progress_bar=False)
    chains = MCMC(NUTS(model), num_warmup=1000, num_samples=1000, **four)
    chains.run(jax.random.PRNGKey(seed))
    return float(chains.get_samples()["early"].mean())
value = draw(1)
first, middle = now() - start, now()
draw(2)
print(json.dumps({{"first": first, "again": now() - middle, "value": value}}))
"""
SERIES = """
import numpy as np
rng = np.random.default_rng({seed})
noise = rng.normal(size={n} + 60)
y = noise.copy()
for t in range({season}, y.size):
    y[t] = .5 * y[t - 1] + .4 * y[t - {season}] + noise[t] + .3 * noise[t - 1]
y = y[60:]
if {d}:
    y = np.cumsum(y)
"""
ARIMA_OURS = """
import markovia as mk
model = mk.ARIMA({order}, seasonal_order={seasonal}).fit(y)
first, middle = now() - start, now()
mk.ARIMA({order}, seasonal_order={seasonal}).fit(y)
print(json.dumps({{"first": first, "again": now() - middle, "value": model.log_likelihood_}}))
"""
ARIMA_PEER = """
import warnings; warnings.simplefilter("ignore")
from statsmodels.tsa.arima.model import ARIMA
model = ARIMA(y, order={order}, seasonal_order={seasonal}, trend="n").fit()
first, middle = now() - start, now()
ARIMA(y, order={order}, seasonal_order={seasonal}, trend="n").fit()
print(json.dumps({{"first": first, "again": now() - middle, "value": model.llf}}))
"""
TOUCH = """
import markovia as mk
imported = now()
mk.engines
touched = now()
mk.engines.NUTS
print(json.dumps({"first": now() - imported, "again": touched - imported, "value": 0.0}))
"""


def main() -> int:
    """Run every row, ours and the peer's in turn, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="the start of a row's name")
    options = parser.parse_args()
    runs = options.runs
    rows = {"coal mining": (COAL_OURS, COAL_PEER), "mk.engines.NUTS (again: mk.engines)": (TOUCH, None)}
    for number, (order, seasonal, n) in enumerate(
        [((1, 0, 1), (1, 0, 1, 12), 144), ((0, 1, 1), (0, 1, 1, 12), 400), ((2, 1, 0), (0, 1, 1, 4), 400)]
    ):
        words = {"order": order, "seasonal": seasonal}
        series = SERIES.format(seed=number, n=n, season=seasonal[3], d=order[1])
        rows[f"ARIMA {order} {seasonal}, {n} points"] = (
            series + ARIMA_OURS.format(**words),
            series + ARIMA_PEER.format(**words),
        )
    print(f"{'':48}{'first, ours':>12}{'peer':>8}{'again':>9}{'peer':>8}   values")
    for name, codes in rows.items():
        if not name.startswith(options.only):
            continue
        records = [[_child(code) for code in codes if code] for _ in range(runs)]
        columns = list(zip(*records, strict=True))
        least = [{key: min(r[key] for r in column) for key in ("first", "again")} for column in columns]
        peer = least[1] if len(least) > 1 else {"first": float("nan"), "again": float("nan")}
        values = ", ".join(f"{column[0]['value']:.4f}" for column in columns)
        print(
            f"{name:48}{least[0]['first']:12.3f}{peer['first']:8.2f}{least[0]['again']:9.4f}{peer['again']:8.2f}   {values}"
        )
    return 0


def _child(code: str) -> dict[str, float]:
    """Run `code` in a fresh interpreter whose cache of machine code is empty, and read its last line."""
    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, "MARKOVIA_CACHE": empty}
        done = subprocess.run(
            [sys.executable, "-c", CLOCK + code], env=environment, capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    raise SystemExit(main())
