// An engine of its own, a browser, and a runner played by hand over the HTTP
// API, for the tests of the page.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const require = createRequire(join(process.env.CULM_PLAYWRIGHT || process.cwd(), "x.js"));
const { chromium } = require("playwright-core");

export const shots = process.env.CULM_SHOTS || "";

function freePort() {
  return new Promise((done) => {
    const s = createServer().listen(0, "127.0.0.1", () => { const { port } = s.address(); s.close(() => done(port)); });
  });
}

/** Engine is a process that can be killed and started again on its data. */
export class Engine {
  static async start(...args) {
    const e = new Engine();
    e.dir = mkdtempSync(join(tmpdir(), "culm-page-"));
    e.ports = [await freePort(), await freePort()];
    e.args = args;
    await e.up();
    return e;
  }

  get url() { return `http://127.0.0.1:${this.ports[1]}/`; }
  get page() { return this.url + "#token=" + this.token; }

  async up() {
    await this.run(process.env.CULM_ENGINE, ["--listen", "127.0.0.1:" + this.ports[0], "--data", this.dir, "--http", "127.0.0.1:" + this.ports[1], "--http-actor", "ada", "--sync", "none", ...this.args]);
    if (!this.args.includes("--no-projector")) this.token = readFileSync(join(this.dir, "page-token"), "utf8").trim();
  }

  /** run starts a program and returns once it is ready. */
  async run(program, args) {
    const env = Object.fromEntries(Object.entries(process.env).filter(([k]) => !k.startsWith("CULM_")));
    this.proc = spawn(program, args, { env });
    this.errors = "";
    this.proc.stderr.on("data", (d) => { this.errors += d; });
    await new Promise((done, fail) => {
      this.proc.on("exit", (code) => fail(new Error(`${program} ended with ${code}: ${this.errors}`)));
      this.proc.stdout.on("data", (d) => { if (String(d).includes("ready")) done(); });
    });
  }

  kill(signal = "SIGKILL") {
    return new Promise((done) => { this.proc.removeAllListeners("exit"); this.proc.on("exit", done); this.proc.kill(signal); });
  }

  async end() { await this.kill(); rmSync(this.dir, { recursive: true, force: true }); }

  /** do gives a command and returns its reply. */
  async do(session, name, data = {}, want = true) {
    const r = await fetch(`${this.url}api/v1/commands/${session}/${name}`, {
      method: "POST", headers: { "Content-Type": "application/json", Authorization: "Bearer " + this.token }, body: typeof data === "string" ? data : JSON.stringify(data),
    });
    const body = await r.json();
    if (want && !body.ok) throw new Error(`${session} ${name}: ${JSON.stringify(body.error)}`);
    return body;
  }

  /** requested is the run that waits for a runner, once there is one other than the given. */
  async requested(session, other) {
    return (await this.until(`sessions/${session}/state`, (s) => s.state.run?.status === "requested" && s.state.run.run_id !== other)).state.run;
  }

  /** projector starts a projector on the engine's server, with a page of its own. */
  async projector() {
    const p = new Projector(this, await freePort());
    await p.up();
    return p;
  }

  async get(path) { return (await fetch(this.url + "api/v1/" + path)).json(); }

  /** until asks until the answer satisfies. */
  async until(path, good, ms = 15000) {
    for (const end = Date.now() + ms; ;) {
      const r = await this.get(path);
      if (good(r)) return r;
      if (Date.now() > end) throw new Error(`${path}: still ${JSON.stringify(r).slice(0, 600)}`);
      await sleep(50);
    }
  }
}

/** Projector serves the page by itself; commands and waiting are as with its engine. */
export class Projector extends Engine {
  constructor(engine, port) {
    super();
    this.dir = mkdtempSync(join(tmpdir(), "culm-views-"));
    this.ports = [engine.ports[0], port];
  }

  async up() {
    const db = join(this.dir, "views.db");
    await this.run(process.env.CULM_PROJECTOR, ["--nats", "nats://127.0.0.1:" + this.ports[0], "--db", db, "--http", "127.0.0.1:" + this.ports[1], "--http-actor", "ada"]);
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
 * else holds. */
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
    this.run = { run_id, fence: r.result.fence };
  }

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

  finish(outcome = "ok") { return this.do("run.finish", { outcome }); }
}

export async function browser() {
  return chromium.launch({
    executablePath: process.env.CULM_CHROMIUM || "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"],
  });
}

/** open opens the page and collects what must not happen in it. */
export async function open(b, url, options = {}) {
  const context = await b.newContext({ viewport: { width: 1360, height: 850 }, ...options });
  const page = await context.newPage();
  page.bad = [];
  page.on("pageerror", (e) => page.bad.push("error: " + e.message));
  page.on("console", (m) => { if (m.type() === "error" && !/Failed to load resource|net::ERR/.test(m.text())) page.bad.push(m.text()); });
  page.on("dialog", (d) => { page.bad.push("dialog: " + d.message()); d.dismiss(); });
  page.on("request", (r) => { if (!r.url().startsWith(new URL(url).origin) && !r.url().startsWith("blob:")) page.bad.push("request: " + r.url()); });
  await page.goto(url);
  return page;
}

/** shot keeps a picture where somebody wants to look at it. */
export async function shot(page, name) {
  if (shots) await page.screenshot({ path: join(shots, name + ".png") });
}
