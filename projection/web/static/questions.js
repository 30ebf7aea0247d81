// Several questions in one call. The call takes one answer, so each is answered
// by itself and all go together, a line for each: "question: answer".

import { h, line, block } from "./dom.js";

const tidy = (text) => text.replace(/\s+/g, " ").trim();

/** questionsOf reads the questions of a call from its arguments, [] where it has
 * but one, or where they cannot be read whole. */
export function questionsOf(text) {
  let list;
  try { list = JSON.parse(text).questions; } catch { return []; }
  if (!Array.isArray(list) || list.length < 2 || !list.every((q) => typeof q?.question === "string" && tidy(q.question))) return [];
  return list.map((q) => ({
    text: q.question, many: q.multiSelect === true,
    options: (Array.isArray(q.options) ? q.options : []).map((o) => (typeof o === "string" ? { label: o } : { label: o?.label, about: o?.description })).filter((o) => typeof o.label === "string" && o.label),
  }));
}

/** looksLikeSeveral: the text that a runner makes of several questions, whose
 * options belong to different ones. */
export const looksLikeSeveral = (text) => /^1\. [\s\S]*\n2\. /.test(text || "");

let groups = 0;

/** Questions is a form for several questions; read returns the answer to all, and
 * fails while one has none. */
export class Questions {
  constructor(list) {
    this.parts = list.map((q) => part(q, `question-${++groups}`));
    this.el = h("div", { class: "questions" }, this.parts.map((p) => p.el));
  }

  read() {
    const lines = this.parts.map((p) => [p.text, p.read()]);
    const open = lines.findIndex(([, a]) => !a);
    if (open >= 0) {
      this.parts[open].el.querySelector("input").focus();
      throw new Error(`Question ${open + 1} has no answer yet.`);
    }
    return lines.map(([q, a]) => `${tidy(q)}: ${a}`).join("\n");
  }
}

function part(q, group) {
  const inputs = q.options.map((o) => h("input", { type: q.many ? "checkbox" : "radio", name: group, value: o.label }));
  const own = h("input", { type: "text", class: "own", autocomplete: "off", placeholder: q.options.length ? "or in your own words" : "Answer", "aria-label": q.options.length ? "Another answer" : "Answer",
    oninput: () => { if (own.value.trim() && !q.many) for (const i of inputs) i.checked = false; } });
  for (const i of inputs) i.addEventListener("change", () => { if (!q.many) own.value = ""; });
  return {
    text: q.text,
    el: h("fieldset", {}, h("legend", {}, block(q.text, "say")),
      q.options.map((o, n) => h("label", {}, inputs[n], h("span", {}, line(o.label, 200), typeof o.about === "string" && o.about ? h("span", { class: "dim small about" }, line(o.about, 300)) : ""))), own),
    read: () => [...inputs.filter((i) => i.checked).map((i) => i.value), tidy(own.value)].filter(Boolean).join(", "),
  };
}
