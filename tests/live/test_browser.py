"""The page in a real browser: what it shows, how it is laid out, and what a name cannot do."""

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from gnn_vpa.experiments import Group
from gnn_vpa.experiments.journal import Journal
from gnn_vpa.experiments.progress import Grown
from gnn_vpa.live import Watched, WatchServer

from .conftest import Browser, Run

pytestmark = pytest.mark.browser

EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>" + "x" * 80
TEXT = "document.body.innerText"
WIDE = """
[...document.querySelectorAll("body *")].filter(e =>
  !e.closest(".scroll *, .skip, .hidden") &&
  e.getBoundingClientRect().right > document.documentElement.clientWidth + 1
).map(e => e.outerHTML.slice(0, 80))
"""
UNNAMED = """
[...document.querySelectorAll("[role=progressbar], [role=region], svg[role=img], section, input")]
  .filter(e => !e.getAttribute("aria-label") && !e.getAttribute("aria-labelledby")
               && !(e.labels && e.labels.length)).map(e => e.outerHTML.slice(0, 80))
"""


@pytest.fixture
def address(run: Run) -> Iterator[str]:
    with WatchServer(Watched(run.folder)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.address
        server.shutdown()
        thread.join()


def _grown(*losses: float) -> np.ndarray:
    return np.array([losses, losses, losses], np.float32)


def test_the_page_follows_a_run_from_before_its_beginning_to_its_end(
    run: Run, address: str, browser: Browser
) -> None:
    browser.open(address)
    browser.wait_for(f"{TEXT}.includes('Waiting for the run to begin')")
    cells = [run.cell("sum"), run.cell("vpa")]
    with Journal(run.folder, "cpu") as journal:
        journal.plan(cells, finished=0)
        journal.tell("node 3", Group((cells[0],)), 2, [Grown(cells[0], 0, _grown(2.0, 1.0))])
        journal.write()
        browser.wait_for(f"{TEXT}.includes('0 of 2 cells done')")
        browser.wait_for(f"{TEXT}.includes('epoch 2 of 4') && {TEXT}.includes('node 3')")
        browser.wait_for("document.querySelectorAll('figure circle').length === 1")
        before = browser.evaluate("document.querySelector('figure path').getAttribute('d')")
        grown = [Grown(cells[0], 0, _grown(2.0, 1.0, 0.5))]
        journal.tell("node 3", Group((cells[0],)), 3, grown)
        journal.write()
        browser.wait_for(f"document.querySelector('figure path').getAttribute('d') !== '{before}'")
        run.finish(cells[0], diverged=[1])
        journal.tell("node 3", None)
        journal.write()
        browser.wait_for(f"{TEXT}.includes('1 of 2 cells done')")
        browser.wait_for(f"{TEXT}.includes('GIN+sum on toy: fold 1')")
        browser.wait_for("document.querySelector('#bar').getAttribute('aria-valuenow') === '1'")
        run.finish(cells[1])
    browser.wait_for(f"{TEXT}.includes('Finished: 2 cells')")
    browser.wait_for(f"{TEXT}.includes('With GIN on toy')")  # the answer
    assert browser.evaluate("document.title").startswith("2/2 finished")
    assert browser.logged == []


def test_a_hostile_name_is_shown_and_does_nothing_and_nothing_is_too_wide(
    run: Run, address: str, browser: Browser
) -> None:
    done, growing = run.cell("sum", dataset=EVIL), run.cell("vpa", dataset=EVIL)
    run.finish(done, diverged=[0])
    with Journal(run.folder, EVIL) as journal:
        journal.plan([growing], finished=1)
        journal.tell(EVIL, Group((growing,)), 2, [Grown(growing, 0, _grown(2.0, 1.0))])
        journal.write()
        for width in (400, 700, 1280):
            browser.open(address, width=width)
            browser.wait_for("document.querySelectorAll('figure path').length === 2")
            browser.wait_for(f"{TEXT}.includes('The answer so far')")
            assert browser.evaluate("document.documentElement.scrollWidth") == width
            assert browser.evaluate(WIDE) == []
            assert browser.evaluate("document.querySelectorAll('img, main script').length") == 0
            assert browser.evaluate(UNNAMED) == []
            assert browser.logged == []  # no dialog, and nothing that the policy had to stop
        shown = browser.evaluate("document.querySelector('figcaption').textContent")
        assert shown == f"GIN on {EVIL}"
        told = browser.evaluate("document.querySelector('figure svg').getAttribute('aria-label')")
        assert "vpa: 1 at epoch 2" in told


def test_what_is_drawn_can_be_chosen_and_the_end_of_the_server_is_said(
    run: Run, browser: Browser
) -> None:
    run.finish(run.cell("vpa", dataset="toy"), score=0.9)
    with WatchServer(Watched(run.folder)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        browser.open(server.address)
        value = "document.querySelector('.legend .value')?.textContent"
        browser.wait_for(f"{value} === '0.7'")
        browser.evaluate("document.querySelector('input[value=valid]').click()")
        assert browser.evaluate(value) == "91"  # percent
        server.shutdown()
        thread.join()
    browser.wait_for(f"{TEXT}.includes('does not answer any more')")
    assert browser.evaluate(f"{TEXT}.includes('Finished: 1 cell.')")
