"""A hub's Content-Security-Policy: no inline script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import Jupyter
from panels import CELLS
from playwright.sync_api import expect

# JupyterLab itself compiles the schemas of its settings ('unsafe-eval') and sets styles on elements; anywidget loads
# the script of a widget from a blob. Nothing else is allowed.
POLICY = "; ".join((
    "default-src 'self'",
    "script-src 'self' 'unsafe-eval' blob:",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "font-src 'self' data:",
    "connect-src 'self' ws://127.0.0.1:*",
    "worker-src 'self' blob:",
    "object-src 'none'",
    "base-uri 'self'",
    "form-action 'self'",
    "frame-ancestors 'self'",
))  # fmt: skip
WATCH = """
window.violations = [];
document.addEventListener('securitypolicyviolation', (event) =>
  violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));
"""
INLINE = """
() => {
  const script = document.createElement('script');
  script.textContent = 'window.inlineRan = true';
  document.head.append(script);
  return window.inlineRan === true;
}
"""


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    headers = f'--ServerApp.tornado_settings={{"headers": {{"Content-Security-Policy": "{POLICY}"}}}}'
    server = Jupyter(tmp_path_factory.mktemp("strict"), options=[headers])
    yield server
    server.stop()


def test_the_panel_works_and_breaks_no_rule(open_notebook, strict):
    notebook = open_notebook(CELLS, strict)
    page = notebook.page
    page.evaluate(WATCH)
    for index in range(3):
        notebook.run(index)
    live = notebook.live(2)
    live.locator(".ipd-table > summary").click()
    expect(live.get_by_role("treegrid")).to_contain_text("labels0")
    live.get_by_role("button", name="fix & re-run In [2], In [3]").click()
    expect(notebook.cell(2).locator(".jp-OutputArea")).to_contain_text("passed cuda:0")
    assert page.evaluate("violations") == []
    assert page.evaluate("typeof globalThis.__ipydevice") == "object"  # the labextension, too
    assert page.evaluate(INLINE) is False  # the policy is in force
    assert page.evaluate("violations.length") == 1
