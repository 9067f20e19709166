// The live panel: the static HTML that Python made, with buttons, and the table in place of the plain one.

/** Say in the panel, and to a screen reader, what a button did. Never a silent nothing. */
function report(root, text) {
  root.querySelector('.ipd-status').textContent = text;
}

const names = (steps) => steps.rerun.map((r) => r.name).join(say(', '));

/** The main button: replace, insert, run in order. Where that can't be done: insert, and say why. */
async function applyFix(model, el, root, data, fix) {
  const found = openDocument(model, fix, data.failed, data.uid);
  const steps = found && plan(listCells(found.nb), fix, found.index);
  if (!found || steps.why) return insertFix(model, el, root, data, fix, steps?.why);
  const { nb } = found;
  // Only the kernel can write files; its cell says itself what to run then, and the page puts that below it.
  if (fix.kind === 'patch') Object.assign(steps, { setup: { below: found.index, text: fix.inserts[0] }, rerun: [] });
  const ids = carryOut(nb, steps);
  if (!ids.length) return report(root, say('Done. Nothing has to run again.'));
  const what = [
    steps.replace.length && say('text replaced (Ctrl+Z in the cell undoes it)'),
    steps.setup && say('cell inserted below'),
  ].filter(Boolean).join(say(', '));
  const cells = names(steps) || say('the new cell');
  report(root, say('{what}; running {cells} …', { what: what || say('Running'), cells }));
  const outcome = await runCells(el, nb, ids);
  report(root, {
    done: say('Done: {cells} ran.', { cells }),
    failed: say('A cell failed again: see its output.'),
    sent: say('{what}; {cells} runs.', { what: what || say('Sent'), cells }),
    manual: say('{what}. Now run {cells}.', { what: what || say('Nothing was run'), cells }),
  }[outcome]);
}

async function insertFix(model, el, root, data, fix, why = '') {
  const because = why ? say('{why}, so nothing was replaced. ', { why: `${why[0].toUpperCase()}${why.slice(1)}` }) : '';
  const found = openDocument(model, fix, data.failed, data.uid);
  if (!found) return copyFix(root, fix, because + say('This page gives no way to insert a cell. '));
  const made = insertBelow(found.nb, found.index, fix.inserts);
  report(root, because + say('Inserted below: read it, then run it.'));
  await makeActive(el, found.nb, made[0]);
}

async function copyFix(root, fix, because = '') {
  const how = await copyText(fix.inserts.join('\n\n'), root);
  const told = how === 'copied' ? say('Copied: paste it into a new cell.') : say('Copy the selected code into a new cell.');
  report(root, because + told);
}

function addButtons(model, el, root, data) {
  const last = data.fixes.find((fix) => fix.rerun.length); // cells can be checked where the page lets us change them
  const inNotebook = last && openDocument(model, last, data.failed, data.uid);
  for (const item of root.querySelectorAll('[data-fix]')) {
    const fix = data.fixes[Number(item.dataset.fix)];
    const actions = make('span', { class: 'ipd-actions', role: 'group', 'aria-label': say('Fix {number}', fix) });
    const add = (label, act, extra) => {
      const button = make('button', { type: 'button', 'aria-label': `${label}: ${fix.title}`, ...extra }, label);
      const failed = (error) => report(root, say('That did not work: {error}', { error: error.message ?? error }));
      button.onclick = () => act().catch(failed);
      actions.append(button);
    };
    add(fix.main, () => applyFix(model, el, root, data, fix), { class: 'ipd-main' });
    const checked = inNotebook && withCheck(fix);
    if (checked) {
      const act = () => applyFix(model, el, root, data, checked);
      const both = say('{title}, then run the failed cell under {check}', { title: fix.title, check: CHECK });
      add(say('fix & check the rest'), act, { title: both });
    }
    add(say('insert'), () => insertFix(model, el, root, data, fix));
    add(say('copy'), () => copyFix(root, fix));
    item.querySelector('span').after(' ', actions);
  }
}

const PATIENCE = 5000; // ms until a kernel that has not answered counts as busy

/** A question to the kernel; where there is none any more JupyterLab throws, and nobody answers. */
function ask(model, what) {
  try {
    model.send({ ask: what });
  } catch {
    // The button says so when its patience is over.
  }
}

