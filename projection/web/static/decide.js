// A card for one thing that waits for a person: exactly what would run, and
// what can be said to it. The inbox and the session page show the same card.

import { h, show, add, after, line, block, content, visible, pretty, toast } from "./dom.js";
import * as api from "./api.js";
import { busy, ask, say } from "./dialog.js";
import { ago } from "./status.js";
import { facts, decisionOf } from "./words.js";
import { Questions, questionsOf, looksLikeSeveral } from "./questions.js";
import { words, count } from "./format.js";

/** keyOf names one waiting item; a call that waits again is another. */
export const keyOf = (i) => [i.session, i.message_id, i.since_seq, i.generation || ""].join("|");

const scopes = [["once", "once"], ["session", "for this session"], ["workspace", "in this workspace"], ["global", "everywhere"]];

/** Card shows an item of approvals.list. */
export class Card {
  constructor(item, { acts, inSession = false }) {
    this.item = item; this.acts = acts; this.done = false; this.revision = item.request?.policy_revision;
    this.error = h("p", { class: "error", role: "alert" });
    this.el = h("article", { class: "card k-" + item.kind, "aria-label": visible(`${item.kind} ${item.name}`), tabindex: "-1" });
    show(this.el, this.head(inSession), this.what(), this.answer(), this.error);
  }

  head(inSession) {
    const i = this.item, r = i.request || i.call;
    const link = h("a", { href: `#/s/${encodeURIComponent(i.session)}?at=${i.since_seq}` }, i.title ? line(i.title, 60) : content(i.session));
    return h("header", {},
      h("span", { class: "kind" }, { approval: "Approval", question: "Question", unknown: "Unknown outcome" }[i.kind] || i.kind),
      h("h3", {}, h("span", { class: "tool" }, line(i.name, 80)), r?.resource ? [" ", h("code", { class: "res" }, line(r.resource, 160))] : ""),
      h("span", { class: "meta" }, inSession ? "" : [link, " · "], h("span", { class: "nowrap" }, "waits ", ago(i.since, ""))));
  }

  what() {
    const i = this.item, q = i.question || {}, r = i.request || i.call;
    const args = h("div", { class: "would" });
    this.showArguments(args, i.arguments);
    const each = this.acts && i.kind === "question" && this.several().length; // each stands with its options
    return h("div", { class: "what" },
      q.question && !each ? block(q.question, "say") : "",
      i.kind === "question" ? h("details", { class: "fold" }, h("summary", {}, h("span", { class: "label" }, "the call")), args) : args,
      facts([["risk", r.risk], ["asks because", words(r.reason_code)], ["summary", r.summary], ["permission", words(r.permission_type)], ["workspace", r.workspace],
        ["mode", r.effective_mode && r.effective_mode !== "default" ? r.effective_mode : ""], ["until", i.expires_at]]));
  }

  /** showArguments shows what would run, and proves that it is that. */
  showArguments(el, text) {
    const i = this.item, whole = new TextEncoder().encode(text).length === i.arguments_bytes;
    const proof = h("span", { class: "proof" });
    show(el, block(pretty(text) || "(no arguments)", "mono"), h("p", { class: "dim small" }, proof,
      whole ? "" : h("button", { type: "button", class: "link", onclick: (e) => busy(e.target, this.error, () => this.loadArguments(el)) }, `cut: show all ${count(i.arguments_bytes)} bytes`)));
    if (!whole) add(proof, "These are the first bytes only. ");
    else if (crypto.subtle && i.arguments_digest) {
      digest(text).then((hex) => {
        const ok = hex === i.arguments_digest;
        proof.className = "proof " + (ok ? "ok" : "bad");
        show(proof, ok ? `✓ exactly what would run · sha-256 ${hex.slice(0, 12)}…` : "These are not the bytes that were asked about: do not approve.");
      });
    }
  }

  async loadArguments(el) { this.showArguments(el, await wholeArguments(this.item)); }

  answer() {
    if (!this.acts) return h("p", { class: "dim" }, "To decide, open the page by the address that culm page prints.");
    return { question: () => this.question(), unknown: () => this.unknown() }[this.item.kind]?.() || this.approval();
  }

  // --- an approval -----------------------------------------------------------

