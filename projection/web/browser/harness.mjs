// An engine of its own, a browser, and a runner played by hand over the HTTP
// API, for the tests of the page.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const health = /msg=health url=http:\/\/127\.0\.0\.1:(\d+)\//, ready = /^ready$/m; // what programs say

const require = createRequire(join(process.env.CULM_PLAYWRIGHT || process.cwd(), "x.js"));
const { chromium } = require("playwright-core");

export const shots = process.env.CULM_SHOTS || "";

/** patience is how long anything may take on a slow machine, in ms: what takes
 * longer does not come at all. */
export const patience = 60000;

/** Engine is a process that can be killed and started again on its data, with
 * the ports that it found free at its first start. */
export class Engine {
  static async start(...args) {
    const e = new Engine();
    e.dir = mkdtempSync(join(tmpdir(), "culm-page-"));
    e.ports = [0, 0];
    e.args = ["--lease", "10m", ...args]; // no run is lost but where that is tested
    await e.up();
    return e;
  }

  get url() { return `http://127.0.0.1:${this.ports[1]}/`; }
  get page() { return this.url + "#token=" + this.token; }

  async up() {
    const said = await this.run(process.env.CULM_ENGINE, ["--listen", "127.0.0.1:" + this.ports[0], "--data", this.dir, "--http", "127.0.0.1:" + this.ports[1], "--http-actor", "ada", "--sync", "none", ...this.args],
      { nats: /^nats: nats:\/\/127\.0\.0\.1:(\d+)$/m, http: health, ready });
    this.ports = [+said.nats, +said.http];
    if (!this.args.includes("--no-projector")) this.token = readFileSync(join(this.dir, "page-token"), "utf8").trim();
  }

  /** run starts a program and returns what it said of each of want, once it has
   * said it all. A port that it had before may be in use for a moment. */
  async run(program, args, want) {
    for (const end = Date.now() + patience; ;) {
      try { return await this.spawned(program, args, want); } catch (e) {
        await this.kill();
        if (!/address already in use/.test(this.said) || Date.now() > end) throw e;
        await sleep(200);
      }
    }
  }

  spawned(program, args, want) {
    const env = Object.fromEntries(Object.entries(process.env).filter(([k]) => !k.startsWith("CULM_")));
    this.proc = spawn(program, args, { env });
    this.ended = new Promise((done) => { this.proc.on("exit", done); this.proc.on("error", done); });
    this.said = "";
    return new Promise((done, fail) => {
      const late = setTimeout(() => fail(new Error(`${program} is not ready after ${patience} ms: ${this.said}`)), patience);
      const look = (d) => {
        this.said += d;
        const found = Object.entries(want).map(([name, pattern]) => [name, pattern.exec(this.said)]);
        if (found.every(([, m]) => m)) { clearTimeout(late); done(Object.fromEntries(found.map(([name, m]) => [name, m[1]]))); }
      };
      this.proc.stdout.on("data", look);
      this.proc.stderr.on("data", look);
      this.ended.then((code) => { clearTimeout(late); fail(new Error(`${program} ended with ${code}: ${this.said}`)); });
    });
  }

  async kill(signal = "SIGKILL") {
    this.proc.kill(signal);
    await this.ended;
  }

  async end() { await this.kill(); rmSync(this.dir, { recursive: true, force: true }); }

  /** do gives a command and returns its reply. What is unavailable is given again
   * under its id, as clients do, unless a refusal is as good as an answer. */
  async do(session, name, data = {}, want = true) {
    const id = randomUUID();
    for (const end = Date.now() + patience; ;) {
      const r = await fetch(`${this.url}api/v1/commands/${session}/${name}`, {
        method: "POST", headers: { "Content-Type": "application/json", "Culm-Command-Id": id, Authorization: "Bearer " + this.token },
        body: JSON.stringify(data), signal: AbortSignal.timeout(patience),
      });
      const body = await r.json();
      if (body.ok || !want) return body;
      if (body.error?.code !== "unavailable" || Date.now() > end) throw new Error(`${session} ${name}: ${JSON.stringify(body.error)}`);
      await sleep(200);
    }
  }

  /** requested is the run that waits for a runner, once there is one other than the given. */
  async requested(session, other) {
    return (await this.until(`sessions/${session}/state`, (s) => s.state.run?.status === "requested" && s.state.run.run_id !== other)).state.run;
  }

  /** projector starts a projector on the engine's server, with a page of its own. */
  async projector() {
    const p = new Projector(this.ports[0]);
    await p.up();
    return p;
  }

  async get(path) { return (await fetch(this.url + "api/v1/" + path, { signal: AbortSignal.timeout(patience) })).json(); }

  /** until asks until there is an answer that satisfies. */
  async until(path, good, ms = patience) {
    for (const end = Date.now() + ms; ;) {
      const r = await this.get(path);
      if (r.ok && good(r)) return r;
      if (Date.now() > end) throw new Error(`${path}: still ${JSON.stringify(r).slice(0, 600)}`);
      await sleep(50);
    }
  }
}

/** Projector serves the page by itself; commands and waiting are as with its engine. */
export class Projector extends Engine {
  constructor(nats) {
    super();
    this.dir = mkdtempSync(join(tmpdir(), "culm-views-"));
    this.ports = [nats, 0];
  }

  /** up returns once the views are up to date, or at once if they are not waited for. */
  async up(want = { ready }) {
    const db = join(this.dir, "views.db");
    const said = await this.run(process.env.CULM_PROJECTOR, ["--nats", "nats://127.0.0.1:" + this.ports[0], "--db", db, "--http", "127.0.0.1:" + this.ports[1], "--http-actor", "ada"], { http: health, ...want });
    this.ports[1] = +said.http;
    this.token = readFileSync(db + ".page-token", "utf8").trim();
  }
}

