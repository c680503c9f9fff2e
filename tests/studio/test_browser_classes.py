"""A class of graphs in a real browser: lines and rings where nothing is settled, a sentence instead of a wrong answer."""

import pytest

import markovia as mk
from markovia.graphs import MixedGraph
from markovia.io import dumps
from markovia.studio.sharing.report import report, save_text
from studio_page import bring, drag, opened, settled


@pytest.fixture(scope="module")
def asia_class():
    bn = mk.examples.asia()
    known = mk.graphs.cpdag(bn.graph)
    assert {frozenset(e) for e in known.undirected_edges()} == {
        frozenset({"asia", "tub"}), frozenset({"smoke", "lung"}), frozenset({"smoke", "bronc"})
    }  # fmt: skip
    bn.equivalence_class = known
    return bn


@pytest.fixture(scope="module")
def files(asia_class, tmp_path_factory):
    made = tmp_path_factory.mktemp("classes")
    (made / "learned.json").write_text(dumps(asia_class, "json"))
    (made / "ancestral.json").write_text(
        dumps(MixedGraph(["b o-> c", "a <-> c", "c --> d", "e o-o d"]), "json")
    )
    save_text(report(asia_class, title="learned").text, made / "learned.html")
    return made


def drawn(page):
    """Return how many edges are drawn, how many of them have a head, and how many rings there are."""
    edges = page.locator(".mk-edge")
    parts = ("mk-head", "mk-ring")
    counts = [
        page.evaluate(
            f"[...document.querySelectorAll('.mk-edge .{part}')].filter((path) => path.getAttribute('d')).length"
        )
        for part in parts
    ]
    return edges.count(), *counts


def test_lines_have_no_heads_and_get_one_when_they_are_drawn(browser, address, files):
    from playwright.sync_api import expect

    with opened(browser, address) as page:
        bring(page, files / "learned.json")
        page.wait_for_selector('.mk-node[data-name="lung"]', timeout=60_000)
        settled(page)
        assert drawn(page) == (8, 5, 0)
        drag(page, "smoke", "lung")
        expect(page.locator(".mk-edge-line")).to_have_count(2)
        assert drawn(page) == (8, 6, 0)
        page.get_by_role("button", name="Undo (Ctrl+Z)").click()
        expect(page.locator(".mk-edge-line")).to_have_count(3)


def test_causes_and_interventions_are_those_of_the_class(browser, address, files):
    with opened(browser, address) as page:
        bring(page, files / "learned.json")
        page.wait_for_selector('.mk-node[data-name="lung"]', timeout=60_000)
        settled(page)
        page.get_by_role("tab", name="Causes").click()
        page.get_by_text("The data leave 3 edges without a direction").wait_for()
        page.get_by_label("Treatment", exact=True).select_option("smoke")
        page.get_by_label("Outcome", exact=True).first.select_option("dysp")
        page.get_by_text("the graphs of the class disagree").wait_for()
        page.get_by_label("Treatment", exact=True).select_option("either")
        page.locator(".mk-verdict", has_text="Identified").wait_for()
        before = page.locator('.mk-node[data-name="lung"] .mk-value').all_text_contents()
        page.click('[data-name="smoke"] .mk-row-state >> nth=0', modifiers=["Alt"])
        assert "without a direction" in page.inner_text(".mk-toast-error")
        settled(page)
        assert page.locator('[data-name="smoke"].mk-done').count() == 0
        assert page.locator('.mk-node[data-name="lung"] .mk-value').all_text_contents() == before


def test_a_report_computes_interventions_only_where_the_class_settles_them(browser, files, asia_class):
    with opened(browser, (files / "learned.html").as_uri()) as page:
        assert drawn(page) == (8, 5, 0)
        page.click('[data-name="smoke"] .mk-row-state >> nth=0', modifiers=["Alt"])
        assert "smoke --- " in page.inner_text(".mk-toast-error")
        assert page.inner_text("#mk-asked") == "nothing observed"
        page.click('[data-name="either"] .mk-row-state >> nth=1', modifiers=["Alt"])
        page.wait_for_selector('[data-name="either"].mk-done')
        said = page.locator('[data-name="dysp"] .mk-row-state .mk-value').first.text_content()
        truth = asia_class.do(either="no").query("dysp")["yes"]
        assert float(said.removesuffix(" %")) == pytest.approx(100 * truth, abs=0.06)


def test_marks_of_hidden_causes_are_rings_and_heads(browser, address, files):
    with opened(browser, address) as page:
        bring(page, files / "ancestral.json")
        page.wait_for_selector('.mk-node[data-name="c"]', timeout=60_000)
        settled(page)
        assert drawn(page) == (
            4,
            3,
            2,
        )  # the head path of the bidirected edge has both; o-o has two rings in one path
        rings = page.locator(".mk-edge-circle .mk-ring").get_attribute("d")
        assert rings.count("Z") == 2
        assert page.locator(".mk-edge-circle-arrow .mk-ring").get_attribute("d").count("Z") == 1
        assert page.locator(".mk-edge-both .mk-head").get_attribute("d").count("Z") == 2
