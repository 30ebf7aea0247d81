// One session: what it is doing, what it did and who allowed it.

import { h, show, line, content, visible, toast } from "./dom.js";
import * as api from "./api.js";
import { old } from "./reader.js";
import { Timeline } from "./timeline.js";
import { Draft } from "./draft.js";
import { Scrub } from "./scrub.js";
import { actionsOf } from "./actions.js";
import { sessionUsage } from "./usage.js";
import { Cards } from "./decide.js";
import { ask, busy, say } from "./dialog.js";
import { pill, bar, progressOf, why, titleOf } from "./status.js";
import { count, plural, modelOf } from "./format.js";

const kinds = [["", "Everything"], ["message", "Messages"], ["tool", "Tools"], ["decision", "Decisions"], ["run", "Runs and rounds"]];

export class SessionPage {
  constructor(el, id, app) {
    this.el = el; this.id = id; this.app = app; this.tab = "timeline"; this.last = 0; this.item = null; this.state = null;
    this.abort = new AbortController();
    this.draft = new Draft((call) => this.timeline.toolOf(call));
    this.timeline = new Timeline(id, { onSeen: (seq) => this.draft.shown(seq), below: this.draft.el });
    this.cards = new Cards(h("div", { class: "cards" }), () => ({ acts: app.acts, inSession: true }));
    this.scrubbing = new Scrub(id, (seq) => this.scrubbed(seq));
    this.notes = new Map(); // what each of these lacks
    const reads = (settle, f, missing) => app.reader(f, { settle, lacks: (text) => this.lacks(f, text), failed: (e) => this.failed(e, missing) });
    this.log = reads(120, () => this.readLog(), () => this.gone()); // goes on while the views are late
    this.reader = reads(0, (wait, signal) => this.readViews(wait, signal), () => {}); // the log tells
    this.build();
  }

  close() {
    this.abort.abort();
    for (const part of [this.log, this.reader, this.timeline, this.draft, this.scrubbing]) part.close();
  }

  build() {
    this.title = h("h1", {}, content(this.id));
    this.facts = h("div", { class: "sub" });
    this.actions = h("div", { class: "actions" });
    this.badge = h("button", { type: "button", class: "badge", title: "Check the whole log: hash chain, events, rules", onclick: () => this.audit() }, "audit");
    this.progress = h("div", { class: "progress" });
    this.error = h("p", { class: "error", role: "alert" });
    this.filter = h("select", { "aria-label": "Show", onchange: () => { this.timeline.box.dataset.only = this.filter.value; } }, kinds.map(([v, t]) => h("option", { value: v }, t)));
    this.tabs = h("div", { class: "tabs", role: "tablist" }, [["timeline", "Timeline"], ["state", "State"], ["usage", "Usage"]].map(([v, t]) =>
      h("button", { type: "button", role: "tab", "data-tab": v, onclick: () => this.showTab(v) }, t)));
    this.usageBox = h("div", { class: "pane usagepane", tabindex: "0", role: "region", "aria-label": "Usage" });
    this.timeline.el.classList.add("pane");
    this.timeline.el.setAttribute("tabindex", "0");
    this.composer = this.compose();
    show(this.el, h("div", { class: "session" },
      h("header", { class: "sessionhead" },
        h("div", { class: "titleline" }, h("a", { class: "back", href: "#/sessions", "aria-label": "All sessions" }, "‹"), this.title, this.actions),
        this.facts, this.progress, this.error),
      this.waits = h("details", { class: "waits", open: innerWidth > 820 || innerHeight > 1000, hidden: true }, h("summary", {}, "Waits for you"), this.cards.el),
      h("div", { class: "scrub" }, this.tabs, this.filter, this.scrubbing.el),
      h("div", { class: "panes" }, this.timeline.el, this.scrubbing.box, this.usageBox),
      this.composer));
    this.showTab("timeline");
  }

  showTab(tab) {
    this.tab = tab;
    this.el.firstChild.dataset.tab = tab;
    for (const b of this.tabs.children) b.setAttribute("aria-selected", String(b.dataset.tab === tab));
    if (tab === "usage") this.reader.now();
    if (tab === "state") this.scrubbing.read();
  }

  // --- reading -----------------------------------------------------------------

  /** load reads what is there now, and what is new. */
  load() { this.log.now(); }
  refresh() { this.log.soon(); }

