// What a model or a tool says while it is at it. It is streamed and stored
// nowhere, so it is shown as provisional below the timeline, until the event
// that puts it on record takes its place.

import { h, show, content, clip } from "./dom.js";

const kept = 12000; // characters of one part; what is older is not shown
const pause = 60; // ms between two drawings
const most = 12; // parts at once
const patience = 4000; // ms that a part waits for its event to be shown
const nameOf = (call) => clip(String(call || ""), 80);

export class Draft {
  /** toolOf names the tool of a call, "" while it is not known. */
  constructor(toolOf) {
    this.toolOf = toolOf;
    this.el = h("section", { class: "drafts", "aria-label": "Not recorded yet", hidden: true });
    this.parts = new Map(); this.run = ""; this.round = -1; this.attempt = 1; this.next = 0;
    this.over = { run: "", round: -1 }; this.calls = new Set(); this.ended = "";
  }

  close() { for (const p of this.parts.values()) clearTimeout(p.timer); this.parts.clear(); clearTimeout(this.drawing); this.drawing = 0; }

  /** delta takes one piece of what a run streams. Who publishes may be anybody. */
  delta(run, d) {
    if (run === this.ended || !Number.isSafeInteger(d.round) || typeof d.text !== "string") return;
    if (run !== this.run || d.round > this.round || (d.round === this.round && d.index === 0 && this.next > 0)) this.begin(run, d.round);
    if (d.round < this.round) return;
    const lost = this.lost(d.index);
    if (lost === null) return;
    const output = d.kind === "tool_output";
    if (output ? this.calls.has(nameOf(d.tool_call_id)) : run === this.over.run && d.round <= this.over.round) return;
    if (!output && !this.sameAttempt(d.attempt || 1)) return;
    if (d.kind === "progress") this.part("progress").text = d.text;
    else if (output) this.write(this.part("tool", nameOf(d.tool_call_id)), d.text, lost);
    else if (d.kind === "text" || d.kind === "reasoning") {
      this.drop("progress");
      this.write(this.part(d.kind), d.text, lost);
    }
    this.draw();
  }

  /** write appends; of a long text the end is kept. */
  write(p, text, lost) {
    if (lost) p.text += p.text ? " … " : "… ";
    p.text += text;
    if (p.text.length > 2 * kept) p.text = "… " + p.text.slice(p.text.length - kept).replace(/^[\udc00-\udfff]/, "");
  }

  /** begin starts a round, or the round anew whose numbers begin again at 0: it leaves what waits for its event to be shown, and nothing else. */
  begin(run, round) {
    for (const p of [...this.parts.values()]) if (p.until === undefined) this.remove(p);
    this.run = run; this.round = round; this.attempt = 1; this.next = 0;
    this.calls.clear();
  }

  /** lost says whether pieces before this one did not come; null for one that came before. */
  lost(index) {
    if (!Number.isSafeInteger(index)) return false;
    if (index < this.next) return null;
    const gap = index > this.next;
    this.next = index + 1;
    return gap;
  }

  /** sameAttempt: what earlier attempts of a round have streamed is void. */
  sameAttempt(n) {
    if (n < this.attempt) return false;
    if (n > this.attempt) { this.attempt = n; this.drop("text"); this.drop("reasoning"); }
    return true;
  }

  part(kind, call) {
    const key = [this.run, this.round, kind, call].join(" ");
    let p = this.parts.get(key);
    if (!p) {
      if (this.parts.size >= most) this.remove(this.parts.values().next().value);
      this.parts.set(key, p = { key, kind, call, text: "" });
    }
    return p;
  }

  drop(kind) { for (const p of [...this.parts.values()]) if (p.kind === kind && p.until === undefined) this.remove(p); }

  remove(p) {
    clearTimeout(p.timer);
    p.el?.remove();
    this.parts.delete(p.key);
    this.el.hidden = ![...this.parts.values()].some((q) => q.el);
  }

  // --- the record ---------------------------------------------------------------

  /** event notes what has been put on record; e is the notice of an event. */
  event(e) {
    const model = (p) => p.kind !== "tool";
    switch (e.type) {
      case "round.started":
        if (e.run !== this.run || e.round !== this.round) this.begin(e.run, e.round);
        break;
      case "round.finished": case "round.failed":
        this.over = { run: e.run, round: e.round };
        if (e.run === this.run && e.round >= this.round) this.settle(model, e.seq);
        break;
      case "tool.finished": case "replay.finished":
        this.calls.add(nameOf(e.tool_call_id));
        this.settle((p) => p.call === nameOf(e.tool_call_id), e.seq);
        break;
      case "run.finished": case "run.interrupted": case "run.refused": case "session.closed":
        this.ended = e.run || this.run;
        this.settle(() => true, e.seq);
    }
  }

  /** settle lets parts go once the event at seq is shown, or soon after. */
  settle(which, seq) {
    for (const p of this.parts.values()) {
      if (!which(p) || p.until !== undefined) continue;
      p.until = seq;
      p.timer = setTimeout(() => this.remove(p), patience);
    }
  }

  /** shown: the timeline shows the events up to seq. */
  shown(seq) { for (const p of [...this.parts.values()]) if (p.until <= seq) this.remove(p); }

  // --- drawing ------------------------------------------------------------------

  draw() {
    if (this.drawing) return;
    this.drawing = setTimeout(() => { this.drawing = 0; for (const p of this.parts.values()) if (p.until === undefined) this.drawPart(p); }, pause);
  }

  drawPart(p) {
    if (!p.el) {
      p.box = h("div", { class: "text " + ({ text: "say model", tool: "mono" }[p.kind] || "dim"), dir: "auto" });
      p.title = h("span", { class: "titled" });
      p.el = h("article", { class: "ev draft", "data-part": p.kind },
        h("div", { class: "when" }, h("span", { class: "live" }, "live")), h("div", { class: "joint", "aria-hidden": "true" }),
        h("div", { class: "told" }, h("div", { class: "head" }, p.title, h("span", { class: "provisional" }, "not recorded yet")), p.box));
      this.el.append(p.el);
      this.el.hidden = false;
    }
    if (p.drawn === p.text) return;
    p.drawn = p.text;
    show(p.title, title(p, this.toolOf), this.attempt > 1 && p.kind !== "tool" ? h("span", { class: "warn" }, ` · attempt ${this.attempt}`) : "");
    show(p.box, content(p.text));
  }
}

function title(p, toolOf) {
  if (p.kind === "tool") return ["output of ", h("span", { class: "tool" }, content(toolOf(p.call) || p.call))];
  return { text: "is answering", reasoning: "is thinking", progress: "progress" }[p.kind];
}
