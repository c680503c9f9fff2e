"""`markovia demo`: a tour of the library that prints real answers, with the line of Python that got each."""

from math import exp
from textwrap import wrap
from typing import Any

from markovia.cli.terminal import options
from markovia.cli.terminal.options import command
from markovia.cli.terminal.output import bar, number, print_json, say, show_table

WIDTH = 100
BAR = 20


@command("markovia demo", "markovia demo --json | jq .intervention")
def demo(as_json: options.Json = False) -> None:
    """Take a tour: posteriors, explanations, independence, interventions and files on a real network."""
    from markovia.cli.tour import tour

    answers = tour()
    if as_json:
        print_json(answers)
        return
    _tell_model(answers["facts"])
    _tell_posteriors(answers["posteriors"])
    _tell_explanation(answers["explanation"])
    _tell_independence(answers["independence"])
    _tell_intervention(answers["intervention"])
    _tell_joint(answers["joint"])
    _tell_files(answers["files"])
    _tell_impossible(answers["impossible"])
    say(
        "",
        "Next: markovia studio asia    opens this network in the browser: click what you saw",
        "      markovia query asia lung --given smoke=yes    markovia examples    markovia --help",
    )


def _tell_model(facts: dict[str, Any]) -> None:
    _heading("1. A model is a graph with numbers", 'bn = mk.examples.asia()   # or mk.load("asia.bif")')
    say(
        f"  The chest clinic of Lauritzen and Spiegelhalter (1988): {facts['variables']} variables, "
        f"{facts['edges']} edges, {facts['parameters']} parameters",
        f"  for a joint distribution over {facts['joint_states']} configurations; "
        f"treewidth at most {facts['treewidth_bound']}, so exact answers are cheap.",
    )


def _tell_posteriors(told: dict[str, Any]) -> None:
    _heading("2. Evidence changes beliefs", f"bn.marginals(given={told['given']})")
    rows = [
        (name, number(p), bar(p, BAR, "blue"), number(told["after"][name]), bar(told["after"][name], BAR))
        for name, p in told["before"].items()
    ]
    show_table(["P(yes)", "before", "".ljust(BAR), "after", ""], rows, numbers=[1, 3], indent=2)
    say(f"  An abnormal x-ray and dyspnoea together have probability {number(exp(told['log_evidence']))}.")


def _tell_explanation(told: dict[str, Any]) -> None:
    _heading("3. The most probable explanation", f"bn.map(given={told['given']}, m=3)")
    rows = [
        (str(rank), number(e["p"]), ", ".join(f"{n}={s}" for n, s in e["states"].items()))
        for rank, e in enumerate(told["best"], start=1)
    ]
    show_table(["rank", "p", "everything else together"], rows, numbers=[0, 1], indent=2)
    pair = ", ".join(f"{n}={s}" for n, s in told["lung_and_bronc"].items())
    say(f"  Asked for lung and bronc only, with the rest summed out (marginal MAP): {pair}.")


def _tell_independence(told: list[dict[str, Any]]) -> None:
    _heading("4. Who depends on whom, and why", 'bn.independent("lung", "bronc", given=[...])')
    for asked in told:
        given = f" given {' and '.join(asked['given'])}" if asked["given"] else ""
        say(
            f"  {asked['x']} and {asked['y']}{given}: {'independent' if asked['independent'] else 'dependent'}"
        )
        for trail in asked["trails"]:
            reasons = "; ".join(j["why"] for j in trail["junctions"] if j["open"] == trail["open"])
            say(f"    {trail['trail']}", f"      {reasons}")


def _tell_intervention(told: dict[str, float]) -> None:
    _heading("5. Seeing is not doing", 'bn.do(bronc="yes").query("lung")')
    rows = [
        (question, number(p), bar(p * 4, BAR, "magenta"))
        for question, p in (
            ("P(lung=yes)", told["lung"]),
            ("P(lung=yes | bronc=yes)", told["lung_seeing_bronc"]),
            ("P(lung=yes | do(bronc=yes))", told["lung_doing_bronc"]),
        )
    ]
    show_table(["", "", ""], rows, numbers=[1], indent=2)
    say(
        "  Seeing bronchitis hints at smoking, and so at cancer; causing it tells nothing about smoking.",
        "  (These bars are four times as long as the others.)",
    )


def _tell_joint(told: dict[str, Any]) -> None:
    question = f'bn.query(["lung", "bronc"], given={told["given"]})'
    _heading("6. A joint posterior that knows where it came from", question)
    rows = [(*key.split(","), number(p), bar(p, BAR)) for key, p in told["table"].items()]
    show_table(["lung", "bronc", "p", ""], rows, numbers=[2], indent=2)
    say(f"  answered by {told['info']}")
    say(f"  checked by  {told['check']}; largest difference {told['difference']:.1g}")


def _tell_files(told: list[dict[str, Any]]) -> None:
    _heading("7. To a file and back", 'bn.save("asia.bif"); mk.load("asia.bif").query("lung", given=...)')
    rows = [
        (
            f["file"],
            f"{f['bytes']:,} bytes",
            f"P(lung=yes | xray, dysp) = {f['lung']:.12f}",
            "identical to the original" if f["difference"] == 0 else f"off by {f['difference']:.1g}",
        )
        for f in told
    ]
    show_table(["", "", "", ""], rows, numbers=[1], indent=2)


def _tell_impossible(told: dict[str, Any]) -> None:
    words = " ".join(f"--given {n}={s}" for n, s in told["given"].items())
    _heading("8. A mistake gets one sentence", f"markovia query asia smoke {words}", prompt="$ ")
    for line in wrap(f"markovia: {told['message']}", WIDTH - 2):
        say(f"  {line}", style="red")
    say(f"  (exit code 2; of the {len(told['given'])} findings it names the ones that clash)")


def _heading(title: str, code: str, prompt: str = ">>> ") -> None:
    say("")
    say(title, style="bold")
    say(f"  {prompt}{code}", style="dim")
