// The open notebook: find cells, replace, insert, run. No markup here.
//
// `plan` is pure and follows the rules of `ipydevice.fixes.apply`; both are tested against
// the same examples. Everything else touches the page, in this order of attempts:
// our labextension (globalThis.__ipydevice), the document behind the widget manager,
// the clipboard, the code shown selected.

let translations = {}; // of what is said here, by the English sentence; none in English (`ipydevice.language`)

/** A sentence in the language of the panel, its {places} filled. */
const say = (sentence, places = {}) =>
  (translations[sentence] ?? sentence).replace(/\{(\w+)\}/g, (_, place) => places[place]);

/** @typedef {{cell: ?number, cell_id: ?string, source: string}} Cell */

/**
 * Index of a cell: by id, else by execution number and text; -1 when it is not there.
 * @param {Cell[]} cells @param {{cell: ?number, cell_id: ?string}} wanted @param {string[]} texts
 */
function findCell(cells, wanted, texts) {
  const byId = wanted.cell_id ? cells.findIndex((c) => c.cell_id === wanted.cell_id) : -1;
  if (byId >= 0) return byId;
  return cells.findIndex((c) => (c.cell ?? null) !== null && c.cell === wanted.cell && texts.includes(c.source));
}

const cellName = (c) => (c.cell === null || c.cell === undefined ? say('the cell') : `In [${c.cell}]`);

/**
 * What applying a fix does to these cells, or why it can't be done. A cell that is to be replaced has to be
 * as it was when it ran; one that is only to run again runs as it is now.
 * @param {Cell[]} cells @param {object} fix @param {number} shown the cell below which a new one goes if none runs again
 */
function plan(cells, fix, shown) {
  const replace = [];
  for (const edit of fix.edits.filter((e) => !e.file)) {
    const index = findCell(cells, edit, [edit.before]);
    if (index < 0) return { why: say('{cell} is not in this notebook any more, or has changed', { cell: cellName(edit) }) };
    if (cells[index].source !== edit.before) return { why: say('{cell} has changed since it ran', { cell: cellName(edit) }) };
    replace.push({ index, text: edit.after });
  }
  const before = replace.map((r) => cells[r.index].source);
  const rerun = [];
  for (const again of fix.rerun) {
    const index = findCell(cells, again, [again.source, ...before]);
    if (index < 0) return { why: say('{cell} is not in this notebook any more', { cell: cellName(again) }) };
    rerun.push({ index, name: cellName(again) });
  }
  const below = rerun.at(-1)?.index ?? shown; // the cell that failed runs last
  return { replace, rerun, setup: fix.setup ? { below, text: fix.setup } : null };
}

const CHECK = '%%devicecheck';

/** The same fix with the failed cell run under a check, which finds all that is wrong with it; null where it is. */
function withCheck(fix) {
  const last = fix.rerun.at(-1);
  if (fix.kind === 'patch' || !last || last.source.trimStart().startsWith(CHECK)) return null;
  const checked = { ...last, source: `${CHECK}\n${last.source}` };
  const isLast = (edit) => (last.cell_id ? edit.cell_id === last.cell_id : edit.cell === last.cell);
  const edits = fix.edits.filter((edit) => !isLast(edit));
  const edited = fix.edits.find(isLast);
  const { cell, cell_id } = last;
  edits.push({ cell, cell_id, file: null, before: edited?.before ?? last.source, after: checked.source });
  return { ...fix, edits, rerun: [...fix.rerun.slice(0, -1), checked] };
}

const idOf = (cell) => cell.getId?.() ?? cell.id;

/** Cells of a JupyterLab document as the plain list that `plan` takes. */
const listCells = (nb) =>
  nb.cells.map((c) => ({ cell: c.execution_count ?? null, cell_id: idOf(c), source: c.getSource() }));

/**
 * The document that holds the cell that failed, and the index of that cell. It runs last of all; the line at
 * fault may be in another one. Where nothing runs again it is the one that shows the panel.
 * VS Code has a stand-in here, an empty notebook (vscode-jupyter-ipywidgets, documentContext.ts):
 * so no document counts unless the cell is in it.
 */
function openDocument(model, fix, failed, uid) {
  const last = fix.rerun.at(-1);
  const texts = last ? [last.source, ...fix.edits.map((edit) => edit.before)] : [failed.source];
  const documents = [
    ...[last?.cell_id, failed.cell_id].map((id) => id && globalThis.__ipydevice?.document?.(id)),
    model.widget_manager?.context?.model?.sharedModel,
  ];
  for (const nb of documents) {
    if (!nb?.cells) continue;
    const cells = listCells(nb);
    const places = [
      () => (last ? findCell(cells, last, texts) : -1),
      () => cellShowing(nb, uid),
      () => findCell(cells, failed, [failed.source]),
    ];
    for (const place of places) {
      const index = place();
      if (index >= 0) return { nb, index };
    }
  }
  return null;
}

