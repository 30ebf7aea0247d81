// Everything that waits for a person, the oldest first, and what was decided.

import { h, show, content } from "./dom.js";
import * as api from "./api.js";
import { Cards } from "./decide.js";
import { Decided } from "./decided.js";
import { say } from "./dialog.js";

/** waits are events after which what waits, or what came of what was decided, may be another. */
export const waits = (type) => /^(tool\.(parked|resolved)|replay\.|approval\.|question\.|run\.(finished|interrupted|requested|cancel)|session\.closed)/.test(type);

export class InboxPage {
  constructor(el, app) {
    this.app = app; this.abort = new AbortController();
    this.cards = new Cards(h("div", { class: "cards" }), () => ({ acts: app.acts }));
    this.empty = h("div", { class: "empty", hidden: true }, h("p", {}, "Nothing waits for you."), h("p", { class: "dim" }, "Calls that need approval and questions of agents come up here by themselves."));
    this.error = h("p", { class: "error", role: "alert" });
    this.more = h("p", { class: "dim" });
    this.decided = new Decided();
    show(el, h("h1", {}, "Inbox"), this.error, this.empty, this.cards.el, this.more, h("h2", {}, "Decided lately"), this.decided.el);
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
      this.decided.update(r.items);
      show(this.error);
    } catch (e) {
      if (e.name !== "AbortError" && e.code !== "unreachable") show(this.error, content(say(e)));
    }
  }

  event(e) { this.cards.event(e); }
}
