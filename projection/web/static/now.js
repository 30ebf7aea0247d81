// The overview: what waits for me, what runs, what went wrong.

import { h, show, line, content } from "./dom.js";
import * as api from "./api.js";
import { pill, bar, ago, progressOf, titleOf, why, loops } from "./status.js";
import { say } from "./dialog.js";
import { plural, short, words } from "./format.js";

const groups = [["running", ["running", "requested"]], ["trouble", ["stuck", "blocked", "failed"]], ["lately", ["idle"]]];

export class NowPage {
  constructor(el, app) {
    this.app = app;
    this.reader = app.abreast((wait, signal) => this.read(wait, signal), { settle: 500, failed: (e) => { if (e.code !== "unreachable") show(this.box, h("p", { class: "error" }, content(say(e)))); } });
    this.box = h("div", { class: "now" }, h("p", { class: "note" }, "…"));
    show(el, this.box);
    document.title = "culm";
  }

  close() { this.reader.close(); }
  refresh() { this.reader.soon(); }
  show() { this.reader.soon(); }
  event(e) { if (!e.session.startsWith("_")) this.reader.ask(e.session, e.seq); }

  async read(wait, signal) {
    const list = (status, limit) => api.query("sessions.list", { status, limit, ...wait }, signal);
    const all = await Promise.all(groups.map(([, statuses]) => Promise.all(statuses.map((s) => list(s, s === "idle" ? 5 : 30)))));
    const [running, trouble, lately] = all.map((pages) => pages.flatMap((p) => p.items));
    this.draw(running, trouble, lately);
  }

  draw(running, trouble, lately) {
    const waiting = this.app.waiting?.items || [];
    if (!running.length && !trouble.length && !lately.length && !waiting.length) {
      show(this.box, h("div", { class: "empty first" }, h("p", {}, "Nothing has happened here yet."), h("p", { class: "dim" }, "Sessions appear by themselves as soon as somebody creates one, here or with ", h("code", {}, "culm session create"), "."),
        this.app.acts ? h("button", { type: "button", class: "primary", onclick: () => this.app.create() }, "New session") : ""));
      return;
    }
    show(this.box,
      part("Waits for you", waiting.length, waiting.slice(0, 8).map(waitingRow), "Nothing waits for you.", waiting.length > 8 ? h("a", { href: "#/inbox" }, `all ${waiting.length}${this.app.waiting.next ? "+" : ""}`) : ""),
      part("Runs now", running.length, running.map(row), "Nothing runs."),
      trouble.length ? part("Went wrong", trouble.length, trouble.map(row), "") : "",
      part("Quiet lately", 0, lately.map(row), "No session is idle."));
  }
}

function part(title, n, rows, none, more = "") {
  return h("section", { class: "part" }, h("h2", {}, title, n ? h("span", { class: "n" }, n) : ""), rows.length ? h("ul", {}, rows) : h("p", { class: "dim" }, none), more);
}

function row(s) {
  const running = s.run && loops(s);
  return h("li", {}, h("a", { href: "#/s/" + encodeURIComponent(s.session), class: "line" },
    pill(s.status), h("span", { class: "title" }, titleOf(s), s.title ? h("span", { class: "dim mono small" }, " ", content(s.session)) : ""),
    h("span", { class: "what" }, running ? [bar(s.loop), h("span", {}, progressOf(s.loop))] : why(s) ? h("span", {}, why(s)) : h("span", { class: "dim" }, s.run ? (s.run.round !== undefined ? `round ${s.run.round + 1}` : words(s.run.status)) : s.last_outcome ? "last run " + words(s.last_outcome) : "no run yet", s.usage.total ? ` · ${short(s.usage.total)} tokens in all` : "")),
    ago(s.updated_at)));
}

function waitingRow(i) {
  return h("li", {}, h("a", { href: "#/inbox", class: "line" },
    h("span", { class: "pill t-wait" }, h("i", { class: "dot", "aria-hidden": "true" }), i.kind === "unknown" ? "unknown outcome" : i.kind),
    h("span", { class: "title" }, h("span", { class: "tool" }, line(i.name, 50)), " ", h("code", {}, line(i.request?.resource || i.question?.question || "", 100))),
    h("span", { class: "what dim" }, i.title ? line(i.title, 60) : content(i.session)), ago(i.since)));
}
