"""`markovia formats`, `markovia examples` and `markovia engines`: what there is to name."""

from typing import Any

from markovia.cli.terminal import options
from markovia.cli.terminal.options import command
from markovia.cli.terminal.output import print_json, say, show_table
from markovia.models.gallery.bundled import bundled_names

QUESTIONS = {"query": "marginals", "map": "best", "sample": "sample", "log_partition": "log_mass"}
"""The verb of each question that an engine may answer."""


@command("markovia formats", "markovia convert asia asia.xmlbif")
def formats(as_json: options.Json = False) -> None:
    """List the file formats that are read and written, with their suffixes."""
    from markovia import io

    rows = [{"name": f.name, "suffixes": list(f.suffixes), "title": f.title} for f in io.formats().values()]
    if as_json:
        print_json({"formats": rows})
        return
    show_table(
        ["name", "suffixes", "what it is"],
        [(f.name, " ".join(f.suffixes), f.title) for f in io.formats().values()],
    )
    say(
        "",
        "each suffix also with .gz behind it; --format, --from and --to name a format where the suffix does not",
    )


@command("markovia examples", "markovia info monty-hall")
def examples(as_json: options.Json = False) -> None:
    """List the bundled models, each usable wherever a command wants a MODEL."""
    from markovia.models.gallery import examples as bundled

    rows = []
    for name in bundled_names():
        model = bundled.get(name)
        about = (getattr(bundled, name.replace("-", "_")).__doc__ or "").strip().splitlines()[0]
        rows.append(
            {
                "name": name,
                "kind": type(model).__name__,
                "variables": len(model),
                "about": about.removeprefix("Return ").removesuffix("."),
            }
        )
    if as_json:
        print_json({"examples": rows})
        return
    show_table(
        ["name", "kind", "variables", "what it is"],
        [(str(r["name"]), str(r["kind"]), str(r["variables"]), str(r["about"])) for r in rows],
        numbers=[2],
    )


EVERY_KIND = ("table", "gaussian", "distribution")


@command("markovia engines", "markovia query asia lung --engine enumeration")
def engines(as_json: options.Json = False) -> None:
    """List the inference engines that --engine accepts, and which questions each answers."""
    from markovia.inference.approximate import can_answer
    from markovia.inference.engine import TABLES, engine_names, get_engine
    from markovia.inference.map_bounds.certified import Certified

    rows: list[dict[str, Any]] = []
    for name in engine_names():
        engine = get_engine(name)
        about = (type(engine).__doc__ or "").strip().splitlines()[0].removesuffix(".")
        rows.append(
            {
                "name": name,
                "exact": engine.exact,
                "answers": [verb for verb, question in QUESTIONS.items() if can_answer(engine, question)],
                "kinds": sorted(
                    {*EVERY_KIND} & (getattr(engine, "kinds", TABLES) if name != "auto" else {*EVERY_KIND})
                ),
                "bound": isinstance(engine, Certified),
                "time_limit": hasattr(engine, "time_limit"),
                "gpu": hasattr(engine, "device"),
                "about": "picks for you; the answer says which" if name == "auto" else about,
            }
        )
    if as_json:
        print_json({"engines": rows})
        return
    show_table(
        ["name", "answers", "how", "nodes", "what it is"],
        [
            (str(r["name"]), _answers(r["answers"]), _kind(r), ", ".join(r["kinds"]), str(r["about"]))
            for r in rows
        ],
    )
    say(
        "",
        "query, map and sample take one with --engine NAME; query and map also --time-limit SECONDS, "
        "which exact engines refuse; --device gpu is for " + ", ".join(r["name"] for r in rows if r["gpu"]),
    )


def _answers(verbs: list[str]) -> str:
    return "all" if len(verbs) == len(QUESTIONS) else ", ".join(verbs)


def _kind(row: dict[str, Any]) -> str:
    if row["name"] == "auto":
        return "exact if it fits"
    return "exact" if row["exact"] else "with a bound" if row["bound"] else "approximate"
