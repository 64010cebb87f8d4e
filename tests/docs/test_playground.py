"""The playground in a real browser: it has the library's numbers, and everybody can use it."""

import json
import math
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import gnn_vpa
from gnn_vpa.signal import message_correlation, predicted_variance
from gnn_vpa.signal.expectation import aggregated
from gnn_vpa.signal.maximum import second_moment_of_maximum

pytestmark = pytest.mark.browser

DARK, LIGHT = (f"--blink-settings=preferredColorScheme={scheme}" for scheme in (0, 1))
AGGREGATIONS = ["sum", "mean", "max", "vpa", "power(0.3)"]
# A kind of graph, its nodes, the depth, the correlation of its features. Some have isolated nodes.
CASES = [
    ("path", 7, 5, 0.0),
    ("cycle", 6, 3, 0.25),
    ("star", 12, 6, 0.0),
    ("star", 9, 4, 0.4),
    ("grid", 14, 4, 0.1),
    ("complete", 8, 3, 1.0),
    ("tree", 15, 5, 0.0),
    ("barbell", 18, 8, 0.0),
    ("barbell", 4, 2, 0.6),
    ("random", 40, 4, 0.05),
]

# A page's script runs once the page is parsed, and so does what looks at it.
COMPUTE = """
addEventListener("DOMContentLoaded", () => {
  const p = playground;
  const found = CASES.map(([kind, nodes, depth, rho]) => {
    const graph = p.GRAPHS[kind](nodes, 3);
    const lists = p.neighbours(nodes, graph.edges);
    return {
      edges: graph.edges, places: graph.places,
      of: Object.fromEntries(AGGREGATIONS.map((aggr) => [aggr, {
        independent: p.predictIndependent(lists, aggr, depth),
        exact: p.predictExact(lists, aggr, depth, rho),
        simulated: depth > 4 ? null : p.simulate(lists, aggr, depth, rho, 5),
      }])),
    };
  });
  const largest = [1, 2, 3, 10, 39].map((n) => [n, p.secondMomentOfMaximum(n)]);
  parent.document.title = JSON.stringify({ found, largest });
});
"""

Look = Callable[..., dict[str, Any]]


@pytest.fixture
def page(root: Path, tmp_path: Path) -> Path:
    shutil.copytree(root / "docs" / "playground", tmp_path / "site")
    return tmp_path / "site" / "playground.html"


def close(found: Any, expected: Tensor, rtol: float = 1e-9) -> None:
    torch.testing.assert_close(
        torch.tensor(found, dtype=torch.float64), expected.flatten(), rtol=rtol, atol=1e-300
    )


def test_its_predictions_are_those_of_the_library(page: Path, look: Look) -> None:
    script = COMPUTE.replace("CASES", json.dumps(CASES))
    found = look(page, script.replace("AGGREGATIONS", json.dumps(AGGREGATIONS)))
    for n, moment in found["largest"]:
        assert moment == pytest.approx(second_moment_of_maximum(n), rel=1e-9)

    for (kind, nodes, depth, rho), case in zip(CASES, found["found"], strict=True):
        edges = torch.tensor(case["edges"]).T
        assert torch.equal(edges, edges.sort(0).values), "an edge is a pair in order"
        assert edges.unique(dim=1).shape == edges.shape, "an edge is there once"
        assert edges.max() < nodes
        assert all(0 < x < 120 and 0 < y < 84 for x, y in case["places"])
        graph = gnn_vpa.Graph(torch.cat([edges, edges.flip(0)], dim=1), nodes)
        for aggr, numbers in case["of"].items():
            v = torch.ones(nodes, 1, dtype=torch.float64)
            for layer in range(depth):
                v = aggregated(graph, aggr, rectified=False)(v, v, False).variances
                close(numbers["independent"][layer + 1], v)
            # Features whose covariances are those that the page starts from: a part that all
            # nodes share and one of each node.
            eye = torch.eye(nodes, dtype=torch.float64)
            shared = torch.full((nodes, 1), math.sqrt(rho), dtype=torch.float64)
            x = torch.cat([shared, math.sqrt(1 - rho) * eye], dim=1)
            exact = numbers["exact"]
            assert (exact["variances"] is None) == (aggr == "max")
            for layer in range(1 if aggr == "max" else depth):
                rho_of_page = exact["correlations"][layer]
                assert rho_of_page == pytest.approx(
                    message_correlation(x, graph), rel=1e-9, abs=1e-12
                )
                if aggr != "max":
                    x = gnn_vpa.aggregate(x, graph, aggr)
                    close(exact["variances"][layer + 1], x.square().sum(1))
            if kind == "star" and aggr != "max":
                hub = exact["variances"][1][0]
                assert hub == pytest.approx(predicted_variance(aggr, nodes - 1, rho=rho), rel=1e-9)
            if numbers["simulated"] is not None:
                expected = numbers["independent" if aggr == "max" else "exact"]
                layers = expected[:2] if aggr == "max" else expected["variances"]
                if aggr == "max" and rho:
                    continue  # there is no prediction to be near to
                for drawn, nodewise in zip(numbers["simulated"], layers, strict=False):
                    wanted = sum(nodewise) / nodes
                    assert abs(drawn["mean"] - wanted) < 5 * drawn["error"]
                    assert drawn["error"] < 0.25 * wanted, "too rough to tell anything"


