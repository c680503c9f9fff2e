import doctest
import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

import markovia as mk
from markovia.cli.app import app
from markovia.inference.engine import engine_names

DOCS = Path(__file__).resolve().parent.parent / "docs"
GUIDE = sorted((DOCS / "guide").glob("*.md"))
PAGES = [DOCS / "index.md", *GUIDE]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
NEEDS = {
    "big_data_many_chains.md": ["dask.distributed"],
    "coming_from.md": ["pgmpy", "pyagrum"],
    "covariances.md": ["statsmodels"],
    "crfs_and_segmentation.md": ["jax"],
    "data_larger_than_memory.md": ["polars", "pyarrow"],
    "data_on_a_cluster.md": ["dask.dataframe", "pyarrow"],
    "files.md": ["pgmpy", "pyagrum"],
    "structure_from_big_data.md": ["pyarrow"],
    "plans_over_time.md": ["gymnasium"],
    "when_you_cannot_see.md": ["jax"],
    "learning_from_trial.md": ["jax"],
}
CLUSTER = "data_on_a_cluster.md"
"""Its Python blocks need a cluster; `test_cluster_data.py` does the same on small ones."""
SAMPLED = {
    "bayesian_regression.md", "big_data_many_chains.md", "conjugate_models.md", "crfs_and_segmentation.md",
    "diagnosing.md", "eight_schools.md",
    "discrete_and_continuous.md", "engines_on_densities.md", "forecasting_a_series.md", "from_csv_to_effect.md",
    "clustering_with_uncertainty.md", "how_many_clusters.md", "infinite_topics.md", "latent_features.md",
    "learning_undirected_models.md", "mcmc_or_variational.md", "particle_filters.md", "state_space_models.md",
    "structure_from_big_data.md", "topic_relatives.md", "tracking_a_target.md", "undirected_structure.md",
    "worked_bayesian_models.md",
    "vae.md", "flows.md", "gans.md", "diffusion.md", "belief_nets.md", "boltzmann_machines.md", "deep_nodes.md",
    "energy_models.md", "functions_in_networks.md",
    "gaussian_processes_many_rows.md", "choosing_an_engine.md", "what_would_another_policy_have_done.md",
    "learned_against_true.md", "approximate_inference.md", "grammars_and_circuits.md",
    "learning_from_trial.md", "gaussian_process_classification.md", "networks_from_scratch.md",
}  # fmt: skip
"""Pages that compile, sample or learn for five seconds and more each; only a slow test compares what they print."""
LONG = {"bayesian_regression.md", "big_data_many_chains.md", "diagnosing.md", "mcmc_or_variational.md"}
"""Their Python blocks compile one sampler after the other; only a slow test runs these."""
FOR_THE_INSIDE = {
    "errors.check_known",
    "errors.did_you_mean",
    "errors.outside",
    "errors.warn_user",
    "priors.as_prior",
}
"""Names of public modules that only the library itself uses."""
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


class MarkdownParser(doctest.DocTestParser):
    """Read the pycon blocks of a Markdown page and nothing else; line numbers stay as they are."""

    def parse(self, string, name="<string>"):
        return super().parse(BLOCK.sub(_only_pycon, string), name)


def _only_pycon(match):
    kind, text = match.groups()
    return f"\n{text}\n" if kind.strip() == "pycon" else "\n" * match[0].count("\n")


@pytest.fixture
def at_home_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    return tmp_path


def blocks(page, *kinds):
    return [text for kind, text in BLOCK.findall(page.read_text("utf-8")) if kind.strip() in kinds]


def commands(page):
    """Return (command, expected output) for every `$ markovia ...` line of the page's console blocks."""
    asked = []
    for text in blocks(page, "console"):
        _, *parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
        asked += [(part.partition("\n")[0], part.partition("\n")[2].strip()) for part in parts]
    return asked


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=[pytest.mark.slow] * (p.name in SAMPLED)) for p in PAGES],
    ids=lambda p: p.stem,
)
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_python_on_a_page_answers_as_printed(page, at_home_in):
    for module in NEEDS.get(page.name, []):
        pytest.importorskip(module)
    results = doctest.testfile(
        str(page),
        module_relative=False,
        globs={"mk": mk},
        optionflags=FLAGS,
        parser=MarkdownParser(),
        encoding="utf-8",
    )
    assert results.failed == 0
    assert results.attempted == sum(text.count(">>> ") for text in blocks(page, "pycon"))