  approval() {
    const allowed = this.item.request?.allowed_decisions || ["allow_once", "deny_once"];
    const matchers = this.item.request?.suggested_matchers || [];
    const open = scopes.filter(([s]) => allowed.includes("allow_" + s) || allowed.includes("deny_" + s));
    const scope = h("select", { "aria-label": "Scope", class: "scope" }, open.map(([v, t]) => h("option", { value: v }, t)));
    const matcher = h("select", { "aria-label": "What it covers", class: "matcher" }, matchers.map((m) => h("option", { value: m.id }, line(`${words(m.kind)}: ${m.pattern}`, 100).textContent)));
    const note = this.noteField();
    const yes = h("button", { type: "button", class: "primary", onclick: () => this.choose("allow", scope.value, matcher.value, note.value, yes) });
    const no = h("button", { type: "button", class: "danger", onclick: () => this.choose("deny", allowed.includes("deny_" + scope.value) ? scope.value : "once", matcher.value, note.value, no) });
    const label = () => {
      const s = scope.value, t = Object.fromEntries(scopes)[s];
      show(yes, "Allow " + t);
      show(no, allowed.includes("deny_" + s) && s !== "once" ? "Deny " + t : "Deny");
      yes.disabled = !allowed.includes("allow_" + s);
      matcher.hidden = s === "once" || matchers.length === 0;
    };
    scope.addEventListener("change", label);
    label();
    return h("div", { class: "answer" }, open.length > 1 ? [scope, matcher] : "", note, h("span", { class: "buttons" }, yes, no));
  }

  choose(effect, scope, matcher, note, button) {
    const data = { tool_call_id: this.item.tool_call_id, generation: this.item.generation, decision: effect + "_" + scope };
    if (note) data.note = note;
    if (scope !== "once" && matcher) data.matcher_id = matcher;
    if (scope === "workspace" || scope === "global") data.expected_policy_revision = this.revision ?? 0;
    const act = () => this.decide("approval.decide", data, `${effect === "allow" ? "allowed" : "denied"} ${Object.fromEntries(scopes)[scope]}`);
    if (scope !== "global") return busy(button, this.error, act);
    const m = this.item.request.suggested_matchers?.find((m) => m.id === matcher);
    ask({
      title: "Allow everywhere?", yes: "Allow everywhere", tone: "danger",
      body: [h("p", {}, "From now on, in every session and workspace, nobody is asked for:"), h("p", {}, h("code", {}, line(m ? `${words(m.kind)}: ${m.pattern}` : this.item.request.resource, 300)))],
      act: () => { data.confirm_global = true; return act(); },
    });
  }

  // --- a question ------------------------------------------------------------

  /** several are the questions of a call that asks more than one, and takes an
   * answer in any words. */
  several() {
    const asked = this.item.question || {}, list = asked.allow_custom ? questionsOf(this.item.arguments) : [];
    return list.every((q) => asked.question?.includes(q.text)) ? list : [];
  }

  question() {
    const q = this.item.question || {}, options = [...(q.options || [])];
    const send = (answer, button) => busy(button, this.error, () => this.decide("question.answer", { tool_call_id: this.item.tool_call_id, answer }, "answered"));
    const several = this.several();
    if (several.length) {
      const form = new Questions(several);
      const all = h("button", { type: "button", class: "primary", onclick: () => busy(all, this.error, () => this.decide("question.answer", { tool_call_id: this.item.tool_call_id, answer: form.read() }, "answered")) }, `Answer all ${several.length}`);
      return h("div", { class: "answer" }, form.el, all);
    }
    const custom = q.allow_custom || options.length === 0;
    if (q.allow_custom && looksLikeSeveral(q.question)) options.length = 0; // none of them answers all
    const text = h("textarea", { rows: "2", "aria-label": "Answer", placeholder: options.length || !looksLikeSeveral(q.question) ? "Answer" : "An answer to each question, a line for each" });
    const go = h("button", { type: "button", class: options.length ? "" : "primary", onclick: () => send(text.value, go) }, "Answer");
    return h("div", { class: "answer" },
      h("span", { class: "buttons" }, options.map((o) => h("button", { type: "button", onclick: (e) => send(o, e.target.closest("button")) }, line(o, 200)))),
      custom ? [text, go] : "");
  }

  // --- a call that may or may not have happened ------------------------------

  unknown() {
    const i = this.item, text = h("textarea", { rows: "3", "aria-label": "Outcome", placeholder: "What came out, as the model shall see it" });
    const ok = h("select", { "aria-label": "It" }, h("option", { value: "1" }, "it succeeded"), h("option", { value: "" }, "it failed"));
    const note = this.noteField();
    const supply = h("button", { type: "button", onclick: () => busy(supply, this.error, () =>
      this.decide("tool.resolve", { tool_call_id: i.tool_call_id, generation: i.generation, success: ok.value === "1", content: text.value }, "given its outcome")) }, "Use this outcome");
    const again = h("button", { type: "button", class: "danger", onclick: () => ask({
      title: "Run it again?", yes: "Run it again", tone: "danger",
      body: h("p", {}, "It may have happened already. Running it again may do it twice."), act: () => this.choose2("allow_once", note.value, decisionOf("allow_once", true)),
    }) }, "Run it again");
    const no = h("button", { type: "button", onclick: () => busy(no, this.error, () => this.choose2("deny_once", note.value, decisionOf("deny_once", true))) }, "Do not run it");
    return h("div", { class: "answer" }, note, h("span", { class: "buttons" }, no, again),
      h("details", { class: "fold wide" }, h("summary", {}, h("span", { class: "label" }, "I know what happened")), h("div", { class: "inner" }, ok, text, supply)));
  }