/** publish sends a message to a NATS server, and returns when it was taken:
 * what a page's runner and a broken program would send. */
export function publish(port, subject, body) {
  return new Promise((done, fail) => {
    const s = connect(port, "127.0.0.1", () => {
      const bytes = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
      s.write("CONNECT {\"verbose\":false}\r\nPUB " + subject + " " + bytes.length + "\r\n");
      s.write(bytes);
      s.write("\r\nPING\r\n");
    });
    s.setTimeout(patience, () => s.destroy(new Error(`${subject}: the server says nothing`)));
    let got = "";
    s.on("data", (d) => {
      got += d;
      if (got.includes("-ERR")) fail(new Error(got));
      if (got.includes("PONG")) { s.end(); done(); }
    });
    s.on("error", fail);
  });
}

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** Runner is a run played by hand: the session names a provider that nobody
 * else holds. A claimed run keeps its lease until it is over or lost. */
export class Runner {
  static async create(e, session, data = {}) {
    await e.do(session, "session.create", { model: { provider: "by-hand", model: "by-hand-1" }, ...data });
    return new Runner(e, session);
  }

  constructor(e, session) { this.e = e; this.s = session; }

  async request(data) {
    const r = await this.e.do(this.s, "run.request", data);
    return this.claim(r.result.run_id);
  }

  async claim(run_id) {
    const r = await this.e.do(this.s, "run.claim", { run_id, runner: "by-hand", providers: ["by-hand"] });
    const run = this.run = { run_id, fence: r.result.fence };
    this.lose();
    this.beats = setInterval(async () => {
      const r = await this.e.do(this.s, "run.renew", { ...run }, false).catch(() => null); // the engine may be away
      if (r?.error?.code === "stale_run" && run === this.run) this.lose();
    }, 500).unref();
  }

  /** lose lets nothing more be heard of the run. */
  lose() { clearInterval(this.beats); }

  do(name, data = {}) { return this.e.do(this.s, name, { ...this.run, ...data }); }

  async round() { this.pieces = 0; this.n = (await this.do("round.start")).result.round; }

  answer(content, tool_calls = [], usage = { prompt: 900 + 40 * this.n, completion: 120 + 13 * (this.n % 7), total: 1020 + 40 * this.n + 13 * (this.n % 7) }) {
    return this.do("round.finish", { round: this.n, message: { content, tool_calls }, usage, finish_reason: tool_calls.length ? "tool_calls" : "stop" });
  }

  async tool(id, content, success = true) {
    await this.do("tool.start", { tool_call_id: id });
    await this.do("tool.finish", { tool_call_id: id, success, content, elapsed_ms: 42, ...(success ? {} : { error: "exit status 1" }) });
  }

  /** stream publishes a piece of what the run says; nobody stores it. */
  stream(text, more = {}) {
    return publish(this.e.ports[0], `agent.delta.${this.s}.${this.run.run_id}`, { round: this.n, index: this.pieces++, kind: "text", text, ...more });
  }

  async finish(outcome = "ok") {
    await this.do("run.finish", { outcome });
    this.lose();
  }
}

export async function browser() {
  return chromium.launch({
    timeout: patience,
    executablePath: process.env.CULM_CHROMIUM || "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"],
  });
}

/** open opens the page, returns once it knows who is there and hears the engine,
 * and collects what must not happen in it; prepare(page) comes first. */
export async function open(b, url, { prepare, ...options } = {}) {
  const context = await b.newContext({ viewport: { width: 1360, height: 850 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  page.bad = [];
  await prepare?.(page);
  page.on("pageerror", (e) => page.bad.push("error: " + e.message));
  page.on("console", (m) => { if (m.type() === "error" && !/Failed to load resource|net::ERR/.test(m.text())) page.bad.push(m.text()); });
  page.on("dialog", (d) => { page.bad.push("dialog: " + d.message()); d.dismiss(); });
  page.on("request", (r) => { if (!r.url().startsWith(new URL(url).origin) && !r.url().startsWith("blob:")) page.bad.push("request: " + r.url()); });
  await page.goto(url);
  await page.locator(".me", { hasText: /./ }).waitFor({ state: "attached" }); // or the view is made anew when it knows
  await page.locator(".lamp.up, .lamp.behind").waitFor();
  return page;
}

/** at opens the page of an engine at a place, where it is a session with what its runs stream. */
export async function at(b, e, hash, options) {
  const page = await open(b, e.page, options);
  const streams = hash.startsWith("#/s/") && page.waitForResponse((r) => r.url().includes("/api/v1/events?brief=1&deltas="));
  await page.goto(e.url + hash);
  await streams;
  return page;
}

/** rests returns once a session's timeline is read and at its end. */
export function rests(page) {
  return page.waitForFunction(() => {
    const s = document.querySelector(".scroller");
    return s && s.scrollHeight - s.scrollTop - s.clientHeight < 2 && s.querySelector(".stretch:last-of-type .ev");
  });
}

/** fits fails if the page is wider than its window. */
export async function fits(page) {
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is wider than its window");
}

/** quiet fails if what must not happen has happened. */
export const quiet = (page) => assert.deepEqual(page.bad, [], "errors, dialogs or requests to elsewhere");

/** shot keeps a picture where somebody wants to look at it. */
export async function shot(page, name) {
  if (shots) await page.screenshot({ path: join(shots, name + ".png") });
}
