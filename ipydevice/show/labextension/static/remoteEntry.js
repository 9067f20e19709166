// A module-federation container written by hand: no webpack, no npm, no build step.
// JupyterLab loads it as it loads every prebuilt extension (docs: "Prebuilt Extensions").
// Nothing checks versions for us here, so every call is guarded; without this file the
// panel still inserts and copies, and runs cells by their editors.
(function () {
  'use strict';
  let scope = null;

  /** The module that the application itself uses; there is one loaded version of it. */
  async function shared(name) {
    const versions = (scope && scope[name]) || {};
    const loaded = Object.keys(versions).find((v) => versions[v].loaded) ?? Object.keys(versions)[0];
    if (!loaded) throw new Error(`ipydevice: no shared module ${name}`);
    return (await versions[loaded].get())();
  }

  async function makePlugin() {
    const { INotebookTracker, NotebookActions } = await shared('@jupyterlab/notebook');
    let palette = null;
    try {
      palette = (await shared('@jupyterlab/apputils')).ICommandPalette;
    } catch {
      // Notebook 7 has its own: the command exists there without an entry.
    }

    function activate(app, tracker, commands) {
      /** The notebook with this cell, the current one first: two views of one file share their cells. */
      const panelOf = (cellId) => {
        const holds = (p) => p && p.content.widgets.some((cell) => cell.model.id === cellId);
        if (holds(tracker.currentWidget)) return tracker.currentWidget;
        return tracker.find(holds) ?? null;
      };
      const cellOf = (panel, cellId) => panel.content.widgets.find((cell) => cell.model.id === cellId);

      const makeActive = (cellId) => {
        const panel = panelOf(cellId);
        if (!panel) return false;
        const book = panel.content;
        book.activeCellIndex = book.widgets.indexOf(cellOf(panel, cellId));
        book.deselectAll?.();
        book.scrollToItem?.(book.activeCellIndex, 'smart').catch(() => {});
        // JupyterLab 4.0 gives cells no focus: there the notebook takes the keys for its active cell.
        book.activeCell?.node.focus();
        if (!book.activeCell?.node.contains(document.activeElement)) book.node.focus();
        return true;
      };

      /** JupyterLab 4.0 can only run the active cell. */
      const runCell = (panel, cell) => {
        const book = panel.content;
        if (NotebookActions.runCells) return NotebookActions.runCells(book, [cell], panel.sessionContext);
        book.activeCellIndex = book.widgets.indexOf(cell);
        book.deselectAll();
        return NotebookActions.run(book, panel.sessionContext);
      };

      /** Runs cells in order, up to the first failure; true when all ran, null when they are not here. */
      const run = async (cellIds) => {
        const panel = panelOf(cellIds[0]);
        const cells = panel ? cellIds.map((id) => cellOf(panel, id)) : [];
        if (!cells.length || cells.some((cell) => !cell)) return null;
        for (const cell of cells) {
          if (!(await runCell(panel, cell))) return false;
        }
        return true;
      };

      globalThis.__ipydevice = {
        version: 1,
        document: (cellId) => panelOf(cellId)?.content.model?.sharedModel ?? null,
        activate: makeActive,
        run,
      };

      const command = 'ipydevice:apply';
      app.commands.addCommand(command, {
        label: 'Device fix: apply',
        caption: 'Apply the first fix of the panel in the active cell, or of the last panel in the notebook',
        execute: () => {
          const book = tracker.currentWidget?.content;
          const inCell = book?.activeCell?.node.querySelector('.ipydevice-live .ipd-main');
          const inBook = [...(book?.node.querySelectorAll('.ipydevice-live') ?? [])].at(-1)?.querySelector('.ipd-main');
          (inCell ?? inBook)?.click();
        },
      });
      commands?.addItem({ command, category: 'Notebook Operations' });
    }

    return {
      id: 'ipydevice:plugin',
      description: 'Finds, shows and runs the cells that a fix of ipydevice names.',
      autoStart: true,
      requires: [INotebookTracker],
      optional: palette ? [palette] : [],
      activate,
    };
  }

  globalThis._JUPYTERLAB = globalThis._JUPYTERLAB || {};
  globalThis._JUPYTERLAB.ipydevice = {
    init: (shareScope) => { scope = shareScope; },
    get: async (module) => {
      if (module !== './extension') throw new Error(`ipydevice: no module ${module}`);
      const plugin = await makePlugin();
      return () => ({ __esModule: true, default: plugin });
    },
  };
})();
