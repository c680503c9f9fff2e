"""What can be known of a node: likelihoods on sliders, exclusions, numbers and ranges, and whether it all fits together."""

import pytest

import markovia as mk
from studio_page import ask, bars, choose, settled, shown, state

ASIA = mk.examples.asia()


@pytest.mark.slow
def test_findings_that_cannot_be_are_refused_and_taken_back(asia):
    state(asia, "tub", "yes").click()
    asia.get_by_role("button", name="Retract tub").wait_for()
    bars(asia, ASIA, {"tub": "yes"})
    state(asia, "either", "no").click()
    assert "probability zero" in asia.locator(".mk-toast-error").inner_text()
    asia.wait_for_selector('.mk-node[data-name="either"]:not(.mk-seen)')
    bars(asia, ASIA, {"tub": "yes"})


def test_uncertain_findings_have_sliders(asia):
    asia.locator('.mk-node[data-name="xray"] .mk-title').click()
    asia.get_by_role("button", name="Uncertain finding").click()
    slider = asia.get_by_label("Likelihood of the finding if xray is no")
    slider.fill("0.25")
    asia.get_by_text("likely yes 1 : no 0.25").wait_for()
    bars(asia, ASIA, {"xray": [1.0, 0.25]})
    slider.focus()
    for _ in range(5):  # a hundredth each, as the keys of a slider go
        asia.keyboard.press("ArrowRight")
    asia.get_by_text("likely yes 1 : no 0.3").wait_for()
    bars(asia, ASIA, {"xray": [1.0, 0.3]})
    assert (
        asia.evaluate("() => document.activeElement.type") == "range"
    )  # the answer did not take the keyboard away
    asia.get_by_role("button", name="Equal likelihoods").click()
    asia.get_by_text("likely yes 0.5 : no 0.5").wait_for()
    bars(asia, ASIA)
    asia.get_by_role("button", name="Retract xray").click()
    asia.get_by_role("button", name="Uncertain finding").wait_for()
    bars(asia, ASIA)


@pytest.mark.slow
def test_states_are_excluded_one_by_one(page):
    choose(page, "Student")
    student = mk.examples.student()
    page.locator('.mk-node[data-name="grade"] .mk-title').click()
    states = [str(s) for s in student.states("grade")]
    page.get_by_role("button", name=f"Exclude {states[0]}", exact=True).click()
    page.get_by_text(f"≠ {states[0]}").wait_for()
    bars(page, student, {"grade": mk.Not(student.states("grade")[0])})
    page.get_by_role("button", name=f"Exclude {states[0]}", exact=True).click()
    bars(page, student)


@pytest.mark.slow
def test_numbers_have_curves_values_and_intervals(page, folder):
    choose(page, "river.json")
    bn = mk.load(folder / "river.json")
    assert len(page.locator('.mk-node[data-name="rain"] .mk-curve').get_attribute("d")) > 200
    page.locator('.mk-node[data-name="river"] .mk-title').click()
    page.get_by_label("Value of river", exact=True).fill("4")
    page.get_by_role("button", name="Observe", exact=True).last.click()
    page.locator('.mk-node[data-name="river"].mk-seen').wait_for()
    assert mean(page, "rain") == pytest.approx(bn.query("rain", given={"river": 4.0}).mean("rain"), rel=1e-3)
    for low, high, said in (("5", "", "in [5, ∞]"), ("2", "3.5", "in [2, 3.5]"), ("", "2", "in [−∞, 2]")):
        page.get_by_label("Least value of river").fill(low)
        page.get_by_label("Greatest value of river").fill(high)
        page.get_by_role("button", name="Observe range").click()
        page.get_by_text(said).wait_for()
        settled(page)
        given = {"river": mk.Interval(float(low or "-inf"), float(high or "inf"))}
        wet = bn.query("season", given=given)["wet"]
        assert shown(page, "season", "wet") == pytest.approx(100 * wet, abs=0.06)
        assert mean(page, "rain") == pytest.approx(bn.query("rain", given=given).mean("rain"), rel=1e-3)
        assert page.locator('.mk-node[data-name="river"] .mk-curve-mark').get_attribute("d").count(
            "M"
        ) == bool(low) + bool(high)
    page.get_by_label("Least value of river").fill("3")
    page.get_by_label("Greatest value of river").fill("1")
    page.get_by_role("button", name="Observe range").click()
    assert page.locator(".mk-toast-error").inner_text()
    page.get_by_text("in [−∞, 2]").wait_for()


def mean(page, name):
    """Return the mean that a node of the drawing shows."""
    settled(page)
    said = page.locator(f'.mk-node[data-name="{name}"] .mk-moments').text_content()
    return float(said.split(" ")[0].replace("−", "-"))


def test_findings_that_do_not_fit_together_are_told(asia):
    for name, said in (("xray", "yes"), ("smoke", "no"), ("dysp", "no")):
        state(asia, name, said).click()
    settled(asia)
    told = ask(asia, "Do the findings fit together?", "Check")
    found = ASIA.conflict({"xray": "yes", "smoke": "no", "dysp": "no"})
    assert told.locator(".mk-verdict").inner_text() == "The findings disagree."
    assert f"Conflict: {found.value:.4g} nats" in told.inner_text()
    parts = {
        row.locator("th").inner_text(): float(row.locator("td").inner_text().replace("−", "-"))
        for row in told.locator("tbody tr").all()
    }
    assert parts == pytest.approx(dict(found.contributions), rel=1e-3)
    for name in ("smoke", "dysp"):  # the open question follows the findings
        state(asia, name, "yes").click()
    asia.get_by_text("The findings do not disagree.").wait_for()
    less = ASIA.conflict({"xray": "yes", "smoke": "yes", "dysp": "yes"})
    assert not less.present
    asia.get_by_text(f"Conflict: {less.value:.4g} nats".replace("-", "−")).wait_for()
