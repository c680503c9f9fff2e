"""The drawing under the pointer: edges drawn by hand, boxes around nodes, nodes moved, shading, edges around nodes."""

import math

import pytest

import markovia as mk
from studio_page import bars, choose, drag, eventually, settled, state

ASIA = mk.examples.asia()
LEFT = "() => document.querySelector('[data-name=tub] .mk-box').getBoundingClientRect().left"


def middle(page, name):
    box = eventually(page, page.locator(f'.mk-node[data-name="{name}"] .mk-box').bounding_box)
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def selected(page):
    nodes = "[...document.querySelectorAll('.mk-node.mk-selected')].map((node) => node.dataset.name)"
    return set(page.evaluate(f"() => {nodes}"))


def test_an_edge_is_drawn_by_dragging(asia):
    drag(asia, "asia", "smoke")
    asia.get_by_role("button", name="Undo (Ctrl+Z)").and_(asia.locator(":enabled")).wait_for()
    settled(asia)
    assert asia.locator(".mk-edge").count() == 9
    wider = ASIA.copy()
    wider.add_edge("asia", "smoke")
    asia.locator('.mk-node[data-name="smoke"] .mk-title').click()
    asia.get_by_role("tab", name="Edit").click()
    asia.get_by_role("button", name="Remove the edge from asia").wait_for()
    cells = [float(cell.input_value()) for cell in asia.locator(".mk-cell").all()]
    assert cells == pytest.approx(
        wider["smoke"].values.ravel()
    )  # the old table, whatever the new parent says
    bars(asia, wider)
    drag(asia, "xray", "asia")
    asia.locator(".mk-toast-error", has_text="cycle").wait_for()
    assert asia.locator(".mk-edge").count() == 9
    asia.get_by_role("button", name="Undo (Ctrl+Z)").click()
    asia.wait_for_function("() => document.querySelectorAll('.mk-edge').length === 8")


def test_a_box_selects_what_it_touches(asia):
    left, top = middle(asia, "tub")
    right, bottom = middle(asia, "lung")
    asia.keyboard.down("Shift")
    asia.mouse.move(left - 120, top - 60)
    asia.mouse.down()
    asia.mouse.move(right + 10, bottom + 5, steps=5)
    assert float(asia.locator(".mk-lasso").get_attribute("width")) > 100
    asia.mouse.up()
    asia.keyboard.up("Shift")
    assert eventually(asia, lambda: selected(asia), {"tub", "lung"}) == {"tub", "lung"}
    assert float(asia.locator(".mk-lasso").get_attribute("width")) == 0
    # dragging one of them moves both, as one step that can be undone
    start = asia.evaluate(LEFT)
    before = {name: middle(asia, name) for name in ("tub", "lung", "bronc")}
    title = asia.locator('.mk-node[data-name="tub"] .mk-title').bounding_box()
    asia.mouse.move(title["x"] + 5, title["y"] + 5)
    asia.mouse.down()
    asia.mouse.move(title["x"] + 45, title["y"] + 25, steps=5)
    asia.mouse.up()
    settled(asia)
    for name, (dx, dy) in {"tub": (40, 20), "lung": (40, 20), "bronc": (0, 0)}.items():
        moved = pytest.approx((before[name][0] + dx, before[name][1] + dy), abs=1)
        assert eventually(asia, lambda name=name: middle(asia, name), moved) == moved
    asia.get_by_role("button", name="Undo (Ctrl+Z)").click()
    asia.wait_for_function(f"() => Math.abs(({LEFT})() - {start}) < 1")
    # the tool in the bar does the same without a key
    asia.get_by_role("button", name="Select with a box (or hold Shift)").click()
    x, y = middle(asia, "xray")
    asia.mouse.move(x - 110, y + 60)
    asia.mouse.down()
    asia.mouse.move(x, y, steps=3)
    asia.mouse.up()
    assert eventually(asia, lambda: selected(asia), {"xray"}) == {"xray"}


def shades(page):
    settled(page)
    shade = "[node.dataset.name, Number(node.querySelector('.mk-shade').style.opacity)]"
    return dict(page.evaluate(f"() => [...document.querySelectorAll('.mk-node')].map((node) => {shade})"))


