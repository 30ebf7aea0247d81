// Going back in time: the slider, and the state as it was after an event.

import { h, show, after, content } from "./dom.js";
import * as api from "./api.js";
import { stateView } from "./state.js";
import { say } from "./dialog.js";
import { count, clock, when } from "./format.js";

export class Scrub {
  /** moved(seq) is told where it went, 0 for as it is now. */
  constructor(session, moved) {
    this.session = session; this.moved = moved; this.at = 0; this.last = 0; this.wanted = 0; this.now = null;
    this.range = h("input", { type: "range", min: "1", max: "1", value: "1", "aria-label": "Sequence", oninput: () => this.go(+this.range.value) });
    this.where = h("output", {});
    this.back = h("button", { type: "button", class: "link", hidden: true, onclick: () => this.go(0) }, "back to now");
    this.el = h("span", { class: "slider" }, this.range, this.where, this.back);
    this.box = h("div", { class: "pane statepane", tabindex: "0", role: "region", "aria-label": "State" }, h("p", { class: "note" }, "…"));
    this.soon = after(90, () => this.read());
  }

  close() { this.abort?.abort(); }

  /** grow takes the state as it is now, of a log whose events are first to last. */
  grow(first, last, now) {
    this.last = last; this.now = now;
    this.range.min = first;
    this.range.max = last;
    if (!this.at) { this.range.value = last; show(this.box, stateView(now)); }
    this.sayWhere();
  }

  /** go shows the session as it was after event seq, once there is a log; 0 is as it is. */
  go(seq) {
    if (!this.last) { this.wanted = seq; return; }
    this.at = seq >= this.last ? 0 : seq;
    this.wanted = 0;
    this.range.value = this.at || this.last;
    this.back.hidden = !this.at;
    this.sayWhere();
    this.moved(this.at);
    this.soon();
  }

  sayWhere() { show(this.where, this.at ? `${count(this.at)} of ${count(this.last)}` : count(this.last)); }

  async read() {
    const at = this.at;
    this.abort?.abort();
    if (!at) { if (this.now) show(this.box, stateView(this.now)); return; }
    const { signal } = this.abort = new AbortController();
    try {
      const [r, ev] = await Promise.all([api.session(this.session, "state?at=" + at, signal), api.session(this.session, `events?after=${at - 1}&limit=1`, signal)]);
      if (at === this.at) show(this.box, h("p", { class: "asof" }, "As it was after event ", h("b", {}, count(at)), ", ", clock(when(ev.events[0]?.time))), stateView(r));
    } catch (e) {
      if (e.name !== "AbortError") show(this.box, h("p", { class: "error" }, content(say(e))));
    }
  }
}
