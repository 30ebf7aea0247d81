// The list of sessions beside everything else. It stays where the eye left it:
// rows change in place, new sessions come on top, the order is made anew only
// when somebody asks for it.

import { h, show, add, after, toast, content } from "./dom.js";
import * as api from "./api.js";
import { pill, bar, ago, progressOf, titleOf, tone, loops } from "./status.js";
import { say } from "./dialog.js";
import { plural } from "./format.js";

const filters = [["", "All"], ["running", "Running"], ["waiting", "Waiting"], ["failed", "Failed"], ["blocked", "Blocked"], ["stuck", "Stuck"], ["idle", "Idle"], ["closed", "Closed"]];
const page = 100;

export class SessionList {
  constructor(el, app, onNew) {
    this.el = el; this.rows = new Map(); this.status = ""; this.text = ""; this.cursor = ""; this.current = ""; this.wished = 1; this.had = 0;
    this.list = h("ul", { class: "sessions" });
    this.note = h("p", { class: "note" });
    this.more = h("button", { type: "button", class: "link", hidden: true, onclick: () => this.older() }, "more");
    this.input = h("input", { type: "search", placeholder: "Filter sessions", "aria-label": "Filter sessions", spellcheck: "false", autocomplete: "off", maxlength: "500", oninput: after(200, () => { this.text = this.input.value.trim(); this.load(); }) });
    this.select = h("select", { "aria-label": "Status", onchange: () => { this.status = this.select.value; this.load(); } }, filters.map(([v, t]) => h("option", { value: v }, t)));
    show(el, h("div", { class: "tools" }, this.input, this.select, h("button", { type: "button", class: "icon", title: "New session", "aria-label": "New session", onclick: onNew }, "+")), this.list, this.note, this.more);
    new IntersectionObserver((seen) => seen.some((s) => s.isIntersecting) && this.cursor && !this.loading && this.older(), { root: el, rootMargin: "400px" }).observe(this.more);
    this.reader = app.reader((wait, signal, sessions) => this.read(wait, signal, sessions), { settle: 200, failed: (e) => { if (e.code !== "unreachable") show(this.note, content(say(e))); } });
    this.reload = after(1500, () => this.load());
    el.addEventListener("keydown", (e) => this.key(e));
  }

  /** load reads the first page anew. */
  load() {
    this.wished++;
    this.reader.now();
  }

  /** read shows the sessions that have changed where they stand, or everything
   * anew; it is of a Reader. */
  async read(wait, signal, sessions) {
    const wished = this.wished;
    if (wished !== this.had || this.filtered()) {
      if (await this.first(wait, signal) && wait) this.had = wished;
    } else if (sessions.length <= 6) {
      await Promise.all(sessions.map((s) => this.one(s, wait, signal)));
    } else {
      const want = new Set(sessions);
      const r = await api.query("sessions.list", { limit: Math.min(500, Math.max(page, sessions.length)), ...wait }, signal);
      for (const s of r.items) if (want.has(s.session)) this.put(s, true);
    }
    this.say();
  }

  /** filtered: what matches is for the server to say. */
  filtered() { return this.text !== "" || this.status !== ""; }

  query() { return { limit: page, ...(this.status && { status: this.status }), ...(this.text && { text: this.text }) }; }

  /** first shows the first page, unless another filter was set meanwhile. */
  async first(wait, signal) {
    const q = this.query();
    const r = await api.query("sessions.list", { ...q, ...wait }, signal);
    if (JSON.stringify(q) !== JSON.stringify(this.query())) return false;
    this.rows.clear();
    this.list.replaceChildren();
    this.append(r);
    return true;
  }

  /** older reads the next page. */
  async older() {
    const q = { ...this.query(), cursor: this.cursor };
    this.loading = true;
    try {
      const r = await api.query("sessions.list", q, this.reader.signal);
      if (q.cursor === this.cursor) this.append(r);
      this.say();
    } catch (e) {
      if (e.name !== "AbortError" && e.code !== "unreachable") show(this.note, content(say(e)));
    } finally { this.loading = false; }
  }

  append(r) {
    for (const s of r.items) this.put(s, false);
    this.cursor = r.next || "";
    this.more.hidden = !this.cursor;
  }

