// Everything that waits for a person, the oldest first, and what was decided.

import { h, show, add, line, content, after } from "./dom.js";
import * as api from "./api.js";
import { Cards } from "./decide.js";
import { ago } from "./status.js";
import { say } from "./dialog.js";
import { words } from "./format.js";

/** waits are events after which the list of waiting items may be another. */
export const waits = (type) => /^(tool\.(parked|resolved)|replay\.reparked|approval\.|question\.|run\.(finished|interrupted|requested|cancel)|session\.closed)/.test(type);

export class InboxPage {
  constructor(el, app) {
    this.app = app; this.abort = new AbortController();
    this.cards = new Cards(h("div", { class: "cards" }), () => ({ acts: app.acts }));
    this.empty = h("div", { class: "empty", hidden: true }, h("p", {}, "Nothing waits for you."), h("p", { class: "dim" }, "Calls that need approval and questions of agents come up here by themselves."));
    this.error = h("p", { class: "error", role: "alert" });
    this.more = h("p", { class: "dim" });
    this.decided = h("ol", { class: "decided" });
    show(el, h("h1", {}, "Inbox"), this.error, this.empty, this.cards.el, this.more, h("h2", {}, "Decided lately"), this.decided);
    document.title = "Inbox · culm";
  }

  close() { this.abort.abort(); }
  refreshFrom(page) { this.show(page); }

  /** show takes the first page of what waits, which the app has read. */
  show(page) {
    const n = this.cards.update(page.items);
    this.empty.hidden = n > 0;
    show(this.more, page.next ? "More wait behind these; they come up as these are decided." : "");
    this.history();
  }

  async history() {
    try {
      const r = await api.query("approvals.list", { status: "decided", limit: 20 }, this.abort.signal);
      show(this.decided, r.items.length ? r.items.map(decidedRow) : h("li", { class: "dim" }, "Nothing yet."));
      show(this.error);
    } catch (e) {
      if (e.name !== "AbortError" && e.code !== "unreachable") show(this.error, content(say(e)));
    }
  }

  event(e) { this.cards.event(e); }
}

function decidedRow(i) {
  const what = i.kind === "question" && i.answer ? ["“", line(i.answer, 80), "”"] : words(i.decision);
  return h("li", {}, h("a", { href: `#/s/${encodeURIComponent(i.session)}?at=${i.decided_seq || i.since_seq}` },
    h("span", { class: "verdict " + (/^allow|answer/.test(i.decision) ? "good" : "") }, what), " ",
    h("span", { class: "tool" }, line(i.name, 50)), " ", h("span", { class: "dim" }, i.title ? line(i.title, 50) : content(i.session), i.decided_by ? [" · by ", i.decided_by === "_engine" ? "engine" : i.decided_by] : "", " · ", ago(i.decided_at))),
  i.note ? h("span", { class: "dim small" }, line(i.note, 120)) : "");
}
