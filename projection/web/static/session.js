// One session: what it is doing, what it did and who allowed it.

import { h, show, add, after, line, content, visible, toast } from "./dom.js";
import * as api from "./api.js";
import { Timeline } from "./timeline.js";
import { Draft } from "./draft.js";
import { stateView } from "./state.js";
import { sessionUsage } from "./usage.js";
import { Cards } from "./decide.js";
import { ask, busy, say } from "./dialog.js";
import { pill, bar, progressOf, why, titleOf } from "./status.js";
import { count, clock, when, plural, modelOf } from "./format.js";

const kinds = [["", "Everything"], ["message", "Messages"], ["tool", "Tools"], ["decision", "Decisions"], ["run", "Runs and rounds"]];

/** resumed are the ends of a run after which there may be something to resume. */
const resumed = new Set(["interrupted", "failed", "refused"]);

export class SessionPage {
  constructor(el, id, app) {
    this.el = el; this.id = id; this.app = app; this.at = 0; this.tab = "timeline"; this.last = 0; this.item = null; this.state = null;
    this.abort = new AbortController();
    this.draft = new Draft((call) => this.timeline.toolOf(call));
    this.timeline = new Timeline(id, { onSeen: (seq) => this.draft.shown(seq), below: this.draft.el });
    this.cards = new Cards(h("div", { class: "cards" }), () => ({ acts: app.acts, inSession: true }));
    this.refresh = after(120, () => this.load());
    this.scrubbed = after(90, () => this.readState());
    this.build();
  }

  close() { this.abort.abort(); this.timeline.close(); this.draft.close(); }

  build() {
    this.title = h("h1", {}, content(this.id));
    this.facts = h("div", { class: "sub" });
    this.actions = h("div", { class: "actions" });
    this.badge = h("button", { type: "button", class: "badge", title: "Check the whole log: hash chain, events, rules", onclick: () => this.audit() }, "audit");
    this.progress = h("div", { class: "progress" });
    this.error = h("p", { class: "error", role: "alert" });
    this.range = h("input", { type: "range", min: "1", max: "1", value: "1", "aria-label": "Sequence", oninput: () => this.scrub(+this.range.value) });
    this.where = h("output", {});
    this.live = h("button", { type: "button", class: "link", hidden: true, onclick: () => this.scrub(0) }, "back to now");
    this.filter = h("select", { "aria-label": "Show", onchange: () => { this.timeline.box.dataset.only = this.filter.value; } }, kinds.map(([v, t]) => h("option", { value: v }, t)));
    this.tabs = h("div", { class: "tabs", role: "tablist" }, [["timeline", "Timeline"], ["state", "State"], ["usage", "Usage"]].map(([v, t]) =>
      h("button", { type: "button", role: "tab", "data-tab": v, onclick: () => this.showTab(v) }, t)));
    this.stateBox = h("div", { class: "pane statepane", tabindex: "0", role: "region", "aria-label": "State" }, h("p", { class: "note" }, "…"));
    this.usageBox = h("div", { class: "pane usagepane", tabindex: "0", role: "region", "aria-label": "Usage" });
    this.timeline.el.classList.add("pane");
    this.timeline.el.setAttribute("tabindex", "0");
    this.composer = this.compose();
    show(this.el, h("div", { class: "session" },
      h("header", { class: "sessionhead" },
        h("div", { class: "titleline" }, h("a", { class: "back", href: "#/sessions", "aria-label": "All sessions" }, "‹"), this.title, this.actions),
        this.facts, this.progress, this.error),
      this.waits = h("details", { class: "waits", open: innerWidth > 820 || innerHeight > 1000, hidden: true }, h("summary", {}, "Waits for you"), this.cards.el),
      h("div", { class: "scrub" }, this.tabs, this.filter, h("span", { class: "slider" }, this.range, this.where, this.live)),
      h("div", { class: "panes" }, this.timeline.el, this.stateBox, this.usageBox),
      this.composer));
    this.showTab("timeline");
  }

  showTab(tab) {
    this.tab = tab;
    this.el.firstChild.dataset.tab = tab;
    for (const b of this.tabs.children) b.setAttribute("aria-selected", String(b.dataset.tab === tab));
    if (tab === "usage") sessionUsage(this.usageBox, this.id).catch((e) => show(this.usageBox, h("p", { class: "error" }, content(say(e)))));
    if (tab === "state") this.readState();
  }