@pytest.mark.parametrize("page", [p for p in PAGES if commands(p)], ids=lambda p: p.stem)
def test_commands_on_a_page_print_as_printed(page, at_home_in):
    environment = {"NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "100"}
    checker = doctest.OutputChecker()
    for command, expected in commands(page):
        program, *words = shlex.split(command)
        assert program == "markovia", f"{page.name}: only markovia commands can be checked, not {command!r}"
        printed = CliRunner().invoke(app, words, prog_name="markovia", env=environment).output.strip()
        assert checker.check_output(expected + "\n", printed + "\n", FLAGS), (
            f"{page.name}: $ {command}\nexpected:\n{expected}\ngot:\n{printed}"
        )


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in GUIDE if p.name in LONG], ids=lambda p: p.stem)
def test_long_python_on_a_page_runs_after_the_rest(page, at_home_in):
    names = {"mk": mk}
    for kind, text in BLOCK.findall(page.read_text("utf-8")):
        if kind.strip() == "pycon":
            text = "".join(example.source for example in doctest.DocTestParser().get_examples(text))
        if kind.strip() in ("pycon", "python"):
            exec(compile(text, page.name, "exec"), names)


@pytest.mark.parametrize("page", GUIDE, ids=lambda p: p.stem)
def test_every_python_block_of_the_guide_is_run(page):
    for text in blocks(page, "python", "py"):
        if page.name in LONG | {CLUSTER}:
            compile(text, page.name, "exec")
            continue
        pytest.fail(f"{page.name} has Python that no test runs; write it with >>> in a pycon block:\n{text}")
    for text in blocks(page, "pycon"):
        assert text.startswith(">>> "), f"{page.name}: a pycon block starts with a prompt:\n{text}"


def test_pictures_that_the_pages_show_are_the_ones_drawn():
    specification = importlib.util.spec_from_file_location("figures", DOCS / "figures.py")
    figures = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(figures)
    drawn = {f"{draw.__name__.replace('_', '-')}.svg" for draw in figures.FIGURES}
    shown = {n for page in PAGES for n in re.findall(r"_build/figures/([\w.-]+)", page.read_text("utf-8"))}
    assert shown == drawn


def public_names():
    """Yield the names of the package, and those of its modules as "module.name"."""
    for name in mk.__all__:
        yield name
        found = getattr(mk, name)
        if isinstance(found, ModuleType):
            made_here = [n for n, o in vars(found).items() if getattr(o, "__module__", "") == found.__name__]
            inside = getattr(found, "__all__", [n for n in made_here if not n.startswith("_")])
            yield from (f"{name}.{inner}" for inner in inside)


def test_every_public_name_is_in_the_code_of_a_guide_page():
    pages = "".join(page.read_text("utf-8") for page in GUIDE)
    code = [text for _, text in BLOCK.findall(pages)] + re.findall(r"`([^`\n]+)`", BLOCK.sub("", pages))
    mentioned = set(re.findall(r"\w+", " ".join(code)))
    assert {name for name in public_names() if name.split(".")[-1] not in mentioned} == FOR_THE_INSIDE


def test_every_name_of_markovia_that_a_sentence_of_the_guide_mentions_is_there():
    wrong, seen = [], 0
    for page in [DOCS.parent / "README.md", *PAGES]:
        for span in SPAN.findall(BLOCK.sub("", page.read_text(encoding="utf-8"))):
            for path in re.findall(r"\bmk\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)", span):
                thing, seen = mk, seen + 1
                for part in path.split("."):
                    if part in getattr(thing, "__dataclass_fields__", {}):
                        break
                    if not hasattr(thing, part):
                        wrong.append(f"{page.name}: mk.{path}")
                        break
                    thing = getattr(thing, part)
            if page.name != "dynamic_networks.md":  # which has engines of its own
                wrong += [
                    f"{page.name}: {e}"
                    for e in re.findall(r'engine="([\w-]+)"', span)
                    if e not in engine_names()
                ]
    assert seen > 200
    assert not wrong