/** The cell that shows this panel's static twin. */
function cellShowing(nb, uid) {
  const ours = (output) => String(output.data?.['text/html'] ?? '').includes(`ipydevice-${uid}`);
  return nb.cells.findIndex((c) => c.cell_type === 'code' && c.getOutputs?.().some(ours));
}

/** Ids of the new cells. Inside a transaction `nb.cells` doesn't show them yet, so the returned cell has to do. */
function insertBelow(nb, index, texts) {
  const blank = { cell_type: 'code', metadata: { trusted: true }, outputs: [], execution_count: null };
  return texts.map((source, k) => idOf(nb.insertCell(index + 1 + k, { ...blank, source })));
}

/** Replace the texts and insert the setup, as one step of undo where the notebook has one. */
function carryOut(nb, steps) {
  const ids = steps.rerun.map((r) => idOf(nb.cells[r.index]));
  const act = () => {
    for (const { index, text } of steps.replace) nb.cells[index].setSource(text);
    return steps.setup ? insertBelow(nb, steps.setup.below, [steps.setup.text]) : [];
  };
  let made = [];
  if (nb.transact) nb.transact(() => { made = act(); });
  else made = act();
  return [...made, ...ids];
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** The cell's node in the notebook that shows the panel; JupyterLab 4.0 numbers only what it has rendered. */
async function cellNode(book, nb, id) {
  for (let tries = 0; tries < 40; tries++) {
    const index = nb.cells.findIndex((c) => idOf(c) === id);
    const nodes = [...book.querySelectorAll('.jp-Cell')];
    const numbered = nodes.find((n) => n.dataset.windowedListIndex === String(index));
    const node = numbered ?? (nodes.length === nb.cells.length ? nodes[index] : null);
    if (node?.querySelector('.cm-content')) return node;
    await pause(25);
  }
  return null;
}

async function makeActive(el, nb, id) {
  if (globalThis.__ipydevice?.activate?.(id)) return;
  const book = el.closest('.jp-Notebook');
  const node = book && (await cellNode(book, nb, id));
  if (!node) return;
  node.scrollIntoView({ block: 'nearest' });
  node.focus();
  // JupyterLab 4.0 takes no notice of a focused cell, only of its editor.
  if (!node.classList.contains('jp-mod-active')) node.querySelector('.cm-content').focus();
}

const until = async (condition) => {
  for (let tries = 0; tries < 80 && !condition(); tries++) await pause(25);
  return condition();
};

/** Ctrl+Enter in the editor of a cell; true once the notebook has taken it. */
async function pressRun(node) {
  const prompt = () => node.querySelector('.jp-InputPrompt')?.textContent;
  const before = prompt();
  const editor = node.querySelector('.cm-content');
  node.scrollIntoView({ block: 'nearest' });
  editor.focus();
  // The key runs the active cell, which the focused one becomes in the notebook's own time.
  if (!(await until(() => node.classList.contains('jp-mod-active')))) return false;
  const key = { key: 'Enter', code: 'Enter', keyCode: 13, which: 13, ctrlKey: true };
  editor.dispatchEvent(new KeyboardEvent('keydown', { ...key, bubbles: true, cancelable: true, composed: true }));
  // Lumino runs a command some ticks after its key (holdKeyBindingExecution; seen in Lab 4.6): moving on at
  // once would run the next cell twice and this one never.
  return until(() => prompt() !== before);
}

/**
 * Run cells in order; the kernel drops the rest of the queue at the first failure.
 * Returns "done", "failed", "sent" (running, outcome not known) or "manual" (nothing was run).
 */
async function runCells(el, nb, ids) {
  const extension = globalThis.__ipydevice;
  if (extension?.run) {
    const ran = await extension.run(ids);
    if (ran !== null) return ran ? 'done' : 'failed';
  }
  // Without the extension: what the person would press, in the notebook that holds this panel.
  // In an output view there is no telling which notebook would get the key.
  const book = el.closest('.jp-Notebook');
  if (!book) return 'manual';
  for (const id of ids) {
    const node = await cellNode(book, nb, id);
    if (!node || !(await pressRun(node))) return 'manual';
  }
  return 'sent';
}

/** Put code on the clipboard; without https or permission, show it selected. Returns what happened. */
async function copyText(text, root) {
  try {
    await navigator.clipboard.writeText(text);
    return 'copied';
  } catch {
    const area = document.createElement('textarea');
    area.className = 'ipd-manual';
    area.readOnly = true;
    area.value = text;
    area.rows = Math.min(12, text.split('\n').length);
    area.setAttribute('aria-label', say('Code of the fix'));
    root.querySelector('.ipd-manual')?.remove();
    root.append(area);
    area.select();
    if (!document.execCommand('copy')) return 'selected';
    area.remove();
    return 'copied';
  }
}