  // --- reading -----------------------------------------------------------------

  /** load reads what is there now, and what is new. */
  async load() {
    if (this.loading) { this.again = true; return; }
    this.loading = true;
    try {
      const now = await this.read();
      this.timeline.around.loop(now.state.loop);
      if (!this.timeline.first || now.birth !== this.birth) await this.begin(now);
      if (this.abort.signal.aborted) return;
      this.last = Math.max(this.last, now.sequence);
      this.state = now;
      this.timeline.grow(this.timeline.first, this.last);
      this.range.max = this.last;
      if (!this.at) this.range.value = this.last;
      this.sayWhere();
      this.head();
      if (!this.at) show(this.stateBox, stateView(now));
      show(this.error);
      await this.views(now);
      if (this.tab === "usage") this.showTab("usage");
    } catch (e) {
      if (e.name === "AbortError") return;
      if (e.code === "session_not_found") this.gone();
      else if (e.code !== "unreachable") show(this.error, content(say(e)));
    } finally {
      this.loading = false;
      if (this.again) { this.again = false; this.refresh(); }
    }
  }

  /** read is the state as it is; where the log cannot be read on, as it was
   * before the event in the way, with all events behind it to be looked at. */
  async read() {
    try {
      return await api.session(this.id, "state", this.abort.signal);
    } catch (e) {
      if (e.code !== "malformed_state") throw e;
      const stuck = (await api.query("sessions.get", { session: this.id }, this.abort.signal)).items[0]?.stuck?.sequence;
      if (!stuck) throw e;
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
    this.range.min = this.timeline.first;
    this.range.max = this.last;
    this.timeline.grow(this.timeline.first, now.sequence);
    if (this.wanted) this.scrub(this.wanted);
    if (now.sequence < 20000) this.audit();
  }

  /** views adds what only the views know: the status in a word, and the cards. */
  async views(now) {
    const wait = now.damaged ? {} : { min_sequence: { [this.id]: now.sequence }, wait_ms: 1500 };
    try {
      if (!this.id.startsWith("_")) this.item = (await api.query("sessions.get", { session: this.id, ...wait }, this.abort.signal)).items[0];
      this.head();
      if (now.state.pending.length || this.cards.cards.size) {
        const r = await api.query("approvals.list", { session: this.id, limit: 100, ...wait }, this.abort.signal);
        this.waits.hidden = !this.cards.update(r.items);
        show(this.waits.firstChild, "Waits for you ", r.items.length ? h("span", { class: "n" }, r.items.length) : "");
      }
    } catch (e) {
      if (e.name === "AbortError") throw e;
      if (e.code === "not_yet") this.head("The views are behind: status and decisions may be old.");
    }
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

  head(note) {
    const st = this.state.state, s = st.session, i = this.item;
    document.title = visible(`${s.title || this.id} · culm`);
    show(this.title, titleOf({ title: s.title, session: this.id }, 120));
    show(this.facts, i ? pill(i.status) : "", s.title ? h("span", { class: "mono" }, content(this.id)) : "",
      s.model ? h("span", {}, line(modelOf(s.model), 60)) : "", h("span", {}, plural(this.last - this.timeline.first + 1, "event")),
      this.badge, h("a", { class: "link", href: "#", onclick: (e) => { e.preventDefault(); this.export(); } }, "export"),
      note ? h("span", { class: "bad" }, note) : "");
    const about = i ? why(i) : "";
    show(this.progress, st.loop && (st.run || ["paused", "recovery_unsupported"].includes(st.loop.status)) ? [bar(st.loop), h("span", {}, progressOf(st.loop)), st.loop.stop_requested ? h("span", { class: "warn" }, "stop requested") : ""] : "", about ? h("span", {}, about) : "");
    this.showActions(st);
  }

  showActions(st) {
    const loop = st.loop, ours = st.run && st.run.run_id === loop?.owner_execution_id;
    const running = loop && (loop.status === "running" || loop.status === "finalizing");
    const blocked = loop && !loop.abandoned && (loop.status === "recovery_unsupported" || (running && !ours));
    const live = loop && (running ? ours : loop.status === "paused");
    const resumable = !st.run && !st.pending.length && (st.replays.length > 0 || (!blocked && (loop?.status === "paused" || resumed.has(this.item?.last_outcome))));
    const key = [this.app.acts, resumable, st.replays.length, st.session.closed, !!st.run, st.run?.cancel_requested, live, loop?.stop_requested, blocked, st.pending.length > 0, loop?.generation, this.state.damaged].join();
    if (key === this.actionKey) return;
    this.actionKey = key;
    const b = (text, tone, f) => h("button", { type: "button", class: tone, onclick: f }, text);
    show(this.actions);
    const acts = this.app.acts && !st.session.closed && !this.state.damaged && !this.id.startsWith("_");
    this.composer.hidden = !acts || !!st.run || blocked;
    if (!acts) return;
    if (live && !loop.stop_requested) add(this.actions, b("Stop loop", "", () => this.confirm("Stop the loop?", "Calls of the present round may still end; no further round begins.", "Stop loop", "loop.stop", { generation: loop.generation })));
    if (st.run && !st.run.cancel_requested) add(this.actions, b("Cancel run", "danger", () => this.confirm("Cancel the run?", "Nothing starts any more. What waits for a person ends without having run.", "Cancel run", "run.cancel", { run_id: st.run.run_id })));
    if (resumable) add(this.actions, b("Resume", "primary", () => this.resume(st)));
    if (blocked && !st.run && !st.pending.length) {
      add(this.actions, b("Continue loop", resumable ? "" : "primary", () => this.confirm("Continue the loop?", `It ended in ${progressOf(loop)}. The remaining iterations go on in a new loop. ${loop.reason === "parked" ? "" : "What was under way when it ended may have happened, and is not repeated by itself."}`, "Continue loop", "loop.continue", { generation: loop.generation, acknowledge_unknown: true })));
    }
    if (blocked && !st.run) {
      add(this.actions, b("Abandon loop", "danger", () => this.confirm("Abandon the loop?", "It stays as it ended, and the session takes new runs again.", "Abandon loop", "loop.abandon", { generation: loop.generation, acknowledge_unknown: true })));
    }
    if (!st.run) add(this.actions, b("Close", "", () => this.confirm("Close the session?", "It takes no commands afterwards. Its log stays.", "Close session", "session.close", {})));
  }

  confirm(title, text, yes, name, data) {
    ask({ title, yes, tone: /cancel|abandon|close/i.test(yes) ? "danger" : "", body: h("p", {}, text), act: () => api.command(this.id, name, data).then(() => toast(`${yes}: asked.`, "good")) });
  }

  /** resume goes on where the last run broke off, with what is decided already. */
  resume(st) {
    const n = st.replays.length;
    ask({
      title: "Resume the run?", yes: "Resume",
      body: [h("p", {}, n ? `${plural(n, "decided call")} ${n === 1 ? "runs" : "run"} first; then it goes on where it broke off.` : "A new run goes on where the last one broke off."),
        h("p", {}, "Calls whose outcome is unknown are not repeated: they wait for your decision.")],
      act: () => this.request("run.resume", {}).then(() => toast("Resumed: asked.", "good")),
    });
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

  // --- scrubbing -----------------------------------------------------------------

  /** scrub shows the session as it was after event seq; 0 is as it is. */
  scrub(seq) {
    if (!this.last) { this.wanted = seq; return; }
    seq = seq >= this.last ? 0 : seq;
    this.at = seq;
    this.range.value = seq || this.last;
    this.el.firstChild.classList.toggle("scrubbing", seq > 0);
    this.live.hidden = !seq;
    this.sayWhere();
    this.timeline.go(seq);
    this.scrubbed();
    this.wanted = 0;
  }

  sayWhere() { show(this.where, this.at ? `${count(this.at)} of ${count(this.last)}` : count(this.last)); }

  async readState() {
    const at = this.at;
    if (!at) { if (this.state) show(this.stateBox, stateView(this.state)); return; }
    try {
      this.scrubAbort?.abort();
      this.scrubAbort = new AbortController();
      const [r, ev] = await Promise.all([api.session(this.id, "state?at=" + at, this.scrubAbort.signal), api.session(this.id, `events?after=${at - 1}&limit=1`, this.scrubAbort.signal)]);
      if (at === this.at) show(this.stateBox, h("p", { class: "asof" }, "As it was after event ", h("b", {}, count(at)), ", ", clock(when(ev.events[0]?.time))), stateView(r));
    } catch (e) {
      if (e.name !== "AbortError") show(this.stateBox, h("p", { class: "error" }, content(say(e))));
    }
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
