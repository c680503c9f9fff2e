"""Several models at once in the page: going from one to another, new ones, changes made elsewhere, room for panels."""

import pytest

from studio_page import bring, choose, eventually, opened, settled, state


def middle(box):
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def switch(page, name):
    """Go to another open model by the menu."""
    page.locator(".mk-switch").click()
    page.locator(".mk-open-item", has=page.get_by_text(name, exact=True)).last.click()
    page.locator(".mk-model-name", has_text=name).wait_for()
    settled(page)


def model_id(page):
    """Return the id of the model that is shown, as the address remembers it."""
    return page.evaluate("""async () => {
        const models = await (await fetch('/api/models')).json();
        return models.filter((each) => each.name === document.querySelector('.mk-model-name').textContent).at(-1).id; }""")


def send(page, verb, body):
    """Change the model as another window would."""
    return page.evaluate(
        """async ([id, verb, body]) => (await fetch(`/api/models/${id}/${verb}`, { method: 'POST',
            headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })).json()""",
        [model_id(page), verb, body],
    )


def places(page):
    """Return where the server has the nodes."""
    view = page.evaluate("async (id) => (await fetch(`/api/models/${id}`)).json()", model_id(page))
    return {node["name"]: (node["x"], node["y"]) for node in view["nodes"]}


def note_of(page):
    """Return the note on smoke that the server has."""
    return page.evaluate(
        "async (id) => (await (await fetch(`/api/models/${id}/nodes/smoke`)).json()).note", model_id(page)
    )


def test_open_models_stay_in_reach_with_their_findings(asia):
    state(asia, "xray", "yes").click()
    settled(asia)
    choose(asia, "Cancer")
    assert asia.locator(".mk-findings li").count() == 0
    switch(asia, "asia")
    assert eventually(asia, lambda: asia.locator(".mk-findings li").count(), 1) == 1
    asia.wait_for_timeout(400)  # until the draft is written
    switch(asia, "cancer")
    asia.reload()
    asia.wait_for_selector("body[data-ready]")
    switch(asia, "asia")  # what another model was told outlives the page
    assert eventually(asia, lambda: asia.locator(".mk-findings li").count(), 1) == 1
    asia.get_by_role("button", name="Undo (Ctrl+Z)").wait_for()


def test_a_new_model_is_named_drawn_where_one_looks_and_tidied(asia):
    asia.mouse.move(300, 400)
    asia.mouse.wheel(0, 300)
    asia.get_by_role("button", name="Open", exact=True).click()
    asia.locator("dialog").get_by_role("button", name="New model").click()
    asia.locator("#mk-panel-edit").wait_for()
    settled(asia)
    asia.keyboard.type("garden")  # the cursor is in the name, which is typed over
    asia.keyboard.press("Enter")
    asia.locator(".mk-model-name", has_text="garden").wait_for()
    for name in ("rain", "mud"):
        eventually(asia, lambda: asia.evaluate("() => document.activeElement.placeholder === 'name'"), True)
        asia.keyboard.type(name)
        asia.keyboard.press("Enter")
        asia.locator(f'.mk-node[data-name="{name}"]').wait_for()
        settled(asia)
    eventually(asia, lambda: asia.evaluate("() => document.activeElement.value === ''"), True)
    boxes = {n: asia.locator(f'.mk-node[data-name="{n}"] .mk-box').bounding_box() for n in ("rain", "mud")}
    stage = asia.locator(".mk-drawing").bounding_box()
    assert middle(boxes["rain"]) == pytest.approx(middle(stage), abs=20)
    assert abs(middle(boxes["mud"])[1] - middle(boxes["rain"])[1]) > boxes["rain"]["height"]
    asia.mouse.move(200, 200)  # look elsewhere: the next one comes there
    asia.mouse.down()
    asia.mouse.move(420, 330, steps=4)
    asia.mouse.up()
    asia.get_by_label("Name of the new node").fill("fog")
    asia.keyboard.press("Enter")
    fog = asia.locator('.mk-node[data-name="fog"] .mk-box')
    fog.wait_for()
    settled(asia)
    assert middle(fog.bounding_box()) == pytest.approx(middle(stage), abs=20)
    eventually(asia, lambda: asia.evaluate("() => document.activeElement.value === ''"), True)
    asia.keyboard.type("mud")
    asia.keyboard.press("Enter")
    asia.get_by_text("give the new one another name").wait_for()  # and not "use replace()"
    drawn = places(asia)
    asia.get_by_role("button", name="Tidy up: lay all nodes out anew").click()
    assert eventually(asia, lambda: places(asia) != drawn, True)
    assert (
        eventually(asia, lambda: asia.locator(".mk-toast-error").count(), 0) == 0
    )  # what is done clears what was refused
    asia.get_by_role("button", name="Undo (Ctrl+Z)").click()
    assert eventually(asia, lambda: places(asia), drawn) == drawn


