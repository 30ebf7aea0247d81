// The timeline of one session: every event in its place, told in words. It is
// made of stretches of 50 events; only those near the window are in the page,
// the others are empty boxes of their height, so 10 000 events scroll as 50 do.

import { h, show, add, block, content, clip } from "./dom.js";
import * as api from "./api.js";
import { tell, facts } from "./words.js";
import { Around } from "./around.js";
import { Follow } from "./follow.js";
import { clock, full, when, count } from "./format.js";

const size = 50, rowHeight = 46, keep = 24; // stretches whose events are kept in memory

export class Timeline {
  constructor(session, { onSeen, below }) {
    this.session = session; this.onSeen = onSeen; this.opened = new Map(); this.around = new Around(); this.stretches = []; this.first = 0; this.last = 0; this.at = 0; this.recent = [];
    this.box = h("div", { class: "events", role: "feed", "aria-label": "Timeline" });
    this.scroller = h("div", { class: "scroller" }, this.box, below);
    this.el = this.scroller;
    this.watch = new IntersectionObserver((seen) => this.seen(seen), { root: this.scroller, rootMargin: "1200px 0px" });
    this.scroller.addEventListener("keydown", (e) => this.key(e));
    for (const by of ["wheel", "pointerdown", "keydown"]) this.scroller.addEventListener(by, () => { this.going = null; }, { passive: true });
    this.follow = new Follow(this.scroller, [this.box, below], () => !this.at);
    this.abort = new AbortController();
  }

  close() { this.abort.abort(); this.watch.disconnect(); this.follow.close(); }

  /** grow makes room for events up to last; it keeps to the end if it was there. */
  grow(first, last) {
    if (!this.first) this.first = first;
    if (last <= this.last) return;
    this.last = last;
    const n = Math.ceil((last - this.first + 1) / size);
    while (this.stretches.length < n) {
      const k = this.stretches.length, el = h("section", { class: "stretch", "data-k": k });
      el.style.setProperty("--rows", String(size * rowHeight) + "px");
      this.stretches.push({ k, el, from: this.first + k * size, events: null, height: 0, near: false, loading: false });
      this.box.append(el);
      this.watch.observe(el);
    }
    const tail = this.stretches[n - 1];
    tail.el.style.setProperty("--rows", (last - tail.from + 1) * rowHeight + "px");
    for (const s of this.stretches.slice(-2)) if (s.near) this.fill(s);
    this.follow.stay();
  }

  seen(entries) {
    for (const e of entries) {
      const s = this.stretches[+e.target.dataset.k];
      s.near = e.isIntersecting;
      clearTimeout(s.timer);
      if (s.near) { // what only flies past is not read
        s.timer = setTimeout(() => this.fill(s), s.events || s.k === this.stretches.length - 1 ? 0 : 50);
        continue;
      }
      s.abort?.abort();
      if (s.el.firstChild && !s.el.contains(document.activeElement)) {
        s.height = s.el.offsetHeight;
        for (const row of s.el.children) this.keepOpen(row);
        s.el.style.setProperty("--rows", s.height + "px");
        s.el.replaceChildren();
      }
    }
  }

  /** fill loads what a stretch lacks and shows it. */
  async fill(s) {
    const want = Math.min(size, this.last - s.from + 1);
    if (s.loading) { s.again = true; return; }
    s.loading = true;
    s.abort = new AbortController();
    const signal = AbortSignal.any([this.abort.signal, s.abort.signal]);
    try {
      while ((s.events?.length || 0) < want) {
        const have = s.events?.length || 0;
        const r = await api.session(this.session, `events?after=${s.from + have - 1}&limit=${want - have}`, signal);
        if (!r.events.length) break;
        for (const ev of r.events) this.around.event(ev);
        s.events = (s.events || []).concat(r.events);
      }
    } catch (e) {
      if (!this.abort.signal.aborted && (e.name !== "AbortError" || s.near)) setTimeout(() => s.near && this.fill(s), e.name === "AbortError" ? 0 : 2000);
      return;
    } finally { s.loading = false; }
    this.remember(s);
    if (s.near && s.events) this.render(s);
    this.follow.stay();
    if (s.again) { s.again = false; if ((s.events?.length || 0) < Math.min(size, this.last - s.from + 1)) this.fill(s); }
  }

  /** remember forgets the events of stretches that were seen long ago. */
  remember(s) {
    this.recent = this.recent.filter((r) => r !== s);
    this.recent.push(s);
    while (this.recent.length > keep) {
      const old = this.recent.shift();
      if (!old.near) old.events = null; else this.recent.push(old);
      if (this.recent.every((r) => r.near)) break;
    }
  }

  render(s) {
    const had = s.el.childElementCount;
    for (const ev of s.events.slice(had)) {
      const row = this.row(ev);
      this.openAgain(row, ev.seq);
      s.el.append(row);
    }
    s.el.style.removeProperty("--rows");
    this.mark(s);
    this.onSeen(s.events.at(-1).seq);
  }

  /** keepOpen notes what of an event is open before its row leaves the page. */
  keepOpen(row) {
    const seq = +row.dataset.seq, at = (list, is) => [...list].flatMap((x, i) => (is(x) ? [i] : []));
    const open = { raw: !!row.querySelector(".raw").firstChild, folds: at(row.querySelectorAll("details"), (d) => d.open), whole: at(row.querySelectorAll(".text"), (t) => t.classList.contains("long")) };
    if (open.raw || open.folds.length || open.whole.length) this.opened.set(seq, open); else this.opened.delete(seq);
  }

