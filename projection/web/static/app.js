// The page: which view is shown, what is live, and what is said when it is not.

import { h, show, add, after, content, toast } from "./dom.js";
import * as api from "./api.js";
import { Live } from "./live.js";
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
    this.create = () => newSession(ask, (to) => { location.hash = to; });
    this.list = new SessionList($("side"), () => (this.acts ? this.create() : toast("This page may only look: open it by the address that culm page prints.", "bad")));
    this.readWaiting = after(150, (min) => this.loadWaiting(min));
    this.live = new Live({ event: (e) => this.event(e), gap: () => this.reload(), gone: (session) => this.gone(session), delta: (session, run, d) => { if (d && this.view instanceof SessionPage && this.view.id === session) this.view.draft.delta(run, d); }, state: (s) => this.connection(s) });
    this.chrome();
  }

  async start() {
    this.theme(localStorage.getItem("culm-theme") || "");
    addEventListener("hashchange", () => { api.token() || api.takeToken(); this.route(); });
    await this.readStatus();
    this.route();
    this.live.start();
    setInterval(() => this.readStatus(), 5000);
    setInterval(tickAges, 1000);
    setInterval(() => { this.banner(); this.tabTitle(); }, 1000);
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

  async readStatus() {
    try {
      this.status = await api.get("status");
      if (this.acts !== this.status.acts) { this.acts = this.status.acts; if (this.view) this.route(); }
      this.denied = false;
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

  connection(s) { this.conn = s; this.lampNow(); this.banner(); if (s.up) this.readStatus(); }

  lampNow() {
    const st = this.status, up = this.conn.up;
    let text = "live", cls = "up";
    if (!up) { text = "reconnecting"; cls = "down"; }
    else if (st && !st.ready) { text = "catching up"; cls = "behind"; }
    else if (st && st.rebuilding.length) { text = "computing views anew"; cls = "behind"; }
    else if (st && (st.behind_events > 500 || st.behind_seconds > 2)) { text = `${count(st.behind_events)} events behind`; cls = "behind"; }
    if (this.lamp.dataset.text !== text) {
      this.lamp.dataset.text = text;
      this.lamp.className = "lamp " + cls;
      show(this.lamp, h("i", { class: "dot", "aria-hidden": "true" }), text);
    }
    show(this.me, this.acts ? st.actor : "read only");
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
    this.list.load(true);
    this.loadWaiting();
    if (this.view?.refresh) this.view.refresh();
  }

  event(e) {
    this.list.event(e);
    this.view?.event?.(e);
    if (waits(e.type)) this.readWaiting({ [e.session]: e.seq });
  }

  /** gone takes a deleted session out of everything. */
  gone(session) {
    this.list.gone(session);
    this.loadWaiting();
    if (this.view instanceof SessionPage) { if (this.view.id === session) this.view.load(); } else this.view?.refresh?.();
  }

  async loadWaiting(min) {
    try {
      const r = await api.query("approvals.list", { limit: 100, ...(min && { min_sequence: min, wait_ms: 1500 }) });
      this.waiting = r;
      const n = r.items.length + (r.next ? "+" : "");
      show(this.inboxCount, n);
      this.inboxCount.hidden = !r.items.length;
      this.links[2].setAttribute("aria-label", r.items.length ? `Inbox, ${n} waiting` : "Inbox");
      this.view?.show?.(r);
    } catch (e) {
      if (e.code === "not_yet") this.readWaiting();
    }
  }

  // --- which view ----------------------------------------------------------------------

  route() {
    const [path, search] = (location.hash.slice(1) || "/").split("?");
    const q = new URLSearchParams(search), parts = path.split("/").filter(Boolean).map(decodeURIComponent);
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
        if (+q.get("at")) this.view.wanted = +q.get("at");
        this.view.load();
        break;
      case "inbox":
        this.view = new InboxPage(main, this);
        if (this.waiting) this.view.show(this.waiting);
        this.loadWaiting();
        break;
      case "usage": {
        const draw = () => usagePage(main).catch((e) => show(main, h("p", { class: "error" }, content(say(e)))));
        this.view = { refresh: draw, event: after(3000, draw) };
        draw();
        break;
      }
      case "search": {
        const abort = new AbortController();
        this.view = { close: () => abort.abort() };
        $("find-text").value = q.get("q") || "";
        searchPage(main, (q.get("q") || "").trim(), abort.signal);
        break;
      }
      default:
        this.view = new NowPage(main, this);
        this.view.load();
    }
  }
}

function help() {
  const keys = [["/", "search all messages"], ["g n", "now"], ["g s", "sessions"], ["g i", "inbox"], ["g u", "usage"], ["n", "new session"], ["j k", "next, previous event or session"], ["Enter", "open what an event folds"], ["d", "details and raw JSON of an event"], ["Tab", "everything else"]];
  ask({ title: "Keys", yes: "Close", body: h("dl", { class: "keys" }, keys.map(([k, t]) => [h("dt", {}, k.split(" ").map((c) => h("kbd", {}, c))), h("dd", {}, t)])) });
}

const app = new App();
app.start();
