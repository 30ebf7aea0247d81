// What was decided lately: what exactly, by whom, and what ran of it.

import { h, show, add, line, block, content, pretty } from "./dom.js";
import { wholeArguments, keyOf } from "./decide.js";
import { busy } from "./dialog.js";
import { ago } from "./status.js";
import { facts, decisionOf } from "./words.js";
import { count, words, when, full } from "./format.js";

/** Decided is the list of decided items, the newest first. What is open in a row
 * stays open when the list is read anew. */
export class Decided {
  constructor() { this.el = h("ol", { class: "decided" }); this.rows = new Map(); }

  update(items) {
    const had = this.rows;
    this.rows = new Map(items.map((i) => {
      const next = items.findLast((o) => o.session === i.session && o.message_id === i.message_id && o.since_seq > i.since_seq);
      const key = keyOf(i), was = had.get(key), state = JSON.stringify([i.decided_seq, i.call, i.title, next?.since_seq]);
      if (was?.state === state) return [key, was];
      const el = row(i, next);
      if (was?.el.querySelector("details").open) el.querySelector("details").open = true;
      return [key, { el, state }];
    }));
    const now = [...this.rows.values()].map((r) => r.el);
    if (!now.length) { show(this.el, h("li", { class: "dim" }, "Nothing yet.")); return; }
    if (now.length !== this.el.childElementCount || now.some((el, n) => el !== this.el.children[n])) show(this.el, now);
  }
}

const at = (i, seq) => `#/s/${encodeURIComponent(i.session)}?at=${seq}`;

/** row tells an item; next is the item that the same call became later, if any. */
function row(i, next) {
  const r = i.request || i.call, asked = i.kind === "question";
  const verdict = asked && i.answer ? ["“", line(i.answer, 80), "”"] : decisionOf(i.decision, i.kind === "unknown");
  return h("li", {},
    h("a", { href: at(i, i.decided_seq || i.since_seq) },
      h("span", { class: "verdict " + (/^allow|answer/.test(i.decision) ? "good" : /^(deny|expired)/.test(i.decision) ? "bad" : "") }, verdict), " ", h("span", { class: "tool" }, line(i.name, 50)),
      r.permission_type ? [" ", words(r.permission_type)] : "", r.resource ? [" ", h("code", {}, line(r.resource, 160))] : ""),
    h("span", { class: "small" }, i.matcher ? [h("span", {}, "covers ", h("code", {}, matcherOf(i.matcher))), " · "] : "", ran(i, next),
      h("span", { class: "dim" }, i.title ? line(i.title, 50) : content(i.session), i.decided_by ? [" · by ", i.decided_by === "_engine" ? "engine" : content(i.decided_by)] : "", " · ", ago(i.decided_at))),
    i.note ? h("span", { class: "dim small" }, "“", line(i.note, 200), "”") : "",
    whole(i));
}

const matcherOf = (m) => line(`${words(m.kind)}: ${m.pattern}`, 160);

const became = {
  succeeded: ["ran and succeeded", "good"], failed: ["ran and failed", "bad"], blocked: ["was not run: it was not allowed any more", "bad"], voided: ["never ran: the run was ended", ""],
  resolved: ["was given its outcome by hand", ""], denied: ["was denied later", ""], decided: ["not run yet", ""], started: ["was started", ""], parked: ["waits again", "warn"], unknown: ["was started, its outcome is unknown", "bad"],
};

/** ran says what came of a call that was allowed. */
function ran(i, next) {
  const c = next ? { status: next.kind === "unknown" ? "unknown" : "parked", ended_seq: next.since_seq } : i.call, [text, cls] = became[c?.outcome || c?.status] || [];
  if (!text || !/^allow/.test(i.decision)) return "";
  return [c.ended_seq ? h("a", { href: at(i, c.ended_seq), class: cls }, text) : h("span", { class: cls }, text), " · "];
}

/** whole folds everything that the decision was about. */
function whole(i) {
  const r = i.request || i.call, q = i.question?.question, inner = h("div", { class: "inner" });
  const args = h("div", { class: "would" }), error = h("p", { class: "error" });
  const cut = i.arguments_bytes > new TextEncoder().encode(i.arguments).length;
  const fill = (text) => show(args, block(pretty(text) || "(no arguments)", "mono"));
  const open = () => {
    if (inner.firstChild) return;
    fill(i.arguments);
    add(inner, [q ? block(q, "say") : "", args,
      cut ? h("p", { class: "small" }, h("button", { type: "button", class: "link", onclick: (e) => busy(e.target, error, async () => { fill(await wholeArguments(i)); e.target.remove(); }) }, `cut: show all ${count(i.arguments_bytes)} bytes`)) : "", error,
      facts([["decision", decisionOf(i.decision, i.kind === "unknown")], ["answer", i.answer && block(i.answer, "say")], ["permission", words(r.permission_type)], ["resource", r.resource], ["covers", i.matcher && matcherOf(i.matcher)],
        ["workspace", r.workspace], ["asked", full(when(i.since))], ["decided", full(when(i.decided_at))], ["by", i.decided_by === "_engine" ? "engine" : i.decided_by], ["note", i.note],
        ["sha-256", i.arguments_digest && h("code", { class: "hash" }, i.arguments_digest)], ["call", h("code", {}, line(i.tool_call_id, 80))]])]);
  };
  return h("details", { class: "fold", ontoggle: (e) => e.target.open && open() },
    h("summary", {}, h("span", { class: "label" }, "arguments"), h("span", { class: "peek" }, line(i.arguments, 140))), inner);
}
