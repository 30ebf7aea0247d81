// The page: which view is shown, what is live, and what is said when it is not.

import { h, show, content, toast } from "./dom.js";
import * as api from "./api.js";
import { Live } from "./live.js";
import { Reader, old } from "./reader.js";
import { SessionList, newSession } from "./sessions.js";
import { SessionPage } from "./session.js";
import { InboxPage, waits } from "./inbox.js";
import { NowPage } from "./now.js";
import { usagePage } from "./usage.js";
import { searchPage } from "./search.js";
import { ask, say } from "./dialog.js";
import { tickAges } from "./status.js";
import { clock, count } from "./format.js";

const $ = (id) => document.getElementById(id);
const views = [["#/", "Now", "n"], ["#/sessions", "Sessions", "s"], ["#/inbox", "Inbox", "i"], ["#/usage", "Usage", "u"]];

class App {
  constructor() {
    api.takeToken();
    this.acts = false; this.status = null; this.view = null; this.waiting = null; this.conn = { up: false, since: Date.now() };
    this.late = false; // the views were behind, or may have been
    this.lacking = new Map(); // what readers miss of the views
    this.recent = new Map(); // the last events of the sessions that moved last
    this.create = () => newSession(ask, (to) => { location.hash = to; });
    this.list = new SessionList($("side"), this, () => (this.acts ? this.create() : toast("This page may only look: open it by the address that culm page prints.", "bad")));
    this.inbox = this.reader((wait, signal) => this.readWaiting(wait, signal), { settle: 150, lacks: (text) => { if (this.view instanceof InboxPage) this.view.lacks(text); } });
    this.live = new Live({
      event: (e) => this.event(e),
      gap: () => this.reload(),
      gone: (session) => this.gone(session),
      delta: (session, run, d) => this.delta(session, run, d),
      state: (s) => this.connection(s),
    });
    this.chrome();
  }

  async start() {
    this.theme(localStorage.getItem("culm-theme") || "");
    addEventListener("hashchange", () => { api.token() || api.takeToken(); this.route(); });
    await this.readStatus();
    this.route();
    this.live.start();
    this.poll();
    setInterval(tickAges, 1000);
    setInterval(() => { this.banner(); this.tabTitle(); }, 1000);
  }

  /** reader is a Reader whose lacks the lamp tells, too. */
  reader(read, { lacks = () => {}, ...options } = {}) {
    const r = new Reader(read, { ...options, lacks: (text) => {
      text ? this.lacking.set(r, text) : this.lacking.delete(r);
      this.lampNow();
      lacks(text);
    } });
    return r;
  }

  /** abreast is a reader that begins with what the page has heard of. */
  abreast(read, options) {
    const r = this.reader(read, options);
    for (const [session, seq] of this.recent) r.want(session, seq);
    return r;
  }

  // --- what is around the views ---------------------------------------------------

  chrome() {
    this.links = views.map(([href, text]) => h("a", { href }, text));
    this.inboxCount = h("span", { class: "n", hidden: true });
    this.links[2].append(" ", this.inboxCount);
    show($("nav"), this.links);
    this.lamp = h("span", { class: "lamp", role: "status" });
    this.me = h("span", { class: "me" });
    show($("who"), this.lamp, this.me,
      h("button", { type: "button", class: "icon", title: "Light or dark", "aria-label": "Light or dark", onclick: () => this.theme({ "": "light", light: "dark", dark: "" }[document.documentElement.dataset.theme || ""]) }, "◐"),
      h("button", { type: "button", class: "icon", title: "Keys", "aria-label": "Keys", onclick: () => help() }, "?"));
    $("find").addEventListener("submit", (e) => { e.preventDefault(); location.hash = "#/search?q=" + encodeURIComponent($("find-text").value.trim()); });
    $("skip").addEventListener("click", () => $("main").focus());
    document.addEventListener("keydown", (e) => this.key(e));
  }

