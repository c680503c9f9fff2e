import markovia as mk


def test_evidence_of_another_type_means_the_state_it_writes():
    bn = mk.BayesianNetwork()
    bn.add("wet", states=[False, True], p=[0.75, 0.25])
    bn.add("slip", states=["0", "1"], parents=["wet"], p=[[0.9, 0.1], [0.5, 0.5]])
    for value in (True, 1, "true", "TRUE", "1"):
        assert bn.query("slip", given={"wet": value})["1"] == 0.5
        assert bn.do(wet=value).query("slip")["1"] == 0.5
    assert bn.query("wet", given={"slip": 1})[True] == bn.query("wet", given={"slip": "1"})[True]
    assert bn.query("slip", given={"wet": mk.Not("false")})["1"] == 0.5
    assert bn.query("slip", given={"wet": {"true": 1.0, 0: 0.0}})["1"] == 0.5
