// What an event says, in words: who reads them should not have to know types.

import { h, add, content, line, block, pretty } from "./dom.js";
import { count, elapsed, plural, words, modelOf } from "./format.js";
import { Around } from "./around.js";

/**
 * tell describes an event: kind (for the filters), tone ("", good, bad, wait,
 * dim), title (nodes) and body (nodes). ev is the stored event, around what is
 * known from others.
 */
export function tell(ev, around = new Around()) {
  const f = table[ev.type] || (() => ({ kind: "other", title: words(ev.type).replace(".", " ") }));
  const d = ev.data || {};
  let out;
  try { out = f(d, ev, around); } catch { out = { kind: "other", tone: "bad", title: ev.type || "this event cannot be told" }; }
  if (ev.damaged) out = { kind: "other", tone: "bad", title: "damaged: these bytes are no event", body: [block(ev.damaged, "mono")] };
  return { tone: "", body: [], ...out };
}

const b = (text) => h("b", {}, line(text, 80));
const name = (text) => h("span", { class: "tool" }, line(text, 80));
const because = (text) => (text ? [" — ", line(text, 200)] : "");
const said = (text, cls = "") => (text ? [block(text, "say " + cls)] : []);

/** fold is content that opens on demand: a line of it, then all. */
export function fold(label, text, cls = "mono", open = false) {
  text = String(text ?? "");
  const box = h("div", { class: "inner" });
  const once = () => { if (!box.firstChild) box.append(block(cls === "mono" ? pretty(text) : text, cls)); };
  const el = h("details", { class: "fold", ontoggle: (e) => e.target.open && once() },
    h("summary", {}, h("span", { class: "label" }, label), h("span", { class: "peek" }, line(text, 140) )), box);
  if (open) { once(); el.open = true; }
  return el;
}

const outcome = (ok) => (ok ? "succeeded" : "failed");

function result(d, how) {
  return {
    kind: "tool", tone: d.success ? "good" : "bad",
    title: [name(d.name), ` ${how || outcome(d.success)}`, d.elapsed_ms ? h("span", { class: "dim" }, " " + elapsed(d.elapsed_ms)) : "", because(d.error)],
    body: d.content ? [fold("result", d.content, "plain")] : [h("span", { class: "dim" }, "empty result")],
  };
}

function parked(d, again) {
  return {
    kind: "decision", tone: "wait",
    title: [name(d.name), again ? " waits for a person again" : d.kind === "question" ? " asks" : " waits for approval"],
    body: [block(d.question?.question || "", "say"), d.request && h("div", { class: "facts" }, h("span", {}, words(d.request.permission_type)), " ", h("code", {}, line(d.request.resource, 200)))],
  };
}

function progress(loop) {
  return loop ? h("span", { class: "dim" }, ` · ${plural(loop.iterations_completed, "iteration")} done, ${plural(loop.rounds_started, "round")}`) : "";
}

const unknown = (list) => (list?.length ? [h("div", { class: "warn" }, `${list.length === 1 ? "One call" : list.length + " calls"} may or may not have happened: `, list.map((c, i) => [i ? ", " : "", name(c.name)]))] : []);

/** decisions in words; of a call that was started before, see decisionOf. */
const decisions = {
  allow_once: "allowed once", allow_session: "allowed for this session", allow_workspace: "allowed in this workspace", allow_global: "allowed everywhere",
  deny_once: "denied", deny_session: "denied for this session",
};

/** decisionOf is a decision in words; again says that the call had been started
 * and nobody knew its outcome. */
export function decisionOf(decision, again) {
  if (again && decision === "allow_once") return "allowed again, its outcome was unknown";
  if (again && decision === "deny_once") return "not run again, its outcome unknown";
  return decisions[decision] || { resolved: "given its outcome by hand", expired: "not answered in time" }[decision] || words(decision);
}

