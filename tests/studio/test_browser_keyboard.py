"""The studio without a pointer: from the first screen to a finding, its retraction, an edit and its undoing."""

import markovia as mk
from studio_page import bars, settled

ASIA = mk.examples.asia()


def focused(page):
    """Return what the keyboard is on: the name of a node, or of a control."""
    return page.evaluate(
        """() => { const e = document.activeElement;
            return e.dataset.name ?? e.getAttribute('aria-label') ?? e.labels?.[0]?.textContent ?? e.textContent.trim(); }"""
    )


def tab_to(page, name, back=False, most=60):
    """Press Tab until the keyboard is on something, and say how often."""
    for presses in range(most):
        if focused(page).startswith(name):
            return presses
        page.keyboard.press("Shift+Tab" if back else "Tab")
    raise AssertionError(f"Tab does not lead to {name}")


def test_the_keyboard_is_enough(asia):
    asia.locator('.mk-node[data-name="smoke"]').focus()
    asia.keyboard.press("1")
    asia.get_by_role("button", name="Retract smoke").wait_for()
    bars(asia, ASIA, {"smoke": "yes"})
    asia.keyboard.press("ArrowDown")
    below = asia.evaluate("() => document.activeElement.dataset.name")
    assert below in ("lung", "bronc")
    asia.keyboard.press("Enter")
    asia.keyboard.press("ArrowDown")
    asia.keyboard.press("Enter")
    asia.get_by_role("button", name=f"Retract {below}").wait_for()
    bars(asia, ASIA, {"smoke": "yes", below: "no"})
    asia.keyboard.press("Escape")
    asia.keyboard.press("Delete")
    bars(asia, ASIA, {"smoke": "yes"})
    asia.keyboard.press("/")
    asia.keyboard.type("xra")
    asia.keyboard.press("Enter")
    assert asia.evaluate("() => document.activeElement.dataset.name") == "xray"


def test_tab_leads_from_the_bar_over_the_drawing_into_the_panels(asia):
    asia.keyboard.press("/")
    assert focused(asia) == "Find a node"
    first = asia.locator(".mk-node[tabindex='0']").get_attribute("data-name")
    tab_to(asia, first)
    asia.keyboard.press("2")
    asia.get_by_role("button", name=f"Retract {first}").wait_for()
    bars(asia, ASIA, {first: "no"})
    asia.keyboard.press("Alt+1")  # with Alt, from outside
    asia.locator(f'.mk-node[data-name="{first}"].mk-done').wait_for()
    bars(asia, ASIA.do({first: "yes"}))
    asia.keyboard.press("Backspace")
    bars(asia, ASIA)
    seen = [first]
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowDown"):
        asia.keyboard.press(key)
        settled(asia)
        seen.append(focused(asia))
    assert len(set(seen)) == 5
    assert set(seen) <= set(ASIA.variables)
    asia.keyboard.press("1")
    asia.get_by_role("button", name=f"Retract {seen[-1]}").wait_for()
    bars(asia, ASIA, {seen[-1]: "yes"})
    asia.keyboard.press("Delete")
    bars(asia, ASIA)
    # one Tab leaves the nodes; the panels' tabs go by arrows
    asia.keyboard.press("Tab")
    assert focused(asia) not in ASIA.variables
    tab_to(asia, "Findings")
    asia.keyboard.press("ArrowRight")
    assert focused(asia) == "Ask"
    asia.keyboard.press("ArrowRight")
    assert focused(asia) == "Edit"
    assert asia.locator("#mk-panel-edit").is_visible()
    tab_to(asia, "Delete ")
    asia.keyboard.press("Enter")
    asia.locator(f'.mk-node[data-name="{seen[-1]}"]').wait_for(state="detached")
    asia.keyboard.press("Control+z")
    asia.locator(f'.mk-node[data-name="{seen[-1]}"]').wait_for()
    bars(asia, ASIA)


def test_dialogs_take_the_keyboard_and_give_it_back(asia):
    asia.keyboard.press("?")
    assert asia.locator("dialog h2").inner_text() == "Help"
    asia.keyboard.press("Escape")
    asia.locator("dialog").wait_for(state="detached")
    tab_to(asia, "Open")
    asia.keyboard.press("Enter")
    asia.locator("dialog .mk-source").first.wait_for()
    tab_to(asia, "Cancer")
    asia.keyboard.press("Enter")
    asia.locator(".mk-model-name", has_text="cancer").wait_for()
    bars(asia, mk.examples.cancer())
