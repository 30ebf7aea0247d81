// What is told of an event and stands in others: how many rounds its loop may
// have, and whether a call that was decided had been started before.

import { count } from "./format.js";

const of = (noun, n, bound) => `${noun} ${count(n)}${bound ? ` of ${count(bound)}` : ""}`;

/** Around remembers what the events that were seen tell about others. */
export class Around {
  constructor() { this.bounds = new Map(); this.rounds = new Map(); this.unknown = new Set(); }

  /** loop takes bounds from a state, or from the start of a loop. */
  loop(l) { if (l?.generation) this.bounds.set(l.generation, { iterations: l.max_iterations, rounds: l.max_total_rounds }); }

  event(ev) {
    const d = ev.data;
    for (const c of d?.unknown || []) this.unknown.add(c.generation);
    if (!d?.loop) return;
    if (ev.type === "run.started") this.loop(d.loop);
    const a = ev.type === "round.started" ? d : d.next?.admitted ? d.next : null;
    if (a) this.rounds.set(`${ev.run}/${a.round}`, d.loop);
  }

  /** round names one: numbers are from 1, over the whole loop where there is one,
   * as on the command line: "round 3 of 30 (iteration 1 of 3)", without a loop
   * "round 3". What is not known of a loop is left out. */
  round(run, round, loop = this.rounds.get(`${run}/${round}`)) {
    if (!loop) return `round ${count(round + 1)}`;
    const b = this.bounds.get(loop.generation) || {};
    return `${of("round", loop.rounds_started, b.rounds)} (${of("iteration", loop.iterations_started, b.iterations)})`;
  }
}
