// Looks at pages in frames and returns what is wrong with each: a small check of what people need who
// see little, use a keyboard, or have a narrow screen. Told apart by page, width and colours.

const channel = value => {
  value /= 255;
  return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
};
const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);

// Browsers write colours in several ways; a canvas reads them all.
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const known = new Map();
function colour(text) {
  if (!known.has(text)) {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    known.set(text, [r, g, b, a / 255]);
  }
  return known.get(text);
}
const over = (front, back) =>
  [0, 1, 2].map(i => front[3] * front[i] + (1 - front[3]) * back[i]).concat(1);

// The colour behind an element: the layers of it and its parents, or null behind a picture.
function behind(element, view) {
  const layers = [];
  for (let e = element; e; e = e.parentElement) {
    const style = view.getComputedStyle(e);
    if (style.backgroundImage !== "none") return null;
    const paint = colour(style.backgroundColor);
    if (paint[3] > 0) layers.push(paint);
    if (paint[3] === 1) break;
  }
  return layers.reverse().reduce((back, front) => over(front, back), [255, 255, 255, 1]);
}

// What is read out of an element: hidden text is not, though text that is clipped is.
function heard(e, view) {
  if (e.nodeType === Node.TEXT_NODE) return e.data;
  if (e.nodeType !== Node.ELEMENT_NODE || e.getAttribute("aria-hidden") === "true") return "";
  const style = view.getComputedStyle(e);
  if (style.display === "none" || style.visibility === "hidden") return "";
  return [e.getAttribute("aria-label") || e.alt || "", ...[...e.childNodes].map(c => heard(c, view))].join(" ");
}
const named = (e, view) =>
  [heard(e, view), e.title, e.getAttribute("placeholder"),
   ...(e.labels ? [...e.labels].map(l => l.textContent) : [])].some(t => t && t.trim());
const short = e => e.outerHTML.replace(/\s+/g, " ").slice(0, 110);

function problems(doc, view, width) {
  const found = [];
  const shown = e => e.getClientRects().length && view.getComputedStyle(e).visibility !== "hidden";
  const root = doc.documentElement;
  if (root.scrollWidth > width) {
    const wide = [...doc.querySelectorAll("main *")].find(e => {
      const box = e.getBoundingClientRect();
      return box.right > width + 1 && view.getComputedStyle(e).position !== "fixed";
    });
    found.push(`scrolls sideways: ${root.scrollWidth} > ${width} ${wide ? short(wide) : ""}`);
  }
  if (!root.lang) found.push("no language");
  if (!doc.title.trim()) found.push("no title");
  // Only a thumbnail beside a link that says the same needs no words.
  for (const image of doc.querySelectorAll("img"))
    if (!image.alt.trim() && !(image.hasAttribute("alt") && image.closest(".sphx-glr-thumbcontainer")))
      found.push(`no alternative text: ${short(image)}`);
  for (const e of doc.querySelectorAll("a[href], button, input:not([type=hidden]), select, summary"))
    if (shown(e) && !named(e, view)) found.push(`no name: ${short(e)}`);
  for (const e of doc.querySelectorAll("th"))
    if (shown(e) && !named(e, view)) found.push(`heads nothing: ${short(e)}`);
  const regions = [...doc.querySelectorAll("[role=region]")].map(e => e.getAttribute("aria-label"));
  regions.forEach((name, i) => {
    if (regions.indexOf(name) !== i) found.push(`regions of one name: ${name}`);
  });
  for (const e of doc.querySelectorAll("article *")) {
    const scrolls = ["auto", "scroll"].includes(view.getComputedStyle(e).overflowX);
    if (scrolls && e.scrollWidth > e.clientWidth + 1 && e.tabIndex < 0 &&
        !e.querySelector("a[href], button, [tabindex='0']"))
      found.push(`scrolls, and not by keyboard: ${short(e)}`);
  }
  const levels = [...doc.querySelectorAll("article h1, article h2, article h3, article h4")]
    .map(h => Number(h.tagName[1]));
  if (levels.filter(level => level === 1).length !== 1) found.push(`headings: ${levels}`);
  levels.forEach((level, i) => {
    if (i && level > levels[i - 1] + 1) found.push(`a heading is skipped: ${levels}`);
  });
  const ids = [...doc.querySelectorAll("[id]")].map(e => e.id);
  const twice = ids.filter((id, i) => ids.indexOf(id) !== i);
  if (twice.length) found.push(`ids used twice: ${[...new Set(twice)]}`);
  const seen = new Set();
  const walker = doc.createTreeWalker(doc.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || seen.has(e) || !e.getClientRects().length) continue;
    if (e.closest("svg, script, style, .visually-hidden, .sr-only")) continue;
    seen.add(e);
    const style = view.getComputedStyle(e);
    if (style.visibility === "hidden" || Number(style.opacity) === 0) continue;
    const back = behind(e, view);
    if (back === null) continue;
    const text = over(colour(style.color), back);
    const [dark, light] = [luminance(text), luminance(back)].sort((a, b) => a - b);
    const ratio = (light + 0.05) / (dark + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) found.push(`contrast ${ratio.toFixed(2)}: ${short(e)}`);
  }
  return found;
}

async function main(pages, widths) {
  const found = {};
  for (const page of pages)
    for (const width of widths) {
      const frame = document.createElement("iframe");
      frame.width = width;
      frame.height = 900;
      frame.style.border = 0;
      const loaded = new Promise(resolve => (frame.onload = resolve));
      frame.src = page;
      document.body.append(frame);
      await loaded;
      for (const theme of ["light", "dark"]) {
        frame.contentDocument.documentElement.dataset.theme = theme;
        frame.contentDocument.documentElement.dataset.mode = theme;
        const style = frame.contentDocument.createElement("style");
        style.textContent = "* { transition: none !important; animation: none !important; }";
        frame.contentDocument.head.append(style);
        const wrong = problems(frame.contentDocument, frame.contentWindow, width);
        if (wrong.length) found[`${page} ${width} ${theme}`] = [...new Set(wrong)].slice(0, 20);
      }
      frame.remove();
    }
  document.title = JSON.stringify({ looked: pages.length * widths.length * 2, found });
}
