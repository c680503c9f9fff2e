// What is wrong with the page as it stands: controls without names, pale texts, overflow, clipped or overlapping texts.
() => {
  const found = [];
  const modal = document.querySelector('dialog[open]'); // what lies behind a dialog is not read
  const unseen = (e) => { for (let up = e; up; up = up.parentElement) if (getComputedStyle(up).clipPath === 'inset(50%)') return true; return false; };
  const shown = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && !unseen(e) && (modal?.contains(e) ?? true);
  const say = (e) => `${e.tagName.toLowerCase()}.${e.getAttribute('class') ?? ''} ${JSON.stringify((e.textContent || '').trim().slice(0, 40))}`;
  // names
  for (const e of document.querySelectorAll('button, input, select, textarea, summary, [role=button], [role=tab], [role=group]')) {
    if (!shown(e)) continue;
    const words = [e.getAttribute('aria-label'), ...[...(e.labels ?? [])].map((l) => l.textContent), e.tagName === 'INPUT' ? '' : e.textContent];
    if (!words.some((w) => w && w.trim())) found.push(`no name: ${say(e)}`);
    const [named, read] = [e.getAttribute('aria-label'), e.tagName === 'BUTTON' ? e.innerText.replace('…', '').trim() : ''];
    if (named && !named.includes(read)) found.push(`read as ${JSON.stringify(named)}: ${say(e)}`);
  }
  // contrasts
  const paint = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (text) => {
    paint.clearRect(0, 0, 1, 1); paint.fillStyle = text; paint.fillRect(0, 0, 1, 1);
    return [...paint.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const ground = (e) => {
    for (let up = e; up; up = up.parentElement) { const c = rgba(getComputedStyle(up).backgroundColor); if (c[3] > 200) return c; }
    return [255, 255, 255, 255];
  };
  const behind = (e) => {
    if (e instanceof SVGElement) {
      const home = e.closest('.mk-row-state') ?? e.closest('.mk-node');
      if (!home) return [ground(e.closest('svg').parentElement)];
      const names = e.closest('.mk-row-state') ? '.mk-track, .mk-fill' : ':scope > .mk-box';
      return [...home.querySelectorAll(names)].map((r) => rgba(getComputedStyle(r).fill));
    }
    const bars = [...(e.parentElement?.querySelectorAll(':scope > .mk-bar-fill') ?? [])].map((b) => rgba(getComputedStyle(b).backgroundColor));
    return [ground(e), ...bars];
  };
  const texts = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode;
    const e = node.parentElement;
    if (!node.data.trim() || !shown(e) || e.closest('title, option, datalist, noscript, .mk-dim') || e.closest('button:disabled')) continue;
    texts.push([node, e]);
    const ink = rgba(e instanceof SVGElement ? getComputedStyle(e).fill : getComputedStyle(e).color);
    for (const back of behind(e)) {
      const c = contrast(ink, back);
      if (c < 4.5) found.push(`contrast ${c.toFixed(2)}: ${say(e)}`);
    }
  }
  // overflow
  if (document.scrollingElement.scrollWidth > innerWidth) found.push(`the page is ${document.scrollingElement.scrollWidth} px wide`);
  const frameOf = (e) => {
    let frame = { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
    for (let up = e; up; up = up.parentElement) {
      if (getComputedStyle(up).overflow === 'visible') continue;
      const r = up.getBoundingClientRect();
      frame = { left: Math.max(frame.left, r.left), top: Math.max(frame.top, r.top), right: Math.min(frame.right, r.right), bottom: Math.min(frame.bottom, r.bottom) };
    }
    return frame;
  };
  for (const e of document.querySelectorAll('button, input, select, label, p, h1, h2, h3, summary, li')) {
    if (!shown(e) || e.closest('.mk-scroll, .mk-tabs, .mk-sr')) continue;
    const r = e.getBoundingClientRect();
    if (r.right > innerWidth + 1 || r.left < -1) found.push(`outside the window: ${say(e)}`);
    const style = getComputedStyle(e);
    if (e.tagName === 'BUTTON' && style.textOverflow !== 'ellipsis' && e.scrollWidth > e.clientWidth + 1) found.push(`clipped: ${say(e)}`);
  }
  // texts cut off by a box that neither scrolls nor shows an ellipsis
  for (const [node, e] of texts) {
    if (e.closest('.mk-canvas')) continue;
    const range = document.createRange(); range.selectNodeContents(node);
    const t = range.getBoundingClientRect();
    for (let up = e; up && up !== document.body; up = up.parentElement) {
      const style = getComputedStyle(up);
      if (/auto|scroll/.test(style.overflowX) || style.textOverflow === 'ellipsis') break;
      if (style.overflowX === 'visible') continue;
      const r = up.getBoundingClientRect();
      if (t.left < r.left - 1 || t.right > r.right + 1 || t.top < r.top - 3 || t.bottom > r.bottom + 3) { found.push(`cut off: ${say(e)}`); break; }
    }
  }
  // texts on texts; what floats above the rest covers it
  const layer = (e) => e.closest('.mk-notice, .mk-toasts');
  const boxes = [];
  for (const [node, e] of texts) {
    const range = document.createRange(); range.selectNodeContents(node);
    const frame = frameOf(e);
    for (const r of range.getClientRects()) {
      const box = { left: Math.max(r.left, frame.left), right: Math.min(r.right, frame.right), top: Math.max(r.top, frame.top), bottom: Math.min(r.bottom, frame.bottom), e };
      if (box.right - box.left > 1 && box.bottom - box.top > 1) boxes.push(box);
    }
  }
  for (let i = 0; i < boxes.length; i += 1) for (let j = i + 1; j < boxes.length; j += 1) {
    const [a, b] = [boxes[i], boxes[j]];
    if (a.e === b.e || layer(a.e) !== layer(b.e)) continue;
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (across > 2 && down > 4) found.push(`overlap: ${say(a.e)} and ${say(b.e)}`);
  }
  // texts of nodes stay inside their boxes
  for (const text of document.querySelectorAll('.mk-node text')) {
    const [t, b] = [text.getBoundingClientRect(), text.closest('.mk-node').querySelector('.mk-box').getBoundingClientRect()];
    if (t.width && (t.left < b.left - 1 || t.right > b.right + 1)) found.push(`outside its node: ${say(text)}`);
  }
  return found;
}
