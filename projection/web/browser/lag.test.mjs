// Views that are behind the log, for real: the page's queries are answered by a
// projector whose connection to the server is held.

import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { Engine, Projector, Runner, at, browser, open, quiet, shot } from "./harness.mjs";

/** Views are those of a projector that can be held back. */
class Views extends Projector {
  static async start(e) {
    const v = new Views(0);
    v.sockets = new Set(); v.held = false; v.refusal = null;
    v.door = createServer((client) => v.join(client, connect(e.ports[0], "127.0.0.1"))).listen(0, "127.0.0.1");
    await new Promise((done) => { v.door.on("listening", done); });
    v.ports[0] = v.door.address().port;
    await v.up();
    return v;
  }

  /** join passes on what both say; what the server says waits while it is held. */
  join(client, server) {
    this.sockets.add(server);
    client.on("data", (d) => {
      if (this.from && this.from.test(d)) this.hold();
      server.write(d);
    });
    server.on("data", (d) => client.write(d));
    if (this.held) server.pause();
    for (const [one, other] of [[client, server], [server, client]]) one.on("error", () => {}).on("close", () => other.destroy());
    server.on("close", () => this.sockets.delete(server));
  }

  hold() { this.held = true; for (const s of this.sockets) s.pause(); }

  release() { this.held = false; this.from = null; for (const s of this.sockets) s.resume(); }

  /** anew begins with no views at all, and stops where they would follow the log. */
  async anew() {
    await this.kill();
    for (const suffix of ["", "-wal", "-shm"]) rmSync(this.dir + "/views.db" + suffix, { force: true });
    this.from = /SUB agent\.event\./;
    await this.up({});
    await this.until("status", (s) => s.ok && !s.ready);
  }

  /** answer lets these views answer what a page asks of views; refusal, if there
   * is one, is said instead, as by views that are computed anew. */
  async answer(page) {
    await page.route(/\/api\/v1\/(status|[a-z]+\/(list|get|search))$/, async (route) => {
      const asked = route.request(), path = new URL(asked.url()).pathname, status = path.endsWith("/status");
      const r = await fetch(this.url + path.slice(1), { method: asked.method(), headers: { "Content-Type": "application/json" }, body: asked.postData() ?? undefined }).catch(() => null);
      let [code, json] = r ? [r.status, await r.json()] : [503, { ok: false, error: { code: "unavailable", message: "away" } }];
      if (status) json = { ...json, actor: "ada", acts: true, rebuilding: this.refusal ? ["sessions"] : json.rebuilding };
      else if (this.refusal) [code, json] = [503, { ok: false, error: this.refusal }];
      await route.fulfill({ status: code, json }).catch(() => {}); // nobody waits for it any more
    });
  }

  async end() { await super.end(); this.door.close(); }
}

let e, v, b;

before(async () => { e = await Engine.start(); v = await Views.start(e); b = await browser(); });
after(async () => { await b?.close(); await v?.end(); await e?.end(); });

const look = (hash) => at(b, e, hash, { prepare: (page) => v.answer(page) });
const gate = { question: "Run it?", request: { tool_name: "run_command", permission_type: "execute_command", resource: "make late" } };

test("what comes while the views are behind is shown when they have it, without another event", async () => {
  const r = await Runner.create(e, "late", { title: "Late views" });
  await r.request({ prompt: "Go." });
  await r.round();
  await r.answer("", [{ id: "c", name: "run_command", arguments: '{"command":"make late"}' }]);
  const pages = [await look("#/s/late"), await look("#/inbox"), await look("#/")], [session, inbox, now] = pages;
  await session.locator(".ev", { hasText: "answered with a call" }).waitFor();
  await inbox.getByText("Nothing waits for you.").waitFor();
  await now.locator(".part .line", { hasText: "Late views" }).getByText("running").waitFor();
  v.hold();
  await r.do("tool.park", { tool_call_id: "c", ...gate });
  await session.locator(".ev", { hasText: "waits for approval" }).waitFor(); // the log is not behind
  await session.locator(".sub").getByText("The views are behind").waitFor();
  await inbox.locator(".main").getByText("The views are behind").waitFor();
  for (const page of pages) {
    await page.locator(".lamp.behind").waitFor();
    assert.equal(await page.locator(".card").count(), 0);
  }
  assert.equal(await inbox.getByText("Nothing waits for you.").isVisible(), false, "it says what it does not know");
  await shot(session, "late-session");
  await shot(inbox, "late-inbox");
  v.release();
  await session.locator(".card", { hasText: "make late" }).waitFor();
  await inbox.locator(".card", { hasText: "make late" }).waitFor();
  await now.locator(".part", { hasText: "Waits for you" }).getByText("make late").waitFor();
  for (const page of pages) {
    await page.locator(".side .row", { hasText: "Late views" }).getByText("waits for you").waitFor();
    await page.locator(".lamp.up").waitFor();
    await page.getByText("The views are behind").waitFor({ state: "detached" });
  }
  assert.equal((await e.get("sessions/late/events")).events.at(-1).type, "tool.parked", "another event has helped");
  for (const page of pages) { quiet(page); await page.context().close(); }
});

test("what was read of views that had not caught up is read anew when they have", async () => {
  await v.anew();
  const page = await open(b, e.page, { prepare: (page) => v.answer(page) });
  await page.locator(".lamp.behind", { hasText: "catching up" }).waitFor();
  await page.getByText("Nothing has happened here yet.").waitFor();
  await page.getByText("No sessions yet.").waitFor();
  v.release();
  await page.locator(".side .row", { hasText: "Late views" }).waitFor();
  await page.locator(".part", { hasText: "Waits for you" }).getByText("make late").waitFor();
  await page.locator(".nav").getByText("1").waitFor();
  await page.locator(".lamp.up").waitFor();
  quiet(page);
  await page.context().close();
});

test("views that are computed anew are asked again until they answer", async () => {
  v.refusal = { code: "unavailable", message: "the view sessions is being computed anew, try again later" };
  const pages = [await look("#/s/late"), await look("#/inbox"), await look("#/usage"), await look("#/search?q=go")], [session, inbox, usage, search] = pages;
  for (const page of pages) await page.locator(".lamp.behind", { hasText: "computing views anew" }).waitFor();
  await session.locator(".sub").getByText("It cannot be read now").waitFor();
  await session.locator(".ev", { hasText: "waits for approval" }).waitFor();
  await inbox.locator(".main").getByText("It cannot be read now").waitFor();
  v.refusal = null;
  await session.locator(".card", { hasText: "make late" }).waitFor();
  await inbox.locator(".card", { hasText: "make late" }).waitFor();
  await usage.locator(".chart").first().waitFor();
  await search.locator(".found li", { hasText: "late" }).waitFor();
  for (const page of pages) {
    await page.locator(".side .row", { hasText: "Late views" }).waitFor();
    await page.locator(".lamp.up").waitFor();
    quiet(page);
    await page.context().close();
  }
});
