// The live feed: one stream of short notices of what was stored, in all
// sessions. It comes back by itself and says what state it is in.

import { authorize } from "./api.js";

/**
 * Live calls on.event({session, seq, type, time, actor}) for each stored event,
 * on.gap() when events may have been missed, so that what is shown must be read
 * anew, on.gone(session) when one was deleted, on.delta(session, run, delta)
 * for what the watched session's runs stream, and on.state({up, since, retry})
 * when the connection changes.
 */
export class Live {
  constructor(on) {
    this.on = on; this.lastId = ""; this.tries = 0; this.up = false; this.since = Date.now(); this.stopped = false; this.watched = "";
    addEventListener("online", () => this.now());
    document.addEventListener("visibilitychange", () => document.hidden || this.now());
  }

  start() { this.stopped = false; this.loop(); }

  /** now ends a pause between two attempts. */
  now() { if (!this.up && this.wake) this.wake(); }

  /** watch lets the deltas of one session come, too, "" for none. The stream
   * begins anew where it was, so nothing is missed and nothing is said. */
  watch(session) {
    if (!/^[A-Za-z0-9_-]{0,64}$/.test(session) || session === this.watched) return;
    this.watched = session;
    this.renew = true;
    this.abort?.abort();
  }

  async loop() {
    while (!this.stopped) {
      this.renew = false;
      try { await this.once(); } catch { /* said by state */ }
      if (this.renew) continue;
      this.set(false);
      const pause = Math.min(10000, 250 * 2 ** Math.min(this.tries++, 6)) * (0.75 + Math.random() / 2);
      this.on.state({ up: false, since: this.since, retry: Date.now() + pause });
      await new Promise((done) => { this.wake = done; setTimeout(done, pause); });
      this.wake = null;
    }
  }

  set(up) {
    if (up) this.tries = 0;
    if (up === this.up) return;
    this.up = up; this.since = Date.now();
    this.on.state({ up, since: this.since });
  }

  async once() {
    const abort = this.abort = new AbortController();
    let heard = Date.now();
    const watch = setInterval(() => { if (Date.now() - heard > 30000) abort.abort(); }, 5000);
    try {
      const headers = authorize({ Accept: "text/event-stream" });
      if (this.lastId) headers["Last-Event-ID"] = this.lastId;
      const r = await fetch("/api/v1/events?brief=1" + (this.watched ? "&deltas=" + this.watched : ""), { headers, signal: abort.signal, cache: "no-store", credentials: "omit" });
      if (!r.ok) throw new Error("status " + r.status);
      const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new Parser((m) => this.message(m));
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        heard = Date.now();
        parser.push(value);
      }
    } finally {
      clearInterval(watch);
      abort.abort();
    }
  }

  message(m) {
    if (m.id !== undefined) this.lastId = m.id;
    if (m.event === "hello") {
      const first = !this.met;
      this.met = true;
      this.set(true);
      if (first) this.on.gap();
    } else if (m.event === "gap") this.on.gap();
    else if (m.event === "gone") this.on.gone(JSON.parse(m.data).session);
    else if (m.event === "delta") { const d = JSON.parse(m.data); this.on.delta(d.session, d.run, d.delta); }
    else if (m.event === "event" && m.data) this.on.event(JSON.parse(m.data));
  }
}

/** Parser takes server-sent events apart, however they are cut into pieces. */
export class Parser {
  constructor(take) { this.take = take; this.rest = ""; this.reset(); }

  reset() { this.id = undefined; this.event = ""; this.data = []; }

  push(text) {
    this.rest += text;
    const lines = this.rest.split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop();
    for (const l of lines) this.line(l);
  }

  line(l) {
    if (l === "") {
      if (this.data.length || this.id !== undefined) this.take({ id: this.id, event: this.data.length ? this.event || "event" : "", data: this.data.join("\n") });
      this.reset();
      return;
    }
    const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(l);
    if (field === "id") this.id = value;
    else if (field === "event") this.event = value;
    else if (field === "data") this.data.push(value);
  }
}