def test_nodes_are_shaded_by_uncertainty_and_by_information(asia):
    asia.get_by_label("Shading of nodes").select_option("entropy")
    asia.locator(".mk-canvas.mk-shaded").wait_for()
    bits = {name: p.entropy(base=2) for name, p in ASIA.marginals().items()}
    most = max(bits.values())
    expected = pytest.approx({name: x / most for name, x in bits.items()}, abs=1e-6)
    assert eventually(asia, lambda: shades(asia), expected) == expected
    state(asia, "smoke", "yes").click()  # shades follow the findings
    asia.get_by_role("button", name="Retract smoke").wait_for()
    bits = {name: p.entropy(base=2) for name, p in ASIA.marginals(given={"smoke": "yes"}).items()}
    most = max(bits.values())
    expected = pytest.approx({"smoke": 0.0, **{name: x / most for name, x in bits.items()}}, abs=1e-6)
    assert eventually(asia, lambda: shades(asia), expected) == expected
    asia.get_by_role("button", name="Retract smoke").click()
    asia.locator('.mk-node[data-name="lung"] .mk-title').click()
    asia.get_by_label("Shading of nodes").select_option("information")
    asia.get_by_text("Shaded by what each node tells about lung").wait_for()
    bits = ASIA.information("lung", base=2)
    most = max(bits.values())
    expected = pytest.approx({name: max(0.0, x) / most for name, x in bits.items()}, abs=1e-6)

    def told():
        return {name: shade for name, shade in shades(asia).items() if name in bits}

    assert eventually(asia, told, expected) == expected
    asia.get_by_role("button", name="Stop highlighting").click()
    asia.locator(".mk-canvas:not(.mk-shaded)").wait_for()


def test_a_later_choice_of_shading_is_not_undone_by_an_earlier_answer(asia):
    held = []

    def hold(route):
        return held.append(route) if "entropy" in (route.request.post_data or "") else route.continue_()

    asia.route("**/shading*", hold)
    asia.get_by_label("Shading of nodes").select_option("entropy")
    eventually(asia, lambda: len(held), 1)
    asia.locator('.mk-node[data-name="lung"] .mk-title').click()
    asia.get_by_label("Shading of nodes").select_option("information")
    asia.get_by_text("Shaded by what each node tells about lung").wait_for()
    with asia.expect_response("**/shading*"):
        held[0].continue_()
    settled(asia)
    assert asia.get_by_text("Shaded by what each node tells about lung").is_visible()
    assert asia.get_by_label("Shading of nodes").input_value() == "information"


@pytest.mark.slow
def test_edges_go_around_nodes(page):
    choose(page, "drug.json")
    assert behind(page) == []  # age points past drug to cured
    page.locator('.mk-node[data-name="drug"] .mk-title').click()
    age, drug = middle(page, "age"), middle(page, "drug")
    title = page.locator('.mk-node[data-name="drug"] .mk-title').bounding_box()
    page.mouse.move(title["x"] + 5, title["y"] + 5)
    page.mouse.down()
    page.mouse.move(title["x"] + 5 + age[0] - drug[0] + 30, title["y"] + 5, steps=4)
    assert behind(page) == []  # while it is dragged, too
    page.mouse.up()
    settled(page)
    assert behind(page) == []


def behind(page):
    """Return the names of nodes that an edge passes behind."""
    return page.evaluate("""() => {
        const nodes = [...document.querySelectorAll('.mk-node')];
        const within = ({ x, y }, r) => x > r.left + 1 && x < r.right - 1 && y > r.top + 1 && y < r.bottom - 1;
        return [...document.querySelectorAll('.mk-edge .mk-line')].flatMap((line) => {
            const [long, at] = [line.getTotalLength(), line.getScreenCTM()];
            const spot = (k) => line.getPointAtLength((long * (k + 0.5)) / 60).matrixTransform(at);
            const points = [...Array(60).keys()].map(spot);
            const crossed = (n) => points.some((p) => within(p, n.querySelector('.mk-box').getBoundingClientRect()));
            return nodes.filter(crossed).map((n) => n.dataset.name);
        });
    }""")


@pytest.mark.slow
def test_zoom_pan_and_fit(asia):
    def zoom():
        settled(asia)
        asia.wait_for_timeout(250)  # the drawing is made anew once the camera rests
        return asia.locator('.mk-node[data-name="tub"] .mk-box').bounding_box()["width"]

    asia.wait_for_timeout(250)
    wide, place = zoom(), middle(asia, "tub")
    asia.mouse.move(*place)
    asia.mouse.wheel(0, -200)
    assert zoom() == pytest.approx(wide * math.exp(200 * 0.0016), rel=0.01)
    assert middle(asia, "tub") == pytest.approx(place, abs=1.5)  # what is under the pointer stays there
    asia.mouse.move(30, 120)
    asia.mouse.down()
    asia.mouse.move(90, 150, steps=4)
    asia.mouse.up()
    zoom()
    assert middle(asia, "tub") == pytest.approx((place[0] + 60, place[1] + 30), abs=1.5)
    asia.get_by_role("button", name="Show everything (f)").click()
    assert zoom() == pytest.approx(wide, rel=0.01)
    assert middle(asia, "tub") == pytest.approx(place, abs=1.5)
