"""A network whose names would run as a script, were they ever read as one."""

import markovia as mk

HOSTILE = "</script><script>document.title='broken'</script><!--<img src=x onerror=alert(1)>\"'&"


def hostile_network() -> mk.BayesianNetwork:
    """Two nodes; one is named by a script, and so are its first state and the network."""
    bn = mk.BayesianNetwork(name=HOSTILE)
    bn.add(HOSTILE, states=[HOSTILE, "no"], p=[0.3, 0.7])
    bn.add("child", states=["a", "b"], parents=[HOSTILE], p=[[0.9, 0.1], [0.2, 0.8]])
    return bn
