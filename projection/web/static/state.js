// The state of a session as it is, or as it was at a sequence.

import { h, show, add, line, block, content } from "./dom.js";
import { facts, fold } from "./words.js";
import { bar, progressOf, pill } from "./status.js";
import { count, words, modelOf, when, full } from "./format.js";

/** stateView shows the answer of a state read. */
export function stateView(reply) {
  const st = reply.state, s = st.session;
  return h("div", { class: "state" },
    section("Session", facts([
      ["title", s.title], ["model", s.model && modelOf(s.model)], ["effort", s.reasoning_effort], ["workspace", s.workspace], ["kind", s.kind === "root" ? "" : s.kind],
      ["parent", s.parent?.session], ["mode", s.mode === s.effective_mode ? s.mode : `${s.mode}, in effect ${s.effective_mode}`], ["plan mode", s.plan && "on since " + full(when(s.plan.entered_at))],
      ["read only", s.read_only && "yes"], ["policy enforced", s.enforce_policy && "yes"], ["nobody approves", s.no_human_approver && "yes"], ["closed", s.closed && "yes"],
      ["created", full(when(s.created_at))], ...Object.entries(s.metadata || {}).map(([k, v]) => [k, v]),
    ])),
    section("Run", st.run ? facts([["status", words(st.run.status)], ["cause", words(st.run.cause)], ["runner", st.run.runner], ["round", st.run.round !== undefined && st.run.run_id !== st.loop?.owner_execution_id ? String(st.run.round + 1) : ""], ["cancel", st.run.cancel_requested && "requested"], ["fence", st.run.fence]]) : none("none")),
    st.loop && section("Loop", bar(st.loop), h("p", {}, progressOf(st.loop)), facts([["status", words(st.loop.status)], ["reason", st.loop.reason === "parked" ? "a call had to wait for a person" : words(st.loop.reason)], ["stop", st.loop.stop_requested && "requested"], ["when it parks", st.loop.on_park], ["abandoned", st.loop.abandoned && "yes"]]), fold("objective", st.loop.objective, "plain")),
    st.pending.length > 0 && section(`Waiting (${st.pending.length})`, st.pending.map((p) => h("p", {}, h("span", { class: "tool" }, line(p.name, 60)), " ", words(p.kind), p.question?.question ? [": ", line(p.question.question, 140)] : ""))),
    st.replays.length > 0 && section("Decided, to be run", st.replays.map((r) => h("p", {}, h("span", { class: "tool" }, line(r.name, 60)), ` ${words(r.decision)}`, r.started ? ", started" : ""))),
    st.grants.length > 0 && section("Remembered for this session", st.grants.map((g) => h("p", {}, words(g.effect), " ", h("span", { class: "tool" }, line(g.tool, 40)), " ", h("code", {}, line(`${words(g.matcher.kind)}: ${g.matcher.pattern}`, 140))))),
    st.policy && section("Policy", facts([["mode", st.policy.mode], ["revision", st.policy.revision]]), st.policy.rules.map((r) => h("p", {}, words(r.effect), " ", r.permission_type, " ", h("code", {}, line(`${words(r.matcher.kind)}: ${r.matcher.pattern}`, 140)), r.workspace ? [" in ", line(r.workspace, 60)] : ""))),
    section("Tokens", facts([["prompt", count(st.usage.prompt)], ["completion", count(st.usage.completion)], ["total", count(st.usage.total)]])),
    section("Log", facts([["sequence", count(reply.sequence)], ["head", reply.head_hash && h("code", { class: "hash" }, reply.head_hash)], ["birth", reply.birth]])));
}

const none = (text) => h("p", { class: "dim" }, text);

function section(title, ...rest) {
  return h("section", {}, h("h3", {}, title), rest);
}
