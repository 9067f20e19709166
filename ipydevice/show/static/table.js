// Names and where they live: a treegrid that draws only the rows in sight.

const ROW = 24; // px
const COLUMNS = ['name', 'kind', 'device', 'shape', 'dtype', 'bytes', 'remark'];
const [NAME, KIND, DEVICE, , DTYPE, BYTES, REMARK, ODD, LEVEL, HEADER, OPEN, AT_LEAST] = Array(12).keys();
const HUES = ['#1f77b4', '#d95f02', '#2ca02c', '#9467bd', '#c49c00', '#17becf', '#e377c2', '#8c564b'];

function bytesText(count) {
  if (count === null) return '';
  let unit = 0;
  while (count >= 1024 && unit < 4) { count /= 1024; unit++; }
  return `${unit && count < 100 ? count.toFixed(1) : Math.round(count)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][unit]}`;
}

function heldText(row) {
  const amount = bytesText(row[BYTES]);
  return amount && row[AT_LEAST] ? say('at least {amount}', { amount }) : amount;
}

function make(tag, attributes = {}, text = '') {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text) node.textContent = text;
  return node;
}

/**
 * @param {Array[]} rows [name, kind, device, shape, dtype, bytes, remark, odd, level, header, open, atLeast]
 * @param {{left: number, atLeast: boolean}} table rows that exist but were not sent, and whether there are more of them
 * @param {Object<string, string>} colours of devices, as in ipydevice.show.colours
 */
