// What was used: by day, by model, by session.

import { h, show, line, content } from "./dom.js";
import * as api from "./api.js";
import { bars, table } from "./chart.js";
import { count, short, elapsed, plural, modelOf } from "./format.js";

async function all(name, q, signal, most = 4) {
  const items = [];
  let cursor = "";
  for (let i = 0; i < most; i++) {
    const r = await api.query(name, { ...q, limit: 500, ...(cursor && { cursor }) }, signal);
    items.push(...r.items);
    cursor = r.next;
    if (!cursor) break;
  }
  return items;
}

const parts = (u) => [u.prompt, u.completion];
const tokens = (u) => [u.prompt, u.completion, u.total];

/** usagePage shows the installation's usage; wait and signal are a Reader's. */
export async function usagePage(el, wait, signal) {
  const by = (what, most) => all("usage.get", { by: what, ...wait }, signal, most);
  const [byDay, byModel, bySession] = await Promise.all([by("day"), by("model"), by("session", 20)]);
  if (!bySession.length) {
    show(el, h("h1", {}, "Usage"), h("div", { class: "empty" }, h("p", {}, "No answer of a model yet."), h("p", { class: "dim" }, "Tokens and rounds are counted here as soon as a run has its first answer.")));
    return;
  }
  const days = byDay.slice(-60), total = bySession.reduce((a, i) => a + i.usage.total, 0), rounds = bySession.reduce((a, i) => a + i.rounds, 0);
  bySession.sort((a, b) => b.usage.total - a.usage.total);
  show(el, h("h1", {}, "Usage"),
    h("p", { class: "lead" }, h("b", {}, short(total)), " tokens in ", h("b", {}, count(rounds)), rounds === 1 ? " round of " : " rounds of ", plural(bySession.length, "session"), "."),
    h("section", {}, h("h2", {}, "By day"),
      bars(days.map((i) => ({ label: i.day.slice(5), parts: parts(i.usage), tip: `${i.day}: ${count(i.usage.total)} tokens, ${plural(i.rounds, "round")}` })), ["prompt", "completion"], { label: "Tokens by day" })),
    h("section", {}, h("h2", {}, "By model"), h("div", { class: "scroll" }, table(["model", "rounds", "prompt", "completion", "tokens"],
      byModel.map((i) => [i.model ? line(modelOf(i), 60) : "not named", i.rounds, ...tokens(i.usage)])))),
    h("section", {}, h("h2", {}, bySession.length > 50 ? "The 50 largest sessions" : "By session"), h("div", { class: "scroll" }, table(["session", "rounds", "prompt", "completion", "tokens"],
      bySession.slice(0, 50).map((i) => [h("a", { href: "#/s/" + encodeURIComponent(i.session) }, content(i.session)), i.rounds, ...tokens(i.usage)])))));
}

/** numbered counts rounds from 1, in a loop over the whole loop. */
function numbered(rounds) {
  const of = new Map(), out = new Map();
  for (const r of rounds) {
    const loop = r.loop_generation, n = loop ? (of.get(loop) || 0) + 1 : r.round + 1;
    of.set(loop, n);
    out.set(r, n);
  }
  return out;
}

/** sessionUsage plots the rounds of one session. */
export async function sessionUsage(el, session, signal) {
  const rounds = await all("rounds.list", { session }, signal);
  if (!rounds.length) {
    show(el, h("div", { class: "empty" }, h("p", {}, "No rounds yet.")));
    return;
  }
  const shown = rounds.slice(-120), cut = rounds.length - shown.length;
  const number = numbered(rounds), label = (r) => String(number.get(r)), name = (r) => `round ${number.get(r)}${r.iteration ? ` (iteration ${r.iteration})` : ""}`;
  const tone = (r) => ({ failed: "bad", lost: "bad" }[r.status] || "");
  const sum = (f) => rounds.reduce((a, r) => a + f(r), 0);
  show(el, h("div", { class: "usage" },
    h("p", { class: "lead" }, h("b", {}, count(rounds.length)), " rounds, ", h("b", {}, short(sum((r) => r.usage.total))), " tokens, ", h("b", {}, count(sum((r) => r.tool_calls))), " tool calls.", cut ? h("span", { class: "dim" }, ` The last ${shown.length} are plotted.`) : ""),
    h("h2", {}, "Tokens by round"), bars(shown.map((r) => ({ label: label(r), parts: parts(r.usage), tone: tone(r), tip: `${name(r)}: ${count(r.usage.prompt)} + ${count(r.usage.completion)} tokens` })), ["prompt", "completion"], { label: "Tokens by round" }),
    h("h2", {}, "Seconds by round"), bars(shown.map((r) => ({ label: label(r), parts: [r.elapsed_ms / 1000], tone: tone(r), tip: `${name(r)}: ${elapsed(r.elapsed_ms)}, ${r.status}` })), ["seconds"], { label: "Seconds by round" }),
    h("h2", {}, "Tool calls by round"), bars(shown.map((r) => ({ label: label(r), parts: [r.tool_calls], tip: `${name(r)}: ${plural(r.tool_calls, "call")}` })), ["tool calls"], { height: 100, label: "Tool calls by round" })));
}