def test_a_change_made_elsewhere_is_seen_and_never_overwritten_unasked(asia):
    send(asia, "edit", {"op": "note", "name": "smoke", "text": "theirs"})
    asia.evaluate("() => dispatchEvent(new Event('focus'))")
    asia.get_by_text("This model was changed elsewhere.").wait_for()
    asia.locator('.mk-node[data-name="smoke"] .mk-title').click()
    asia.get_by_role("tab", name="Edit").click()
    note = asia.locator("#mk-panel-edit").get_by_label("Note")
    note.fill("mine")
    note.blur()
    asia.locator("dialog", has_text="Changed elsewhere").wait_for()
    asia.get_by_role("button", name="Reload: see theirs").click()
    assert eventually(asia, note.input_value, "theirs") == "theirs"
    assert asia.get_by_text("This model was changed elsewhere.").is_hidden()
    send(asia, "edit", {"op": "note", "name": "smoke", "text": "theirs again"})
    note.fill("mine")
    note.blur()
    asia.get_by_role("button", name="Keep mine").click()
    assert eventually(asia, lambda: note_of(asia), "mine") == "mine"
    send(asia, "undo", {})
    asia.evaluate("() => dispatchEvent(new Event('focus'))")
    asia.get_by_text("This model was changed elsewhere.").wait_for()
    asia.get_by_role("button", name="Reload", exact=True).click()
    assert eventually(asia, note.input_value, "theirs again") == "theirs again"  # mine was one step more
    note.fill("one")
    note.blur()
    note.fill("two")  # two changes in a row are no conflict with oneself
    note.blur()
    settled(asia)
    assert asia.locator("dialog[open]").count() == 0


def test_the_panel_is_drawn_wider_and_a_narrow_window_shows_all(browser, address, tmp_path):
    with opened(browser, address) as page:
        choose(page, "Asia")
        bar = page.locator(".mk-splitter").bounding_box()
        page.mouse.move(bar["x"] + 4, 400)
        page.mouse.down()
        page.mouse.move(640, 400, steps=4)
        page.mouse.up()
        wide = lambda: page.locator(".mk-side").bounding_box()["width"]  # noqa: E731
        assert wide() == pytest.approx(640, abs=8)
        page.reload()
        page.wait_for_selector("body[data-ready]")
        assert wide() == pytest.approx(640, abs=8)
        page.locator(".mk-splitter").dblclick(position={"x": 4, "y": 300})
        assert wide() < 480
        (tmp_path / "many.csv").write_text(
            ",".join(f"column_number_{k}" for k in range(40)) + "\n" + (",".join("01" * 20) + "\n") * 5
        )
        bring(page, tmp_path / "many.csv")
        page.locator(".mk-model-name", has_text="many").wait_for()
        page.locator("#mk-panel-learn details").first.locator("summary").click()
        rows = page.get_by_role("region", name="The first rows")
        assert rows.evaluate("e => e.scrollWidth > e.clientWidth")
        panel = page.locator("#mk-panel-learn")
        assert panel.evaluate("e => e.scrollWidth === e.clientWidth")
        page.set_viewport_size({"width": 420, "height": 800})
        outside = """() => { const s = document.querySelector('.mk-drawing').getBoundingClientRect();
            return [...document.querySelectorAll('.mk-node .mk-box')].filter((b) => { const r = b.getBoundingClientRect();
                return r.left < s.left - 1 || r.right > s.right + 1 || r.top < s.top - 1 || r.bottom > s.bottom + 1;
            }).length; }"""
        assert eventually(page, lambda: page.evaluate(outside), 0) == 0
        switch(page, "asia")  # its view was of a wide window
        assert eventually(page, lambda: page.evaluate(outside), 0) == 0


def test_what_was_believed_before_is_marked_without_striking_a_word(asia):
    state(asia, "xray", "yes").click()
    settled(asia)
    struck = """() => [...document.querySelectorAll('.mk-tick')].filter((t) => t.style.opacity === '1').map((tick) => {
        const row = tick.closest('.mk-row-state');
        const letters = row.querySelector('.mk-state').getBBox();
        const [top, reach] = [tick.getBBox(), tick.getCTM().f - row.getCTM().f];
        const scale = row.getCTM().d;
        return letters.y + 0.2 * letters.height - (reach / scale + top.y + top.height); })"""
    gaps = eventually(asia, lambda: asia.evaluate(struck) or None)
    assert gaps
    assert min(gaps) > -0.5


def test_messages_leave(asia):
    asia.clock.install()
    asia.reload()
    asia.wait_for_selector("body[data-ready]")
    asia.get_by_label("Find a node").fill("nobody")
    asia.keyboard.press("Enter")
    asia.locator(".mk-toast-error").wait_for()
    asia.clock.fast_forward(8_100)
    assert asia.locator(".mk-toast").count() == 0