/** Buttons for the error as a whole: a report to post, and the memory that it holds. */
function addFoot(model, root, data) {
  if (!data.report) return;
  const foot = make('div', { class: 'ipd-foot', role: 'group', 'aria-label': say('The whole error') });
  const what = say('Message, lines, devices and versions as Markdown; no data');
  const copy = make('button', { type: 'button', title: what }, say('copy as report'));
  copy.onclick = async () => {
    const how = await copyText(data.report, root);
    const copied = say('The report is on the clipboard: read it, then paste it.');
    report(root, how === 'copied' ? copied : say('Copy the selected report.'));
  };
  const forget = make('button', { type: 'button', hidden: '' });
  const wait = say('The kernel forgets the error as soon as it is free …');
  forget.onclick = () => {
    forget.hidden = true;
    report(root, wait);
    ask(model, 'forget');
    setTimeout(() => {
      if (root.querySelector('.ipd-status').textContent !== wait) return;
      report(root, say('{wait} It is busy, or was restarted: then the error has gone with it.', { wait }));
    }, PATIENCE);
  };
  const heard = (message) => {
    if ('held' in message) {
      forget.hidden = !message.held;
      forget.textContent = say('forget the error: frees {sizes}', { sizes: message.held });
    } else if ('freed' in message) {
      forget.hidden = true;
      const freed = message.freed
        ? say('{sizes} can be used again', { sizes: message.freed })
        : say('what it held can be used again');
      report(root, say('The error is forgotten: {freed}. %debug and %tb have nothing to show.', { freed }));
    }
  };
  foot.append(copy, forget);
  (root.querySelector('.ipd-fold') ?? root).append(foot);
  model.on('msg:custom', heard);
  ask(model, 'held');
  return () => model.off('msg:custom', heard);
}

/** Deflated JSON of a trait (`ipydevice.show.as_widget`). */
async function read(model, trait) {
  const plain = new Blob([model.get(trait)]).stream().pipeThrough(new DecompressionStream('deflate'));
  return JSON.parse(await new Response(plain).text());
}

/** Build each grid when it is first looked at; most panels are read without. */
function addTables(model, root, data) {
  const plain = root.querySelectorAll('.ipd-table');
  let tables;
  data.tables.forEach((table, index) => {
    const details = plain[index];
    const place = details.querySelector('.ipd-rows');
    const build = async () => {
      if (!details.open || place.dataset.taken) return;
      place.dataset.taken = 'true';
      tables ??= read(model, 'rows');
      place.replaceWith(deviceTable((await tables)[index], table, data.colours));
    };
    const tried = () => build().catch((error) => {
      const why = { error: error.message ?? error };
      place.textContent = say('This page cannot show the table ({error}): %devices --plain prints it.', why);
    });
    details.addEventListener('toggle', tried);
    tried();
  });
}

/**
 * Plain keys belong to the panel, modified ones (Ctrl+S) to the application: with a row focused, "b" would
 * insert a cell and "m" turn the failed one into Markdown. Lumino looks for the attribute on the focused
 * element itself; Notebook 7 listens in the capture phase at document, so this has to come first, at window.
 */
function guardKeys(root) {
  const name = 'data-lm-suppress-shortcuts';
  const guard = (event) => {
    if (!(event.target instanceof Element) || !root.contains(event.target)) return;
    if (event.ctrlKey || event.metaKey || event.altKey) event.target.removeAttribute(name);
    else event.target.setAttribute(name, 'true');
  };
  const stop = (event) => { if (!(event.ctrlKey || event.metaKey || event.altKey)) event.stopPropagation(); };
  window.addEventListener('keydown', guard, true);
  root.addEventListener('keydown', stop);
  return () => window.removeEventListener('keydown', guard, true);
}

/** Hide the static twin in the same output area while this view is there; returns what shows it again. */
function hideStatic(el, uid) {
  const hidden = new Set();
  const hide = () => {
    const area = el.closest('.jp-OutputArea, .output_area, .output') ?? el.getRootNode();
    for (const twin of area.querySelectorAll?.(`.ipydevice-static.ipydevice-${uid}`) ?? []) {
      const child = twin.closest('.jp-OutputArea-child') ?? twin;
      child.style.display = 'none';
      hidden.add(child);
    }
  };
  // A view is often rendered before it is in the page, and the page may draw its outputs anew.
  const watch = new ResizeObserver(hide);
  watch.observe(el);
  return () => {
    watch.disconnect();
    for (const child of hidden) child.style.removeProperty('display');
  };
}

export default {
  async render({ model, el }) {
    const data = await read(model, 'data');
    translations = data.translations;
    el.innerHTML = data.html; // escaped by ipydevice.show.as_html, the same text as in the static output
    const root = el.firstElementChild;
    root.classList.add('ipydevice-live');
    addButtons(model, el, root, data);
    const quiet = addFoot(model, root, data);
    root.append(make('div', { class: 'ipd-status', role: 'status' }));
    addTables(model, root, data);
    const release = guardKeys(root);
    const show = hideStatic(el, data.uid);
    return () => { quiet?.(); release(); show(); };
  },
};
