// The page of a projector that runs by itself: it reads over NATS, decides over
// NATS, and shows the same.

import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Engine, Runner, browser, open, quiet, shot } from "./harness.mjs";

let e, p, b;

before(async () => {
  e = await Engine.start("--no-projector");
  p = await e.projector();
  b = await browser();
});
after(async () => { await b?.close(); await p?.end(); await e?.end(); });

test("the page of a projector shows what runs, and decides", async () => {
  const page = await open(b, p.page);
  await page.locator(".me", { hasText: "ada" }).waitFor();
  const r = await Runner.create(p, "apart", { title: "Served apart" });
  await r.request({ prompt: "Look for the needle, please." });
  await r.round();
  const streams = page.waitForResponse((r) => r.url().endsWith("deltas=apart"));
  await page.locator(".side .row", { hasText: "Served apart" }).click();
  await page.locator(".ev", { hasText: "run started" }).waitFor();
  await streams;
  await r.stream("Looking…");
  await page.locator(".draft").getByText("Looking…").waitFor();
  await r.answer("Looking…", [{ id: "g", name: "run_command", arguments: '{"command":"grep needle"}' }]);
  await r.do("tool.park", { tool_call_id: "g", question: "Run it?", request: { tool_name: "run_command", permission_type: "execute_command", resource: "grep needle" } });
  await page.locator(".card", { hasText: "grep needle" }).getByRole("button", { name: "Allow once" }).click();
  await page.locator(".ev", { hasText: "allowed once" }).waitFor();
  const decided = (await p.until("approvals/list?status=decided&session=apart", (r) => r.items.length)).items.at(-1);
  assert.equal(decided.decided_by, "ada");
  await page.locator(".badge.ok").waitFor();
  quiet(page);
  await page.context().close();
});

test("a session is exported as the engine stored it", async () => {
  const page = await open(b, p.page);
  await page.goto(p.url + "#/s/apart");
  await page.locator(".ev").first().waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByText("export").click()]);
  assert.equal(download.suggestedFilename(), "apart.jsonl");
  const lines = readFileSync(await download.path(), "utf8").trim().split("\n").map((l) => JSON.parse(l));
  const stored = (await p.get("sessions/apart/events?after=0&limit=1000")).events;
  assert.deepEqual(lines, stored);
  assert.equal(lines[0].type, "session.created");
  quiet(page);
  await page.context().close();
});

test("search finds words, and leads to where they were said", async () => {
  const page = await open(b, p.page);
  await page.locator(".lamp.up").waitFor();
  await page.getByLabel("Search all messages").fill("needle");
  await page.keyboard.press("Enter");
  const found = page.locator(".found li").first();
  await found.locator("mark", { hasText: "needle" }).waitFor();
  await shot(page, "search");
  await found.locator("a").click();
  await page.waitForURL(/#\/s\/apart\?at=\d+/);
  await page.locator(".ev.here", { hasText: "Look for the needle" }).waitFor();
  await page.getByLabel("Search all messages").fill('no-such-word AND ( "');
  await page.keyboard.press("Enter");
  await page.locator(".main").getByText(/no message|nothing/i).first().waitFor();
  quiet(page);
  await page.context().close();
});

test("usage is plotted by day, model and session, and as a table", async () => {
  const page = await open(b, p.page);
  const total = (await p.until("usage/get?by=session&session=apart", (r) => r.items.length)).items[0].usage.total;
  assert.ok(total > 0);
  await page.goto(p.url + "#/usage");
  await page.locator(".chart").first().waitFor();
  await page.locator("td", { hasText: total.toLocaleString("en") }).first().waitFor();
  for (const what of ["by-hand-1", "apart"]) await page.locator(".main").getByText(what).first().waitFor();
  await shot(page, "usage");
  await page.goto(p.url + "#/s/apart");
  await page.getByRole("tab", { name: "Usage" }).click();
  await page.locator(".usagepane .chart").first().waitFor();
  await shot(page, "usage-session");
  quiet(page);
  await page.context().close();
});

test("the projector is killed and comes back with the same page", async () => {
  const page = await open(b, p.page);
  await page.goto(p.url + "#/s/apart");
  await page.locator(".ev").first().waitFor();
  await p.kill();
  await page.locator(".lamp.down").waitFor();
  await p.up();
  await p.do("apart", "note.append", { kind: "afterwards", data: {} });
  await page.locator(".lamp.up").waitFor();
  await page.locator(".ev", { hasText: "afterwards" }).waitFor();
  await page.locator(".me", { hasText: "ada" }).waitFor();
  quiet(page);
  await page.context().close();
});
