// How sessions and loops are told: a word, a colour, a bar.

import { h, line, content } from "./dom.js";
import { count, words, when, age, full } from "./format.js";

const names = {
  running: ["running", "live"], requested: ["starting", "live"], waiting: ["waits for you", "wait"], stuck: ["stuck", "bad"],
  blocked: ["blocked", "bad"], failed: ["failed", "bad"], idle: ["idle", "calm"], closed: ["closed", "calm"],
};

/** pill is a status in one word; its colour says the same as its text. */
export function pill(status) {
  const [text, tone] = names[status] || [words(status), "calm"];
  return h("span", { class: "pill t-" + tone }, h("i", { class: "dot", "aria-hidden": "true" }), text);
}

export const tone = (status) => (names[status] || ["", "calm"])[1];

/** progressOf tells a loop: "iteration 2 of 5, round 7 of 20". */
export function progressOf(loop) {
  if (!loop) return "";
  return `iteration ${count(Math.max(loop.iterations_started, 1))} of ${count(loop.max_iterations)}, round ${count(loop.rounds_started)} of ${count(loop.max_total_rounds)}`;
}

/** loops says that the session is in its loop, not in a run after it. */
export const loops = (s) => s.loop && ["running", "finalizing", "paused"].includes(s.loop.status);

/** bar draws how far a loop is: whole iterations, and rounds below. */
export function bar(loop) {
  if (!loop || !loop.max_iterations) return "";
  const part = (n, of) => Math.round(1000 * Math.min(1, n / Math.max(1, of))) / 10 + "%";
  return h("div", { class: "bars l-" + loop.status, role: "img", "aria-label": progressOf(loop) },
    h("div", { class: "bar" }, h("i", { vars: { "--part": part(loop.iterations_completed, loop.max_iterations) } })),
    h("div", { class: "bar thin" }, h("i", { vars: { "--part": part(loop.rounds_started, loop.max_total_rounds) } })));
}

/** ago is a time as its age, kept up to date by tickAges. */
export function ago(t, cls = "dim") {
  const d = when(t);
  return d ? h("time", { class: "ago " + cls, datetime: d.toISOString(), title: full(d) }, age(d)) : "";
}

/** tickAges writes all ages anew. */
export function tickAges() {
  const now = Date.now();
  for (const el of document.querySelectorAll("time.ago")) {
    const text = age(new Date(el.dateTime), now);
    if (el.textContent !== text) el.textContent = text;
  }
}

/** titleOf is what a session is called. */
export const titleOf = (s, limit = 90) => (s.title ? line(s.title, limit) : h("span", { class: "mono" }, content(s.session)));

const reasons = { lease_expired: "nothing was heard of its runner" };

const ends = {
  parked: "the loop ended because a call had to wait for a person",
  owner_lost: "nothing was heard of the loop's runner",
};

/** endOf says how a loop ended that blocks its session; one that still looks
 * live has lost its runner. */
function endOf(loop) {
  return ends[loop?.reason || "owner_lost"] || `the loop ended without a known outcome (${words(loop.reason)})`;
}

/** why says in a line what somebody should know about a session. */
export function why(s) {
  if (s.stuck) return [h("span", { class: "bad" }, `stuck at event ${count(s.stuck.sequence)}: `), line(s.stuck.reason, 200)];
  if (s.status === "blocked") return h("span", { class: "bad" }, endOf(s.loop) + ": continue or abandon it");
  if (s.status === "failed") return [h("span", { class: "bad" }, "last run " + words(s.last_outcome || "failed")), s.last_error ? [": ", reasons[s.last_error] || line(s.last_error, 200)] : ""];
  if (s.run?.cancel_requested) return "cancel requested";
  return "";
}