  async readLog() {
    const now = await this.read();
    this.timeline.around.loop(now.state.loop);
    if (!this.timeline.first || now.birth !== this.birth) await this.begin(now);
    if (this.abort.signal.aborted) return;
    this.last = Math.max(this.last, now.sequence);
    this.state = now;
    this.timeline.grow(this.timeline.first, this.last);
    this.scrubbing.grow(this.timeline.first, this.last, now);
    if (this.scrubbing.wanted) this.scrub(this.scrubbing.wanted);
    this.head();
    show(this.error);
    if (!now.damaged) this.reader.want(this.id, now.sequence);
    this.reader.now();
  }

  failed(e, missing) {
    if (e.code === "session_not_found") missing();
    else if (e.code !== "unreachable") show(this.error, content(say(e)));
  }

  /** read is the state as it is; where the log cannot be read on, as it was
   * before the event in the way, with all events behind it to be looked at. */
  async read() {
    try {
      return await api.session(this.id, "state", this.abort.signal);
    } catch (e) {
      if (e.code !== "malformed_state") throw e;
      const stuck = (await api.query("sessions.get", { session: this.id }, this.abort.signal)).items[0]?.stuck?.sequence;
      if (!stuck) throw new api.Failure("not_yet", "The log cannot be read on, and the views do not know it yet.");
      const [before, rest] = await Promise.all([api.session(this.id, "state?at=" + (stuck - 1), this.abort.signal), api.session(this.id, `events?after=${stuck - 1}&limit=1000`, this.abort.signal)]);
      return { ...before, sequence: Math.max(stuck, rest.events.at(-1)?.seq || 0), damaged: true };
    }
  }

  /** begin finds the first event; a session that was made anew begins anew. */
  async begin(now) {
    if (this.timeline.first) { this.app.route(); return; }
    this.birth = now.birth;
    const r = await api.session(this.id, "events?after=0&limit=1", this.abort.signal);
    this.timeline.first = r.events[0]?.seq || 1;
    this.last = now.sequence;
    if (now.sequence < 20000) this.audit();
  }

  /** readViews adds what only the views know: the status in a word, the cards, the
   * rounds. It is of a Reader. */
  async readViews(wait, signal) {
    if (!this.state) return; // it is read again with it
    if (!this.id.startsWith("_")) this.item = (await api.query("sessions.get", { session: this.id, ...wait }, signal)).items[0];
    this.head();
    if (this.state.state.pending.length || this.cards.cards.size) {
      const r = await api.query("approvals.list", { session: this.id, limit: 100, ...wait }, signal);
      this.waits.hidden = !this.cards.update(r.items);
      show(this.waits.firstChild, "Waits for you ", r.items.length ? h("span", { class: "n" }, r.items.length) : "");
    }
    if (this.tab === "usage") await sessionUsage(this.usageBox, this.id, signal);
  }

  /** lacks says what is not there yet. */
  lacks(reader, text) {
    if (text === (this.notes.get(reader) || "")) return;
    text ? this.notes.set(reader, text) : this.notes.delete(reader);
    if (this.state) this.head(); else show(this.error, old(text));
  }

  gone() {
    this.close();
    show(this.el, h("div", { class: "empty" }, h("p", {}, "There is no session ", h("b", {}, content(this.id)), "."), h("p", {}, h("a", { href: "#/sessions" }, "All sessions"))));
  }

  event(e) {
    if (e.session !== this.id) return;
    this.cards.event(e);
    this.draft.event(e);
    this.refresh();
    if (this.verified) this.sayBadge();
  }

  // --- head --------------------------------------------------------------------

  head() {
    const st = this.state.state, s = st.session, i = this.item;
    document.title = visible(`${s.title || this.id} · culm`);
    show(this.title, titleOf({ title: s.title, session: this.id }, 120));
    show(this.facts, i ? pill(i.status) : "", s.title ? h("span", { class: "mono" }, content(this.id)) : "",
      s.model ? h("span", {}, line(modelOf(s.model), 60)) : "", h("span", {}, plural(this.last - this.timeline.first + 1, "event")),
      this.badge, h("a", { class: "link", href: "#", onclick: (e) => { e.preventDefault(); this.export(); } }, "export"),
      [...this.notes.values()].slice(0, 1).map((text) => h("span", { class: "bad" }, old(text, "status and decisions"))));
    const about = i ? why(i) : "";
    show(this.progress, st.loop && (st.run || ["paused", "recovery_unsupported"].includes(st.loop.status)) ? [bar(st.loop), h("span", {}, progressOf(st.loop)), st.loop.stop_requested ? h("span", { class: "warn" }, "stop requested") : ""] : "", about ? h("span", {}, about) : "");
    this.showActions(st);
  }

