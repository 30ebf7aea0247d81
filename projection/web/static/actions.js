// What a person may ask of a session as it stands.

import { progressOf } from "./status.js";
import { plural } from "./format.js";

/** resumed are the ends of a run after which there may be something to resume. */
const resumed = new Set(["interrupted", "failed", "refused"]);

/** standing is how a session's loop and run stand to each other: live is a loop
 * that goes on, blocked one that keeps the session until a person decides. */
function standing({ run, loop }) {
  const ours = !!run && run.run_id === loop?.owner_execution_id;
  const running = !!loop && (loop.status === "running" || loop.status === "finalizing");
  return {
    live: !!loop && (running ? ours : loop.status === "paused"),
    blocked: !!loop && !loop.abandoned && (loop.status === "recovery_unsupported" || (running && !ours)),
  };
}

/**
 * actionsOf is what may be asked of a session: asks says that it takes a new
 * run, and buttons are {text, tone, title, body, yes, name, data}: title, body
 * and yes (text, if it is not there) of the confirmation, and the command that
 * follows it. st is the session's state, last the outcome
 * of its last run.
 */
export function actionsOf(st, last) {
  const { run, loop, pending, replays } = st, { live, blocked } = standing(st), buttons = [];
  const add = (text, tone, title, body, name, data) => buttons.push({ text, tone, title, body, name, data });
  if (st.session.closed) return { asks: false, buttons };
  const resumable = !run && !pending.length && (replays.length > 0 || (!blocked && (loop?.status === "paused" || resumed.has(last))));
  if (live && !loop.stop_requested) add("Stop loop", "", "Stop the loop?", ["Calls of the present round may still end; no further round begins."], "loop.stop", { generation: loop.generation });
  if (run && !run.cancel_requested) add("Cancel run", "danger", "Cancel the run?", ["Nothing starts any more. What waits for a person ends without having run."], "run.cancel", { run_id: run.run_id });
  if (resumable) add("Resume", "primary", "Resume the run?", resumeOf(replays.length), "run.resume", {});
  if (blocked && !run && !pending.length) add("Continue loop", resumable ? "" : "primary", "Continue the loop?", continueOf(loop), "loop.continue", { generation: loop.generation, acknowledge_unknown: true });
  if (blocked && !run) add("Abandon loop", "danger", "Abandon the loop?", ["It stays as it ended, and the session takes new runs again."], "loop.abandon", { generation: loop.generation, acknowledge_unknown: true });
  if (!run) buttons.push({ text: "Close", tone: "", title: "Close the session?", body: ["It takes no commands afterwards. Its log stays."], yes: "Close session", name: "session.close", data: {} });
  return { asks: !run && !blocked, buttons };
}

function resumeOf(n) {
  return [n ? `${plural(n, "decided call")} ${n === 1 ? "runs" : "run"} first; then it goes on where it broke off.` : "A new run goes on where the last one broke off.",
    "Calls whose outcome is unknown are not repeated: they wait for your decision."];
}

function continueOf(loop) {
  return [`It ended in ${progressOf(loop)}. The remaining iterations go on in a new loop. ${loop.reason === "parked" ? "" : "What was under way when it ended may have happened, and is not repeated by itself."}`];
}