const table = {
  "session.created": (d) => ({ kind: "session", title: ["session created ", d.title ? b(d.title) : ""], body: [facts([["mode", d.mode], ["model", d.model && modelOf(d.model)], ["workspace", d.workspace], ["parent", d.parent?.session]])] }),
  "session.configured": (d) => ({ kind: "session", tone: "dim", title: ["settings changed ", d.title ? b(d.title) : ""] }),
  "session.mode_changed": (d) => ({ kind: "session", title: ["permission mode is now ", b(d.mode), d.effective_mode !== d.requested_mode ? ` (in effect: ${d.effective_mode})` : ""] }),
  "session.plan_entered": (d) => ({ kind: "session", title: ["plan mode on: nothing may change the world", because(d.reason)] }),
  "session.plan_exited": () => ({ kind: "session", title: "plan mode off" }),
  "session.closed": (d) => ({ kind: "session", title: ["session closed", because(d.reason)], body: unknown(d.unknown) }),
  "message.submitted": (d) => ({ kind: "message", title: "said", body: said(d.content, "person") }),
  "note.appended": (d) => ({ kind: "other", tone: "dim", title: ["note ", b(d.kind)], body: [fold("data", JSON.stringify(d.data))] }),
  "run.requested": (d) => ({
    kind: d.message ? "message" : "run", tone: d.message ? "" : "dim",
    title: d.loop_request ? `${d.cause === "continue" ? "continued the loop" : "asked for a loop"}: ${count(d.loop_request.max_iterations)} iterations, at most ${count(d.loop_request.max_total_rounds)} rounds`
      : d.message ? "said" : `run requested (${words(d.cause)})`,
    body: said(d.message?.content || d.loop_request?.objective, "person"),
  }),
  "run.started": (d) => ({
    kind: "run", tone: "dim",
    title: ["run started by ", b(d.runner), d.roster?.primary?.model ? [" with ", b(modelOf(d.roster.primary))] : "",
      d.loop ? `, loop of ${count(d.loop.max_iterations)} iterations, at most ${count(d.loop.max_total_rounds)} rounds` : "", d.replays ? `, ${plural(d.replays, "decided call")} to run first` : ""],
  }),
  "run.refused": (d) => ({ kind: "run", tone: "bad", title: ["run refused: ", words(d.code), because(d.message)], body: unknown(d.unknown) }),
  "run.cancel_requested": () => ({ kind: "run", tone: "wait", title: "asked to cancel the run" }),
  "run.budget_exhausted": (d) => ({ kind: "run", tone: "wait", title: `the run's budget of ${words(d.kind)} is spent` }),
  "run.interrupted": (d) => ({ kind: "run", tone: "bad", title: "run interrupted: its runner was not heard of any more", body: unknown(d.unknown) }),
  "run.finished": (d) => ({
    kind: "run", tone: { completed: "good", failed: "bad" }[d.outcome] || "",
    title: ["run ", words(d.outcome), d.completion_reason ? ` (${words(d.completion_reason)})` : "", d.error ? because(`${words(d.error.code)}: ${d.error.message}`) : "",
      d.usage?.total ? h("span", { class: "dim" }, ` · ${count(d.usage.total)} tokens`) : "", progress(d.loop)],
    body: unknown(d.unknown),
  }),
  "round.started": (d, ev, around) => ({
    kind: "round", tone: "dim", title: [around.round(ev.run, d.round, d.loop), d.summary ? " (summary)" : ""],
    body: d.repeat ? [fold("objective again", d.repeat.content, "plain")] : [],
  }),
  "round.finished": (d, ev, around) => ({
    kind: "message", title: [d.message?.tool_calls?.length ? "answered with " + (d.message.tool_calls.length === 1 ? "a call" : d.message.tool_calls.length + " calls") : "answered",
      h("span", { class: "dim" }, d.usage?.total ? ` · ${count(d.usage.total)} tokens` : "", d.next?.admitted ? ` · goes on with ${around.round(ev.run, d.next.round, d.loop)}` : "")],
    body: [...said(d.message?.content, "model"), ...(d.message?.tool_calls || []).map((c) => fold(name(c.name), c.arguments))],
  }),
  "round.failed": (d, ev, around) => ({ kind: "round", tone: "bad", title: [`${around.round(ev.run, d.round)} failed: `, words(d.error?.code), because(d.error?.message)] }),
  "loop.stop_requested": () => ({ kind: "loop", tone: "wait", title: "asked the loop to stop" }),
  "loop.stopped": (d) => ({ kind: "loop", title: ["loop stopped", progress(d.loop)] }),
  "loop.budget_exhausted": (d) => ({ kind: "loop", tone: "wait", title: [`loop out of budget (${words(d.kind || "rounds")})`, progress(d.loop)] }),
  "loop.recovery_refused": (d) => ({ kind: "loop", tone: "bad", title: ["loop without a known end: a person has to continue or abandon it", progress(d.loop)] }),
  "loop.abandoned": (d) => ({ kind: "loop", title: ["loop given up", progress(d.loop)] }),
  "tool.authorized": (d) => ({ kind: "decision", tone: "dim", title: [name(d.name), ` allowed by policy (${words(d.step)}) `, h("code", {}, line(d.resource, 120))] }),
  "tool.denied": (d) => ({ kind: "decision", tone: "bad", title: [name(d.name), ` denied by policy (${words(d.step)}) `, h("code", {}, line(d.resource, 120))], body: d.content ? [fold("result", d.content, "plain")] : [] }),
  "tool.started": (d) => ({ kind: "tool", tone: "dim", title: [name(d.name), " started", d.mutating ? " (may change the world)" : ""] }),
  "tool.finished": (d) => result(d),
  "tool.parked": (d) => parked(d, false),
  "tool.resolved": (d) => ({ kind: "decision", tone: d.success ? "good" : "bad", title: [name(d.name), " given its outcome by hand"], body: [fold("outcome", d.content, "plain")] }),
  "approval.decided": (d, ev, around) => ({
    kind: "decision", tone: d.decision?.startsWith("allow") ? "good" : "bad", title: [name(d.name), " ", decisionOf(d.decision, around.unknown.has(d.generation)), d.matcher ? [" for ", h("code", {}, line(`${d.matcher.kind} ${d.matcher.pattern}`, 120))] : ""],
    body: said(d.note, "person"),
  }),
  "question.answered": (d) => ({ kind: "decision", tone: "good", title: ["answered ", d.name ? name(d.name) : "the question"], body: said(d.answer, "person") }),
  "question.expired": (d) => ({ kind: "decision", tone: "bad", title: ["nobody answered ", name(d.name), " in time"] }),
  "replay.started": (d) => ({ kind: "tool", tone: "dim", title: [name(d.name), " started as approved"] }),
  "replay.finished": (d) => result(d, outcome(d.success) + " (as approved)"),
  "replay.blocked": (d) => ({ kind: "tool", tone: "bad", title: [name(d.name), " was approved and may not run any more: ", words(d.reason)] }),
  "replay.reparked": (d) => parked(d, true),
  "policy.mode_changed": (d) => ({ kind: "decision", title: ["installation's permission mode is now ", b(d.mode)] }),
  "policy.rule_added": (d) => ({ kind: "decision", title: ["rule added: ", words(d.effect), " ", d.permission_type, " ", h("code", {}, line(`${d.matcher?.kind} ${d.matcher?.pattern}`, 160))] }),
  "policy.rule_removed": (d) => ({ kind: "decision", title: ["rule removed: ", b(d.rule_id)] }),
};

/** facts is a list of names and values; empty values are left out. */
export function facts(pairs) {
  const list = h("dl", { class: "facts" });
  for (const [k, v] of pairs) {
    if (v === undefined || v === null || v === "" || v === false) continue;
    add(list, h("div", {}, h("dt", {}, k), h("dd", {}, v instanceof Node || Array.isArray(v) ? v : content(v))));
  }
  return list.firstChild ? list : "";
}