function deviceTable(rows, { left, atLeast = false }, colours = {}) {
  const folded = new Set();
  rows.forEach((row, i) => { if (row[HEADER] && !row[OPEN]) folded.add(i); });
  const devices = [...new Set(rows.map((row) => row[DEVICE]).filter(Boolean))].sort();
  const hue = new Map(devices.map((device, i) => [device, colours[device] ?? HUES[i % HUES.length]]));
  let order = null; // {column, up}
  let seen = []; // indices of the rows that stand in the table now
  let at = 0; // position of the focus in `seen`
  let drawn = '';

  const root = make('div', { class: 'ipd-grid' });
  const bar = make('div', { class: 'ipd-tools', role: 'search' });
  const filter = make('input', { type: 'search', placeholder: say('filter: name, kind, device, dtype'), 'aria-label': say('Filter the table') });
  const fold = make('button', { type: 'button' });
  const copy = make('button', { type: 'button' }, say('copy table'));
  const status = make('span', { role: 'status' });
  bar.append(filter, fold, copy, status);
  const grid = make('div', { role: 'treegrid', 'aria-label': say('Names and their devices'), 'aria-colcount': COLUMNS.length, class: 'ipd-scroll' });
  const head = make('div', { role: 'row', class: 'ipd-row ipd-head', 'aria-rowindex': 1 });
  const inner = make('div', { role: 'rowgroup', class: 'ipd-inner' });
  const top = make('div', { role: 'rowgroup', class: 'ipd-top' });
  top.append(head);
  grid.append(top, inner);
  const detail = make('div', { class: 'ipd-detail' }); // the whole of what the columns have no room for
  root.append(bar, grid, detail);
  const titles = [say('name'), say('kind'), say('device'), say('shape'), say('dtype'), say('bytes'), say('remark')];
  const heads = titles.map((column, index) => {
    const cell = make('div', { role: 'columnheader', 'aria-sort': 'none' });
    const button = make('button', { type: 'button' }, column);
    button.onclick = () => sortBy(index);
    cell.append(button);
    head.append(cell);
    return cell;
  });

  function sortBy(column) {
    if (order?.column !== column) order = { column, up: true };
    else order = order.up ? { column, up: false } : null;
    heads.forEach((cell, i) => cell.setAttribute('aria-sort', order?.column !== i ? 'none' : order.up ? 'ascending' : 'descending'));
    build();
  }

  let texts; // of each row what can be searched; made at the first search, for 100,000 rows may be here
  const matches = (i, words) => words.every((word) => texts[i].includes(word));

  function build() {
    const words = filter.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const real = (i) => !rows[i][HEADER] || rows[i][DEVICE];
    if (words.length) texts ??= rows.map((row) => [NAME, KIND, DEVICE, DTYPE, REMARK].map((c) => row[c]).join('\n').toLowerCase());
    let hits = 0;
    seen = [];
    if (order) {
      for (let i = 0; i < rows.length; i++) if (real(i) && matches(i, words)) seen.push(i);
      hits = seen.length;
      const { column, up } = order;
      const key = (i) => rows[i][column] ?? -1;
      seen.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0) * (up ? 1 : -1) || a - b);
    } else if (words.length) {
      const above = [];
      for (let i = 0; i < rows.length; i++) {
        while (above.length && rows[above.at(-1).i][LEVEL] >= rows[i][LEVEL]) above.pop();
        const hit = real(i) && matches(i, words);
        if (hit) {
          for (const outer of above) if (!outer.in) { seen.push(outer.i); outer.in = true; }
          seen.push(i);
          hits++;
        }
        if (rows[i][HEADER]) above.push({ i, in: hit });
      }
    } else {
      let hidden = Infinity; // level of the folded row above
      for (let i = 0; i < rows.length; i++) {
        if (real(i)) hits++;
        if (rows[i][LEVEL] > hidden) continue;
        hidden = Infinity;
        seen.push(i);
        if (folded.has(i)) hidden = rows[i][LEVEL];
      }
    }
    const count = { count: hits.toLocaleString() };
    const matching = !hits ? say('nothing matches') : hits === 1 ? say('{count} name', count) : say('{count} names', count);
    const unlisted = atLeast ? say('at least {amount}', { amount: left.toLocaleString() }) : left.toLocaleString();
    status.textContent = matching + (left ? say(', {count} more not listed', { count: unlisted }) : '');
    fold.textContent = folded.size ? say('unfold all') : say('fold all');
    fold.hidden = !rows.some((row) => row[HEADER]);
    grid.setAttribute('aria-rowcount', seen.length + 1);
    inner.style.height = `${seen.length * ROW}px`;
    at = Math.max(0, Math.min(at, seen.length - 1));
    draw(true);
  }

  const isFolded = (i) => folded.has(i) && !filter.value.trim();

  function rowNode(k) {
    const index = seen[k];
    const row = rows[index];
    const tree = !order;
    const node = make('div', { role: 'row', class: 'ipd-row', 'aria-rowindex': k + 2, tabindex: k === at ? 0 : -1 });
    node.dataset.k = k;
    node.style.top = `${k * ROW}px`;
    if (tree) node.setAttribute('aria-level', row[LEVEL]);
    if (tree && row[HEADER]) node.setAttribute('aria-expanded', !isFolded(index));
    const sign = tree && row[HEADER] ? (isFolded(index) ? '▸ ' : '▾ ') : '';
    COLUMNS.forEach((column, c) => {
      const text = c === BYTES ? heldText(row) : c === REMARK && row[ODD] ? `! ${row[c]}` : row[c];
      const cell = make('div', { role: 'gridcell', class: `ipd-${column}` }, c === NAME ? sign + text : text);
      if (text.length > 12) cell.title = text;
      if (c === NAME && tree) cell.style.paddingLeft = `${(row[LEVEL] - 1) * 14}px`;
      if (c === DEVICE && text) cell.style.setProperty('--hue', hue.get(text));
      if (c === REMARK && row[ODD]) cell.classList.add('ipd-odd');
      if (c === NAME && row[HEADER]) cell.classList.add('ipd-group');
      node.append(cell);
    });
    return node;
  }

  function draw(force = false) {
    const first = Math.max(0, Math.floor(grid.scrollTop / ROW) - 5);
    const last = Math.min(seen.length, first + Math.ceil((grid.clientHeight || 340) / ROW) + 12);
    const range = `${first}-${last}`;
    if (!force && range === drawn) return;
    drawn = range;
    const focused = inner.contains(document.activeElement);
    const nodes = [];
    for (let k = first; k < last; k++) nodes.push(rowNode(k));
    // The focused row stays when it is scrolled out of sight, or the page would lose the focus.
    if (seen.length && (at < first || at >= last)) nodes.push(rowNode(at));
    inner.replaceChildren(...nodes);
    if (focused) inner.querySelector(`[data-k="${at}"]`)?.focus({ preventScroll: true });
  }

  function focusRow(k) {
    if (!seen.length) return;
    at = Math.max(0, Math.min(seen.length - 1, k));
    const row = rows[seen[at]];
    detail.textContent = [row[NAME], row[DEVICE], row[REMARK]].filter(Boolean).join(' · ');
    const y = at * ROW;
    const room = grid.clientHeight - ROW; // below the head, which stays in place
    if (y < grid.scrollTop) grid.scrollTop = y;
    else if (y + ROW > grid.scrollTop + room) grid.scrollTop = y + ROW - room;
    draw(true);
    inner.querySelector(`[data-k="${at}"]`)?.focus({ preventScroll: true });
  }

  function toggle(k, open) {
    const index = seen[k];
    if (order || !rows[index][HEADER]) return false;
    const was = !folded.has(index);
    if (open === was) return false;
    if (was) folded.add(index);
    else folded.delete(index);
    build();
    focusRow(k);
    return true;
  }

  function outer(k) {
    for (let j = k - 1; j >= 0; j--) if (rows[seen[j]][LEVEL] < rows[seen[k]][LEVEL]) return j;
    return k;
  }

  const page = () => Math.max(1, Math.floor(grid.clientHeight / ROW) - 2);
  const keys = {
    ArrowDown: () => focusRow(at + 1),
    ArrowUp: () => focusRow(at - 1),
    PageDown: () => focusRow(at + page()),
    PageUp: () => focusRow(at - page()),
    Home: () => focusRow(0),
    End: () => focusRow(seen.length - 1),
    ArrowRight: () => toggle(at, true) || (rows[seen[at]][HEADER] && focusRow(at + 1)),
    ArrowLeft: () => toggle(at, false) || (!order && focusRow(outer(at))),
    Enter: () => toggle(at),
    ' ': () => toggle(at),
  };
  inner.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key] || !seen.length) return;
    event.preventDefault();
    keys[event.key]();
  });
  inner.addEventListener('click', (event) => {
    const node = event.target.closest('.ipd-row');
    if (!node || String(getSelection())) return; // selecting text is not a click
    at = Number(node.dataset.k);
    if (!toggle(at)) focusRow(at);
  });
  grid.addEventListener('scroll', () => requestAnimationFrame(() => draw()), { passive: true });
  let timer;
  filter.addEventListener('input', () => { clearTimeout(timer); timer = setTimeout(build, 60); });
  fold.onclick = () => {
    if (folded.size) folded.clear();
    else rows.forEach((row, i) => row[HEADER] && folded.add(i));
    build();
  };
  copy.onclick = async () => {
    const lines = seen.map((i) => rows[i].slice(0, 5).concat(heldText(rows[i]), rows[i][REMARK]).join('\t'));
    const how = await copyText([titles.join('\t'), ...lines].join('\n'), root);
    status.textContent = how === 'copied' ? say('The table is on the clipboard.') : say('Select the text and copy it.');
  };
  build();
  return root;
}