  /** showActions makes the buttons anew where they are others than before. */
  showActions(st) {
    const acts = this.app.acts && !this.state.damaged && !this.id.startsWith("_");
    const { asks, buttons } = acts ? actionsOf(st, this.item?.last_outcome) : { asks: false, buttons: [] };
    const key = JSON.stringify([asks, buttons]);
    if (key === this.actionKey) return;
    this.actionKey = key;
    this.composer.hidden = !asks;
    show(this.actions, buttons.map((b) => h("button", { type: "button", class: b.tone, onclick: () => this.confirm(b) }, b.text)));
  }

  confirm({ text, yes = text, title, body, name, data }) {
    const act = () => (name === "run.resume" ? this.request(name, data) : api.command(this.id, name, data));
    ask({ title, yes, tone: /cancel|abandon|close/i.test(text) ? "danger" : "", body: body.map((t) => h("p", {}, t)), act: () => act().then(() => toast(`${text}: asked.`, "good")) });
  }

  /** request asks for a run, and fails where none was made. */
  async request(name, data) {
    const { result } = await api.command(this.id, name, data);
    if (result?.outcome === "requested") return;
    throw new Error({ already_running: "A run is under way already; this was not stored.", nothing_pending: "Nothing is pending: say what to do." }[result?.outcome] || result?.outcome);
  }

  compose() {
    const text = h("textarea", { rows: "1", placeholder: "Ask for a run", "aria-label": "What the run is to do", oninput: () => { text.style.setProperty("--lines", Math.min(8, text.value.split("\n").length)); } });
    const iterations = h("input", { type: "number", min: "1", max: "100", value: "1", "aria-label": "Iterations" });
    const rounds = h("input", { type: "number", min: "1", max: "1000", value: "20", "aria-label": "Rounds at most" });
    const error = h("span", { class: "error", role: "alert" });
    const go = h("button", { type: "submit", class: "primary" }, "Run");
    return h("form", { class: "composer", hidden: true, onsubmit: (e) => {
      e.preventDefault();
      busy(go, error, async () => {
        const data = text.value.trim() ? { prompt: text.value } : {}, n = +iterations.value;
        if (n > 1) data.loop = { max_iterations: n, max_total_rounds: +rounds.value, on_park: "pause" }; // it goes on after the decision;
        await this.request(data.prompt || data.loop ? "run.request" : "run.resume", data);
        text.value = "";
        this.scrub(0);
      });
    } }, text, h("label", {}, "iterations", iterations), h("label", {}, "rounds at most", rounds), go, error);
  }

  /** scrub shows the session as it was after event seq; 0 is as it is. */
  scrub(seq) { this.scrubbing.go(seq); }

  scrubbed(seq) {
    this.el.firstChild.classList.toggle("scrubbing", seq > 0);
    this.timeline.go(seq);
  }

  // --- audit and export ------------------------------------------------------------

  async audit() {
    show(this.badge, "checking…");
    try {
      this.verified = await api.session(this.id, "audit", this.abort.signal);
      this.sayBadge(true);
    } catch (e) {
      if (e.name !== "AbortError") show(this.badge, "audit failed: " + say(e));
    }
  }

  sayBadge(told) {
    const v = this.verified;
    this.badge.className = "badge " + (v.verified ? "ok" : "bad");
    show(this.badge, v.verified ? `✓ verified to ${count(v.sequence)}` : `✗ ${v.findings[0].kind} at ${count(v.findings[0].seq)}`);
    this.badge.title = v.verified ? `Hash chain, events and rules hold for ${plural(v.events, "event")}; head ${v.hash}. Press to check again.` : visible(v.findings.map((f) => `${f.seq} ${f.kind}: ${f.detail}`).join("\n"));
    clearTimeout(this.again_);
    if (!told && v.verified && v.sequence < 5000) this.again_ = setTimeout(() => this.abort.signal.aborted || this.audit(), 3000);
  }

  async export() {
    try {
      const r = await fetch(`/api/v1/sessions/${encodeURIComponent(this.id)}/export`, { headers: api.authorize(), credentials: "omit" });
      if (!r.ok) throw new Error("The server answered " + r.status + ".");
      const url = URL.createObjectURL(await r.blob());
      h("a", { href: url, download: this.id + ".jsonl" }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60000);
    } catch (e) { toast(say(e), "bad"); }
  }
}