  async one(session, wait, signal) {
    try {
      this.put((await api.query("sessions.get", { session, ...wait }, signal)).items[0], true);
    } catch (e) {
      if (e.code !== "session_not_found") throw e;
      if (wait) this.reload(); // it was deleted: another may be in its place
    }
  }

  say() {
    const n = this.rows.size;
    show(this.note, n === 0 ? (this.status || this.text ? "No session matches." : "No sessions yet.") : this.cursor ? "" : plural(n, "session"));
  }

  put(s, top) {
    const row = this.rows.get(s.session);
    if (row) { fillRow(row, s); return; }
    const el = h("li", {});
    fillRow(el, s, true);
    this.mark(el, s.session);
    this.rows.set(s.session, el);
    top ? this.list.prepend(el) : this.list.append(el);
  }

  /** event notes that a session has changed. */
  event(e) {
    if (e.session.startsWith("_")) return;
    if (!this.filtered()) { this.reader.ask(e.session, e.seq); return; }
    this.reader.want(e.session, e.seq);
    this.reload();
  }

  /** gone takes a deleted session out of the list. */
  gone(session) {
    this.reader.forget(session);
    this.rows.get(session)?.remove();
    this.rows.delete(session);
    this.say();
  }

  mark(el, session) {
    const link = el.firstChild;
    if (session === this.current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }

  select_(session) {
    this.current = session;
    for (const [name, el] of this.rows) this.mark(el, name);
  }

  key(e) {
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[e.key];
    if (!step || e.target.matches("input, select")) return;
    const links = [...this.list.querySelectorAll("a")];
    const to = links[links.indexOf(document.activeElement) + step];
    if (to) { e.preventDefault(); to.focus(); }
  }
}

function fillRow(el, s) {
  const had = el.firstChild;
  const link = had || h("a", { href: "#/s/" + encodeURIComponent(s.session) });
  link.className = "row t-" + tone(s.status);
  show(link,
    h("span", { class: "first" }, h("span", { class: "title" }, titleOf(s)), ago(s.updated_at)),
    h("span", { class: "second" }, pill(s.status), h("span", { class: "dim prog" },
      s.waiting ? plural(s.waiting, "item") : loops(s) ? progressOf(s.loop) : s.title ? content(s.session) : "")),
    s.run && loops(s) ? bar(s.loop) : "");
  if (!had) add(el, link);
}

/** newSession asks for a name and what the session is to be. */
export function newSession(ask, go) {
  const id = h("input", { name: "id", required: true, pattern: "[A-Za-z0-9\\-][A-Za-z0-9_\\-]{0,63}", maxlength: "64", spellcheck: "false", autocomplete: "off", value: "s-" + new Date().toISOString().slice(5, 16).replace(/[-:T]/g, "") });
  const title = h("input", { name: "title", maxlength: "200", autocomplete: "off" });
  const mode = h("select", { name: "mode" }, [["", "as configured"], ["default", "default: ask where no rule decides"], ["auto", "auto: ask about nothing"], ["bypass", "bypass: ask about dangerous operations only"]].map(([v, t]) => h("option", { value: v }, t)));
  const model = h("input", { name: "model", placeholder: "as configured", pattern: "[^\\/\\s]+/\\S+", title: "PROVIDER/MODEL", spellcheck: "false", autocomplete: "off" });
  const workspace = h("input", { name: "workspace", placeholder: "a folder, as configured", spellcheck: "false", autocomplete: "off" });
  ask({
    title: "New session", yes: "Create",
    body: [h("label", {}, "Name (letters, digits, - and _)", id), h("label", {}, "Title", title), h("label", {}, "Permission mode", mode), h("label", {}, "Model, PROVIDER/MODEL", model), h("label", {}, "Workspace", workspace)],
    async act() {
      await api.command(id.value, "session.create", sessionOf(title.value, mode.value, model.value.trim(), workspace.value.trim()));
      go("#/s/" + encodeURIComponent(id.value));
      toast("Session created.", "good");
    },
  });
}

/** sessionOf is the body of session.create; what is empty is left out. */
function sessionOf(title, mode, model, workspace) {
  const slash = model.indexOf("/");
  return { ...(title && { title }), ...(mode && { mode }), ...(model && { model: { provider: model.slice(0, slash), model: model.slice(slash + 1) } }), ...(workspace && { workspace }) };
}
