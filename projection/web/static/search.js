// Full-text search over all messages.

import { h, show, add, content, clip } from "./dom.js";
import * as api from "./api.js";
import { ago } from "./status.js";
import { say } from "./dialog.js";

/** searchPage shows what is found; it fails if nothing can be, after saying so. */
export async function searchPage(el, text, wait, signal) {
  show(el, h("h1", {}, "Search"));
  if (!text) {
    add(el, h("div", { class: "empty" }, h("p", {}, "Type words in the field above."), h("p", { class: "dim" }, "A message is found if it holds all of them; the last word may be a beginning.")));
    return;
  }
  const list = h("ol", { class: "found" }), note = h("p", { class: "dim" }, "Searching…"), more = h("button", { type: "button", hidden: true, onclick: () => next().catch(() => {}) }, "Older");
  add(el, [note, list, more]);
  let cursor = "", n = 0;
  async function next() {
    try {
      const r = await api.query("messages.search", { text, limit: 30, ...wait, ...(cursor && { cursor }) }, signal);
      for (const i of r.items) list.append(h("li", {}, h("a", { href: `#/s/${encodeURIComponent(i.session)}?at=${i.seq}` },
        h("span", { class: "first" }, h("b", {}, content(i.session)), h("span", { class: "dim" }, ` ${i.origin === "repeat" ? "objective repeated" : { user: "person", assistant: "model", tool: "tool" }[i.role] || i.role} · event ${i.seq} `), ago(i.at)),
        h("span", { class: "snippet", dir: "auto" }, marked(i.snippet)))));
      n += r.items.length;
      cursor = r.next || "";
      more.hidden = !cursor;
      show(note, n ? "" : ["Nothing holds ", h("b", {}, content(clip(text, 100))), "."]);
    } catch (e) {
      if (e.name !== "AbortError") show(note, h("span", { class: "bad" }, content(say(e))));
      throw e;
    }
  }
  await next();
}

/** marked turns U+0002 and U+0003 of a snippet into marks. */
function marked(snippet) {
  return snippet.split("\u0002").flatMap((part, i) => {
    if (!i) return [content(part)];
    const [hit, ...rest] = part.split("\u0003");
    return [h("mark", {}, content(hit)), content(rest.join("\u0003"))];
  });
}
