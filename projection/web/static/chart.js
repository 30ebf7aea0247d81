// Plots as inline SVG, made by the document, no library.

import { h, s } from "./dom.js";
import { short, count } from "./format.js";

/**
 * bars plots stacked bars. items: [{label, parts: [n, ...], tip, tone}];
 * names: what the parts are. It scales by its viewBox.
 */
export function bars(items, names, { height = 140, label } = {}) {
  const w = 640, left = 44, bottom = 18, top = 8, inner = w - left - 4, tall = height - top - bottom;
  const most = Math.max(1, ...items.map((i) => i.parts.reduce((a, b) => a + b, 0)));
  const max = nice(most), step = inner / Math.max(items.length, 8), width = Math.max(1, Math.min(28, step * 0.78));
  const y = (v) => top + tall - (tall * v) / max;
  const svg = s("svg", { viewBox: `0 0 ${w} ${height}`, class: "chart", role: "img", "aria-label": label });
  for (const v of [0, max / 2, max]) {
    svg.append(s("line", { x1: left, x2: w - 4, y1: y(v), y2: y(v), class: "grid" }), s("text", { x: left - 6, y: y(v) + 3.5, "text-anchor": "end" }, short(v)));
  }
  const every = Math.ceil(items.length / 9);
  items.forEach((it, i) => {
    const x = left + step * i + (step - width) / 2;
    const g = s("g", { class: "col " + (it.tone || "") }, s("title", {}, it.tip));
    let v = 0;
    it.parts.forEach((n, k) => {
      if (n > 0) g.append(s("rect", { x, width, y: y(v + n), height: Math.max(0.5, y(v) - y(v + n)), class: "part" + k }));
      v += n;
    });
    if (!v) g.append(s("rect", { x, width, y: y(0) - 1.5, height: 1.5, class: "none" }));
    svg.append(g);
    if (i % every === 0) svg.append(s("text", { x: x + width / 2, y: height - 4, "text-anchor": "middle" }, it.label));
  });
  return h("figure", { class: "plot" }, svg, h("figcaption", {}, names.map((n, k) => h("span", { class: "key key" + k }, n))));
}

/** nice is a round number that is at least v. */
function nice(v) {
  const p = 10 ** Math.floor(Math.log10(v));
  for (const m of [1, 2, 4, 5, 10]) if (m * p >= v) return m * p;
  return 10 * p;
}

/** table says the same as a plot in numbers. */
export function table(head, rows) {
  return h("table", {}, h("thead", {}, h("tr", {}, head.map((c, i) => h("th", { class: i ? "num" : "" }, c)))),
    h("tbody", {}, rows.map((r) => h("tr", {}, r.map((c, i) => h("td", { class: i ? "num" : "" }, typeof c === "number" ? count(c) : c))))));
}