  choose2(decision, note, said) {
    const { tool_call_id, generation } = this.item;
    return this.decide("approval.decide", { tool_call_id, generation, decision, ...(note && { note }) }, said);
  }

  noteField() {
    return h("input", { type: "text", class: "notefield", placeholder: "Note (kept in the log)", "aria-label": "Note", maxlength: "2000", autocomplete: "off" });
  }

  async decide(name, data, said) {
    try {
      const r = await api.command(this.item.session, name, data);
      this.settled(said, r);
      toast(`${this.item.name}: ${said}.`, "good");
    } catch (e) {
      if (e.code === "policy_conflict" && e.details.policy_revision !== undefined) {
        const before = this.revision;
        this.revision = e.details.policy_revision;
        throw new Error(`The policy has changed since this was asked (revision ${before} to ${this.revision}). Press again to decide under the new one.`);
      }
      throw new Error(say(e));
    }
  }

  /** settled leaves a receipt, which later says what came of it. */
  settled(said, reply) {
    this.done = true;
    this.seen = reply.event?.sequence || this.item.since_seq;
    this.outcome = h("span", { class: "dim" }, reply.result?.blocked ? "stored; the loop has to be continued or abandoned first" : reply.result?.run_id ? "run requested" : "");
    this.el.classList.add("done");
    show(this.el, h("p", { class: "receipt" }, h("b", {}, line(this.item.name, 60)), " ", said, " ", this.outcome, " ",
      h("a", { href: `#/s/${encodeURIComponent(this.item.session)}` }, "open")));
    this.el.focus({ preventScroll: true });
    this.lookOn = after(150, () => this.look());
    this.lookOn(); // it may have run before the answer was here
  }

  /** follow says what came of a decided call. */
  follow(e) {
    if (this.done && e.session === this.item.session) this.lookOn();
  }

  async look() {
    const r = await api.session(this.item.session, `events?after=${this.seen}&limit=50`).catch(() => null);
    for (const ev of r?.events || []) {
      this.seen = ev.seq;
      if (ev.type === "run.started") show(this.outcome, "run started");
      if (ev.data?.message_id === this.item.message_id) this.became(ev.type, ev.data);
    }
  }

  became(type, d) {
    if (type === "replay.started") show(this.outcome, "running…");
    else if (type === "replay.finished") show(this.outcome, h("span", { class: d.success ? "good" : "bad" }, d.success ? "✓ succeeded" : "✗ failed"), ": ", line(d.content, 120));
    else if (type === "replay.blocked") show(this.outcome, h("span", { class: "bad" }, "not run: " + words(d.reason)));
    else if (type === "replay.reparked") show(this.outcome, "waits again: a second gate");
    else return;
    if (type !== "replay.started") { this.lookOn = () => {}; }
  }
}

/** wholeArguments reads the arguments of an item that are too long for a list. */
export async function wholeArguments(i) {
  let cursor = "";
  do {
    const r = await api.query("tools.list", { session: i.session, limit: 50, ...(cursor && { cursor }) });
    const t = r.items.find((t) => t.message_id === i.message_id);
    if (t) return t.arguments;
    cursor = r.next;
  } while (cursor);
  throw new Error("The call is not in the views.");
}

async function digest(text) {
  const sum = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(sum), (b) => b.toString(16).padStart(2, "0")).join("");
}

/** Cards keeps cards for a list of items: what somebody types survives, and a
 * decided one leaves its receipt until the list is left. */
export class Cards {
  constructor(el, options) { this.el = el; this.options = options; this.cards = new Map(); }

  update(items) {
    const now = new Set(items.map(keyOf));
    for (const [key, card] of this.cards) {
      if (!now.has(key) && !card.done) { card.el.remove(); this.cards.delete(key); }
    }
    for (const item of items) {
      const key = keyOf(item);
      if (this.cards.has(key)) continue;
      const card = new Card(item, this.options());
      this.cards.set(key, card);
      this.el.append(card.el);
    }
    return this.cards.size;
  }

  event(e) { for (const c of this.cards.values()) c.follow(e); }
}
