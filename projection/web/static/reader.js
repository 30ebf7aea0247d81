// Reading what may be behind, the views of the log above all: what was asked for
// is asked for again, at a bounded pace, until it is there.

import { after } from "./dom.js";
import * as api from "./api.js";

const most = 100; // sessions that one request may wait for
const waitMs = 1500; // that the views may take to get there, each time
const least = 250, longest = 4000; // ms between two times

const lack = {
  not_yet: "The views are behind",
  unavailable: "It cannot be read now, or is being computed anew",
};

/** old says what is lacking of what is shown, nothing for "". */
export const old = (lacking, shown = "what is shown") => lacking && `${lacking}: ${shown} may be old.`;

/**
 * Reader shows what the views hold once they hold the events that were named.
 * read(wait, signal, sessions) asks and shows the answer: wait is the part of a
 * request that waits for the events, null to show what there is meanwhile, and
 * sessions are those whose events were named. While the views are behind, or
 * cannot be read, it is called again and again. Other errors end the attempt;
 * what was named then stays so for the next one.
 */
export class Reader {
  /** What is asked for within settle ms is read together. lacks(text) is told
   * what the views lack, "" once they lack nothing, failed(e) other errors. */
  constructor(read, { settle = 0, lacks = () => {}, failed = () => {} } = {}) {
    this.read = read; this.lacks = lacks; this.failed = failed;
    this.named = new Map(); this.running = this.again = false;
    this.abort = new AbortController(); this.signal = this.abort.signal;
    this.soon = after(settle, () => this.now());
  }

  close() { this.abort.abort(); this.lacks(""); }

  /** want names an event that must be in what is read next. */
  want(session, seq) { this.named.set(session, Math.max(seq, this.named.get(session) || 0)); }

  /** ask reads soon, with that event. */
  ask(session, seq) { this.want(session, seq); this.soon(); }

  /** forget waits no more for a session that is gone. */
  forget(session) { this.named.delete(session); }

  /** now reads, and later once more if something was asked for meanwhile. */
  async now() {
    if (this.running) { this.again = true; return; }
    this.running = true;
    try {
      await this.once();
      this.again ||= this.named.size > 0 && this.full;
    } catch (e) {
      if (!this.signal.aborted) this.failed(e);
    } finally {
      this.running = false;
      if (this.again && !this.signal.aborted) { this.again = false; this.soon(); }
    }
  }

  /** once reads until the views are there. */
  async once() {
    for (let pause = least; ; pause = Math.min(2 * pause, longest)) {
      this.signal.throwIfAborted();
      this.full = this.named.size > most;
      const named = [...this.named].slice(0, most), sessions = named.map(([session]) => session);
      try {
        await this.read(named.length ? { min_sequence: Object.fromEntries(named), wait_ms: waitMs } : {}, this.signal, sessions);
        for (const [session, seq] of named) if (this.named.get(session) === seq) this.named.delete(session);
        if (!this.signal.aborted) this.lacks("");
        return;
      } catch (e) {
        if (this.signal.aborted || !lack[e.code]) throw e;
        if (e.code === "not_yet") await this.read(null, this.signal, sessions).catch(() => {}); // it is asked again
        if (await this.pointless(e.details.session)) continue;
        this.signal.throwIfAborted();
        this.lacks(lack[e.code]);
      }
      await sleep(pause, this.signal);
    }
  }

  /** pointless forgets a session that the views will not bring to its event: it
   * is stuck before it, or its log does not have that event any more. */
  async pointless(session) {
    const seq = this.named.get(session);
    if (!seq) return false;
    const [view, log] = await Promise.all([
      api.query("sessions.get", { session }, this.signal).catch(() => null),
      api.session(session, `events?after=${seq - 1}&limit=1`, this.signal).catch((e) => (e.code === "session_not_found" ? { sequence: 0 } : null)),
    ]);
    const never = !!view?.items[0]?.stuck || (!!log && log.sequence < seq);
    if (never && this.named.get(session) === seq) this.named.delete(session);
    return never;
  }
}

/** sleep ends early, with the signal's reason, when that is aborted. */
function sleep(ms, signal) {
  return new Promise((done, fail) => {
    signal.throwIfAborted();
    const stop = () => { clearTimeout(timer); fail(signal.reason); };
    const timer = setTimeout(() => { signal.removeEventListener("abort", stop); done(); }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}