  theme(name) {
    if (name) document.documentElement.dataset.theme = name; else delete document.documentElement.dataset.theme;
    localStorage.setItem("culm-theme", name);
  }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input, textarea, select") || $("dialog").open) return;
    if (this.going) {
      this.going = false;
      const to = views.find((v) => v[2] === e.key);
      if (to) { location.hash = to[0]; e.preventDefault(); }
    } else if (e.key === "g") { this.going = true; setTimeout(() => { this.going = false; }, 1500); }
    else if (e.key === "/") { e.preventDefault(); $("find-text").focus(); }
    else if (e.key === "?") help();
    else if (e.key === "n" && this.acts) this.create();
  }

  /** poll reads the status every five seconds, every second while the views are late. */
  async poll() {
    for (let n = 1; ; n++) {
      await new Promise((done) => { setTimeout(done, 1000); });
      if (this.late || n % 5 === 0) await this.readStatus();
    }
  }

  async readStatus() {
    try {
      this.status = await api.get("status");
      if (this.acts !== this.status.acts) { this.acts = this.status.acts; if (this.view) this.route(); }
      this.denied = false;
      const late = this.behind() !== "";
      if (this.late && !late) this.reload(); // what was read meanwhile may be old
      this.late = late;
    } catch (e) {
      if (e.code === "unauthorized" && api.token()) {
        this.denied = "The token of this tab is not known here any more.";
        api.setToken("");
        toast(this.denied, "bad");
      } else if (e.code === "unauthorized" && !this.denied) { this.denied = e.message; this.askToken(); }
    }
    this.lampNow();
  }

  askToken() {
    const input = h("input", { type: "password", autocomplete: "off", required: true, "aria-label": "Token" });
    ask({ title: "Token", yes: "Use it", body: [h("p", {}, "This server asks who is there. Open the page by the address that culm page prints, or give the token of it:"), input],
      act: async () => { api.setToken(input.value.trim()); await api.get("status").catch((e) => { api.setToken(""); throw e; }); this.denied = false; await this.readStatus(); this.reload(); } });
  }

  // --- the connection ----------------------------------------------------------------

  connection(s) {
    if (!s.up && this.conn.up) this.late = true; // what failed meanwhile is read anew
    this.conn = s;
    this.lampNow();
    this.banner();
    if (s.up) this.readStatus();
  }

  /** behind is how far the views are from the log, "" if they are with it. */
  behind() {
    const st = this.status;
    if (!st) return "";
    if (!st.ready) return "catching up";
    if (st.rebuilding.length) return "computing views anew";
    return st.behind_events > 500 || st.behind_seconds > 2 ? `${count(st.behind_events)} events behind` : "";
  }

  lampNow() {
    const behind = this.behind() || (this.lacking.size ? "views behind" : "");
    const [text, cls] = !this.conn.up ? ["reconnecting", "down"] : behind ? [behind, "behind"] : ["live", "up"];
    this.lamp.title = old(this.lacking.values().next().value || "");
    if (this.lamp.dataset.text !== text) {
      this.lamp.dataset.text = text;
      this.lamp.className = "lamp " + cls;
      show(this.lamp, h("i", { class: "dot", "aria-hidden": "true" }), text);
    }
    show(this.me, this.acts ? this.status.actor : "read only");
    this.me.title = this.acts ? "Decisions are recorded under this name" : "To decide, open the page by the address that culm page prints";
  }

  /** tabTitle counts what waits where a tab in the background shows it. */
  tabTitle() {
    const n = this.inboxCount.hidden ? "" : `(${this.inboxCount.textContent}) `, want = n + document.title.replace(/^\(\d+\+?\) /, "");
    if (document.title !== want) document.title = want;
  }

  banner() {
    const b = $("banner"), down = !this.conn.up && Date.now() - this.conn.since > 1500;
    b.hidden = !down;
    if (!down) { this.said = ""; return; }
    const left = Math.max(0, Math.ceil(((this.conn.retry || 0) - Date.now()) / 1000));
    if (!this.said) show(b, `Disconnected since ${clock(new Date(this.conn.since))}. What is shown may be old. `, this.next = h("span", { "aria-hidden": "true" }), h("button", { type: "button", class: "link", onclick: () => this.live.now() }, "Try now"));
    this.said = true;
    show(this.next, left ? `Next attempt in ${left} s. ` : "Trying… ");
  }

  /** reload reads everything anew: something may have been missed. */
  reload() {
    this.list.load();
    this.inbox.now();
    this.view?.refresh?.();
  }

  event(e) {
    this.hear(e);
    this.list.event(e);
    this.view?.event?.(e);
    if (waits(e, this.waiting)) this.inbox.ask(e.session, e.seq);
  }

  /** hear notes how far a session is, for readers that begin later. */
  hear(e) {
    if (e.session.startsWith("_")) return;
    this.recent.delete(e.session);
    this.recent.set(e.session, e.seq);
    if (this.recent.size > 50) this.recent.delete(this.recent.keys().next().value);
  }

  delta(session, run, d) {
    if (d && this.view instanceof SessionPage && this.view.id === session) this.view.draft.delta(run, d);
  }

  /** gone takes a deleted session out of everything. */
  gone(session) {
    this.list.gone(session);
    this.inbox.forget(session);
    this.recent.delete(session);
    this.inbox.now();
    this.view?.reader?.forget(session);
    if (this.view instanceof SessionPage) { if (this.view.id === session) this.view.load(); } else this.view?.refresh?.();
  }

  async readWaiting(wait, signal) {
    const r = await api.query("approvals.list", { limit: 100, ...wait }, signal);
    this.waiting = r;
    const n = r.items.length + (r.next ? "+" : "");
    show(this.inboxCount, n);
    this.inboxCount.hidden = !r.items.length;
    this.links[2].setAttribute("aria-label", r.items.length ? `Inbox, ${n} waiting` : "Inbox");
    this.view?.show?.(r);
  }

  // --- which view ----------------------------------------------------------------------

  route() {
    const [path, search] = (location.hash.slice(1) || "/").split("?");
    const q = new URLSearchParams(search), parts = path.split("/").filter(Boolean).map(api.decoded);
    if (this.view instanceof SessionPage && parts[0] === "s" && parts[1] === this.view.id && this.view.state && q.get("at")) {
      this.view.scrub(+q.get("at"));
      return;
    }
    this.view?.close?.();
    this.view = null;
    this.live.watch(parts[0] === "s" ? parts[1] || "" : "");
    const main = h("div", { class: "view" });
    show($("main"), main);
    document.body.dataset.view = parts[0] || "now";
    document.title = "culm";
    this.list.select_(parts[0] === "s" ? parts[1] : "");
    this.links.forEach((l, i) => { (views[i][0] === "#/" + (parts[0] || "")) || (parts[0] === "s" && i === 1) ? l.setAttribute("aria-current", "page") : l.removeAttribute("aria-current"); });
    this.open(main, parts, q);
  }

  open(main, parts, q) {
    switch (parts[0]) {
      case "s":
        this.view = new SessionPage(main, parts[1] || "", this);
        if (+q.get("at")) this.view.scrub(+q.get("at"));
        this.view.load();
        break;
      case "inbox":
        this.view = new InboxPage(main, this);
        this.inbox.now();
        break;
      case "usage": {
        const r = this.abreast((wait, signal) => usagePage(main, wait, signal), { settle: 3000, failed: (e) => show(main, h("p", { class: "error" }, content(say(e)))) });
        this.view = { reader: r, refresh: () => r.now(), event: (e) => r.ask(e.session, e.seq), close: () => r.close() };
        r.now();
        break;
      }
      case "search": {
        const text = (q.get("q") || "").trim(), r = this.abreast((wait, signal) => searchPage(main, text, wait, signal));
        this.view = { refresh: () => r.now(), close: () => r.close() };
        $("find-text").value = q.get("q") || "";
        r.now();
        break;
      }
      default:
        this.view = new NowPage(main, this);
        this.view.reader.now();
    }
  }
}

function help() {
  const keys = [["/", "search all messages"], ["g n", "now"], ["g s", "sessions"], ["g i", "inbox"], ["g u", "usage"], ["n", "new session"], ["j k", "next, previous event or session"], ["Enter", "open what an event folds"], ["d", "details and raw JSON of an event"], ["Tab", "everything else"]];
  ask({ title: "Keys", yes: "Close", body: h("dl", { class: "keys" }, keys.map(([k, t]) => [h("dt", {}, k.split(" ").map((c) => h("kbd", {}, c))), h("dd", {}, t)])) });
}

const app = new App();
app.start();
