// Everything that waits for a person, the oldest first, and what was decided.

import { h, show, content } from "./dom.js";
import * as api from "./api.js";
import { Cards } from "./decide.js";
import { Decided } from "./decided.js";
import { old } from "./reader.js";
import { say } from "./dialog.js";

const moving = /^(tool\.(parked|resolved)|replay\.|approval\.|question\.|run\.(finished|interrupted|refused|requested|cancel)|loop\.stop_requested|session\.closed)/;

/** waits says whether an event may change what waits, or what came of what was
 * decided: shown is what waits as far as is known. A new answer takes the place
 * of what still waits of the one before. */
export const waits = (e, shown) => moving.test(e.type) || (e.type === "round.finished" && !!shown?.items.some((i) => i.session === e.session));

export class InboxPage {
  constructor(el, app) {
    this.app = app; this.count = 0;
    this.reader = app.reader((wait, signal) => this.history(wait, signal), { failed: (e) => { if (e.code !== "unreachable") show(this.error, content(say(e))); } });
    this.cards = new Cards(h("div", { class: "cards" }), () => ({ acts: app.acts }));
    this.empty = h("div", { class: "empty", hidden: true }, h("p", {}, "Nothing waits for you."), h("p", { class: "dim" }, "Calls that need approval and questions of agents come up here by themselves."));
    this.error = h("p", { class: "error", role: "alert" });
    this.late = h("p", { class: "warn" });
    this.more = h("p", { class: "dim" });
    this.decided = new Decided();
    show(el, h("h1", {}, "Inbox"), this.error, this.late, this.empty, this.cards.el, this.more, h("h2", {}, "Decided lately"), this.decided.el);
    document.title = "Inbox · culm";
    if (app.waiting) this.show(app.waiting);
    this.lacks(app.lacking.get(app.inbox) || "");
  }

  close() { this.reader.close(); }
  event(e) { this.cards.event(e); }

  /** show takes the first page of what waits, which the app has read. */
  show(page) {
    this.count = this.cards.update(page.items);
    this.sayEmpty();
    show(this.more, page.next ? "More wait behind these; they come up as these are decided." : "");
    this.reader.now();
  }

  /** lacks says that what is shown may be old: then nobody knows that nothing waits. */
  lacks(text) {
    show(this.late, old(text));
    this.sayEmpty();
  }

  sayEmpty() { this.empty.hidden = !this.app.waiting || this.count > 0 || !!this.late.firstChild; }

  async history(wait, signal) {
    const r = await api.query("approvals.list", { status: "decided", limit: 20, ...wait }, signal);
    this.decided.update(r.items);
    show(this.error);
  }
}
