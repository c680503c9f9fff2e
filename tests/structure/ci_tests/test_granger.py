import numpy as np
import pandas as pd
import pytest

import markovia as mk

statsmodels = pytest.importorskip("statsmodels.tsa.stattools")


def series(n=200, seed=0):
    rng = np.random.default_rng(seed)
    x, y, z = np.zeros(n), np.zeros(n), np.zeros(n)
    for t in range(1, n):
        x[t] = 0.5 * x[t - 1] + rng.normal()
        y[t] = 0.3 * y[t - 1] + 0.4 * x[t - 1] + rng.normal()
        z[t] = 0.6 * y[t - 1] + 0.3 * rng.normal()
    return pd.DataFrame({"x": x, "y": y, "z": z})


@pytest.mark.parametrize("lags", [1, 3])
def test_pairs_agree_with_statsmodels(lags):
    frame = series()
    tests = mk.granger(frame, lags)
    for cause, effect in [("x", "y"), ("y", "x"), ("z", "x")]:
        theirs = statsmodels.grangercausalitytests(frame[[effect, cause]].to_numpy(), [lags])[lags][0]
        ours = tests[cause, effect]
        assert (ours.f, ours.f_p) == pytest.approx(theirs["ssr_ftest"][:2], rel=1e-8)
        assert ours.df == theirs["ssr_ftest"][2]
        assert (ours.lr, ours.lr_p) == pytest.approx(theirs["lrtest"][:2], rel=1e-8)


def test_given_the_others_only_direct_influence_counts():
    frame = series(2000)
    assert mk.granger(frame, 2)["x", "z"].f_p < 1e-6
    direct = mk.granger(frame, 2, conditional=True)
    assert direct["x", "z"].f_p > 0.01
    assert direct.graph(0.001).edges == [("x", "y"), ("y", "z")]
    assert len(direct.to_pandas()) == 6


def test_lags_do_not_reach_across_sequences():
    frame = series(60)
    parts = [frame[:25], frame[25:]]
    split = mk.granger(parts, 2)
    assert split[0].n == 56
    assert split[0].f == pytest.approx(mk.granger(frame.assign(s=[0] * 25 + [1] * 35), 2, by="s")[0].f)
    assert split[0].f != pytest.approx(mk.granger(frame, 2)[0].f)


def test_data_that_cannot_be_tested_are_refused():
    with pytest.raises(mk.errors.InvalidArgument, match="too few"):
        mk.granger(series(6), 3)
    with pytest.raises(mk.errors.InvalidArgument, match="there is one"):
        mk.granger({"x": [1.0, 2.0, 3.0]})
    with pytest.raises(mk.errors.InvalidArgument, match="missing value"):
        mk.granger({"x": [1.0, None, 3.0], "y": [1.0, 2.0, 3.0]})