  /** openAgain opens what was open when the event was last in the page. */
  openAgain(row, seq) {
    const open = this.opened.get(seq);
    if (!open) return;
    if (open.raw) row.querySelector(".facts-of").click();
    const folds = row.querySelectorAll("details");
    for (const i of open.folds) if (folds[i]) { folds[i].open = true; folds[i].dispatchEvent(new Event("toggle")); }
    const texts = [...row.querySelectorAll(".text")];
    for (const i of open.whole) texts[i]?.querySelector(":scope > .more")?.click();
  }

  /** toolOf names the tool of a call among the newest events, "" if none has it. */
  toolOf(call) {
    const ev = this.stretches.slice(-2).flatMap((s) => s.events || []).findLast((e) => e.data?.tool_call_id === call && e.data.name);
    return ev ? clip(String(ev.data.name), 80) : "";
  }

  row(ev) {
    const t = tell(ev, this.around), at = when(ev.time), seq = ev.seq;
    const more = h("div", { class: "raw" });
    const open = h("button", { type: "button", class: "icon facts-of", title: "Details and raw JSON", "aria-label": `Details of event ${seq}`, "aria-expanded": "false", onclick: () => {
      const shown = more.firstChild;
      open.setAttribute("aria-expanded", String(!shown));
      if (shown) more.replaceChildren(); else add(more, details(ev));
    } }, "⋯");
    return h("article", { class: `ev k-${t.kind} t-${t.tone || "plain"}`, "data-seq": seq, tabindex: "-1", "aria-label": `event ${seq} ${ev.type}` },
      h("div", { class: "when" }, h("a", { class: "seq", href: `#/s/${encodeURIComponent(this.session)}?at=${seq}`, title: "The state as it was here" }, seq), h("time", { datetime: ev.time || "", title: full(at) }, clock(at))),
      h("div", { class: "joint", "aria-hidden": "true" }),
      h("div", { class: "told" },
        h("div", { class: "head" }, h("span", { class: "actor" }, ev.actor === "_engine" ? "engine" : content(ev.actor)), h("span", { class: "titled" }, t.title), open),
        t.body, more));
  }

  // --- scrubbing ---------------------------------------------------------------

  /** go shows the event at seq and dims what came later; 0 is the end, live. */
  async go(seq) {
    this.at = seq;
    this.going = null; // an earlier jump pulls nowhere any more
    this.box.classList.toggle("past", seq > 0);
    for (const s of this.stretches) this.mark(s);
    if (!seq) { this.follow.toEnd(); return; }
    const s = this.stretches[Math.floor((seq - this.first) / size)];
    if (!s) return;
    this.follow.set(false);
    const token = this.going = {};
    // What is above still gets its height: stay on the event until it rests.
    for (let i = 0, rest = 0, top = 0; i < 100 && rest < 4 && this.going === token; i++) {
      const row = s.el.querySelector(`[data-seq="${seq}"]`), now = row?.getBoundingClientRect().top;
      if (row && Math.abs(now - top) < 2) rest++;
      else {
        rest = 0;
        (row || s.el).scrollIntoView({ block: row ? "center" : "start" });
        top = row?.getBoundingClientRect().top;
      }
      await new Promise((done) => { setTimeout(done, 60); });
    }
  }

  mark(s) {
    for (const row of s.el.children) {
      const seq = +row.dataset.seq;
      row.classList.toggle("here", seq === this.at);
      row.classList.toggle("later", this.at > 0 && seq > this.at);
    }
  }

  // --- keys ----------------------------------------------------------------------

  key(e) {
    const step = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1 }[e.key];
    const row = document.activeElement.closest?.(".ev");
    if (e.target.matches("input, textarea, select") || e.ctrlKey || e.metaKey || e.altKey) return;
    if (step && (row || e.target === this.scroller)) {
      const to = row ? neighbour(row, step) : this.firstInSight();
      if (to) { e.preventDefault(); to.focus({ preventScroll: true }); to.scrollIntoView({ block: "nearest" }); }
    } else if (row && e.target === row && (e.key === "Enter" || e.key === " ")) {
      e.preventDefault();
      (row.querySelector("summary, .more") || row.querySelector(".facts-of")).click();
    } else if (row && e.target === row && e.key === "d") row.querySelector(".facts-of").click();
  }

  firstInSight() {
    const top = this.scroller.getBoundingClientRect().top;
    return [...this.box.querySelectorAll(".ev")].find((r) => r.getBoundingClientRect().top >= top);
  }
}

function neighbour(row, step) {
  const next = (el) => (step > 0 ? el.nextElementSibling : el.previousElementSibling);
  let to = next(row), s = row.parentElement;
  while (!to || getComputedStyle(to).display === "none") {
    if (to) { to = next(to); continue; }
    s = next(s);
    if (!s) return null;
    to = step > 0 ? s.firstElementChild : s.lastElementChild;
    if (!to) return null; // not loaded yet
  }
  return to;
}

/** details are who, when, on whose command, and the bytes. */
function details(ev) {
  const raw = JSON.stringify(ev, null, 2);
  return h("div", { class: "details" }, facts([
    ["type", ev.type], ["time", ev.time], ["actor", ev.actor], ["command", ev.command], ["run", ev.run], ["id", ev.id],
    ["previous event", ev.prevhash ? "sha-256 " + ev.prevhash : "none: the first"], ["trace", ev.traceparent],
  ]), block(raw, "mono raw-json"));
}