def test_the_page_runs_as_it_is_and_says_what_it_found(
    page: Path, browse: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = browse(f"{page.as_uri()}#graph=star&nodes=11&aggr=sum&depth=1", "--dump-dom")
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    # The hub has ten neighbours, the others one.
    assert f"After 1 layer of sum the variance is {(10 + 10) / 11:.3g}" in done.stdout
    assert "http" not in (page.read_text("utf-8").replace("http-equiv", ""))


USE = """
addEventListener("DOMContentLoaded", () => {
  const $ = (id) => document.getElementById(id);
  const said = [];
  const say = () => said.push([$("graph-summary").textContent, $("answer").textContent]);
  const put = (id, value) => {
    $(id).value = value;
    $(id).dispatchEvent(new Event("input", { bubbles: true }));
  };
  const box = $("graph").getBoundingClientRect();
  const click = (x, y) => $("graph").dispatchEvent(new MouseEvent("click",
    { bubbles: true, clientX: box.left + x * box.width, clientY: box.top + y * box.height }));
  const node = (i) => document.querySelector(`[data-node="${i}"]`);
  const press = (i, key) => node(i).dispatchEvent(
    new KeyboardEvent("keydown", { bubbles: true, key }));
  put("aggr", "sum"); put("depth", 2); put("kind", "drawn"); say();
  click(0.2, 0.5); click(0.5, 0.5); click(0.8, 0.5); say();
  const join = (i, j) => [i, j].forEach(
    (k) => node(k).dispatchEvent(new MouseEvent("click", { bubbles: true })));
  join(0, 1); press(1, "Enter"); press(2, " "); say();
  const link = $("link").getAttribute("href");
  join(0, 1); say();
  press(0, "Delete"); say();
  $("add").click(); say();
  put("kind", "path"); put("seed", "-1"); say();
  const wrong = ["#graph=torus", "#nodes=41", "#aggr=median", "#rho=2", "#depth=x", "#colour=red",
    "#graph=drawn&nodes=3&edges=0-3", "#aggr=power(7)"].map((hash) => {
      try { playground.readState(hash); return null; } catch (error) { return error.message; }
  });
  parent.document.title = JSON.stringify({ said, link, wrong, read: playground.readState(link) });
});
"""


def test_a_graph_is_drawn_with_the_mouse_and_with_the_keyboard(page: Path, look: Look) -> None:
    found = look(page, USE)
    empty, apart, path, parted, removed, added, again = found["said"]
    assert empty == ["No nodes yet: click into the frame.", "Draw a graph first."]
    assert apart[0] == "3 nodes, 0 edges; 0 to 0 neighbours."
    assert "no node has neighbours" in apart[1]
    assert path[0] == "3 nodes, 2 edges; 1 to 2 neighbours."
    # Walks of two steps on a path of three nodes: (1, 0, 1), (0, 2, 0), (1, 0, 1).
    assert f"the variance is {(2 + 4 + 2) / 3:.3g}" in path[1]
    assert parted[0] == "3 nodes, 1 edge; 0 to 1 neighbours."
    assert removed[0] == "2 nodes, 1 edge; 1 to 1 neighbours."
    assert added[0] == "3 nodes, 1 edge; 0 to 1 neighbours."
    assert again[0] == "3 nodes, 2 edges; 1 to 2 neighbours."
    assert found["read"]["edges"] == [[0, 1], [1, 2]]
    assert found["read"]["graph"] == "drawn"
    assert all(found["wrong"]), found["wrong"]


LAYOUT = """
addEventListener("DOMContentLoaded", () => {
  const width = document.documentElement.clientWidth;
  const all = [...document.querySelectorAll("body *")];
  const wide = all.filter((e) => !e.closest(".scroll *, .skip")
    && e.getBoundingClientRect().right > width + 1);
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const light = (colour) => {
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const parts = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (!/, 0\\)|transparent/.test(colour)) return colour;
    }
  };
  const faint = all.filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())
      && !e.closest("title, .skip, option")).filter((e) => {
    const style = getComputedStyle(e);
    const svg = e.namespaceURI.endsWith("svg");
    const [a, b] = [light(svg ? style.fill : style.color), light(behind(e))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
  });
  const name = (e) =>
    e.getAttribute("aria-label") || e.textContent.trim() || (e.labels || []).length;
  const mute = [...document.querySelectorAll("a, button, select, input, [tabindex='0']")]
    .filter((e) => !name(e));
  const ids = all.map((e) => e.id).filter(Boolean);
  const text = [...document.querySelectorAll("#chart text")].map((e) => e.getBBox());
  const cut = text.filter((b) => b.x < 0 || b.x + b.width > 640 || b.y + b.height > 360);
  const brief = (list) => list.map((e) => e.outerHTML.slice(0, 90));
  parent.document.title = JSON.stringify({
    width, page: document.documentElement.scrollWidth, wide: brief(wide), faint: brief(faint),
    mute: brief(mute), cut: cut.length,
    paper: light(getComputedStyle(document.body).backgroundColor),
    twice: ids.filter((id, k) => ids.indexOf(id) !== k),
    unlabelled: ["aria-labelledby", "aria-describedby"].flatMap((kind) =>
      [...document.querySelectorAll(`[${kind}]`)].flatMap((e) => e.getAttribute(kind).split(" ")))
      .filter((id) => !document.getElementById(id)).length,
  });
});
"""


@pytest.mark.parametrize(("width", "scheme"), [(400, DARK), (1280, LIGHT)])
def test_everybody_can_read_it(page: Path, look: Look, width: int, scheme: str) -> None:
    power = page.with_name("power.html")  # the longest name of a line, and all controls
    text = page.read_text("utf-8").replace(
        "</body>", '<script>location.hash = "aggr=power(0.35)&depth=16"</script></body>'
    )
    power.write_text(text, "utf-8")
    found = look(power, LAYOUT, scheme, width=width)
    assert found["width"] == found["page"] == width
    assert (found["paper"] > 0.9) == (scheme == LIGHT)
    for defect in ("wide", "faint", "mute", "twice"):
        assert found[defect] == []
    assert found["cut"] == found["unlabelled"] == 0
