// Runners that are not heard of any more, and what a person does about it.

import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { Engine, Runner, at, browser, fits, quiet, shot } from "./harness.mjs";

let e, b;

// Short enough to wait for, long enough for the sign of life of a slow machine.
before(async () => { e = await Engine.start("--lease", "6s"); b = await browser(); });
after(async () => { await b?.close(); await e?.end(); });

test("what was decided is told: what exactly, by whom, and what ran of it", async () => {
  const r = await Runner.create(e, "told", { title: "Told later" });
  await r.request({ prompt: "Clean up." });
  await r.round();
  const bash = '{"command":"rm -r build","why":"' + "it is old ".repeat(2500) + '"}';
  await r.answer("", [{ id: "rm", name: "Bash", arguments: bash }]);
  await r.do("tool.park", { tool_call_id: "rm", question: "Run it?", request: { tool_name: "Bash", permission_type: "execute_command", resource: "rm -r build", allowed_decisions: ["allow_once", "allow_session", "deny_once"], suggested_matchers: [{ id: "m1", kind: "command_prefix", pattern: "rm -r" }] } });
  const page = await at(b, e, "#/inbox");
  const card = page.locator(".card", { hasText: "Told later" });
  await card.getByLabel("Scope").selectOption("session");
  await card.getByLabel("Note").fill("build can be made again");
  await card.getByRole("button", { name: "Allow for this session" }).click();
  const row = page.locator(".decided li", { hasText: "allowed for this session" });
  for (const text of ["allowed for this session", "execute command", "command prefix: rm -r", "build can be made again", "by ada", "not run yet"]) await row.getByText(text).first().waitFor();
  await row.locator("summary").click();
  for (const text of ["sha-256", (await e.until("approvals/list?status=decided&session=told", (r) => r.items.length)).items[0].arguments_digest]) await row.getByText(text).first().waitFor();
  await row.getByRole("button", { name: /cut: show all/ }).click();
  await row.getByRole("button", { name: /cut: show all/ }).waitFor({ state: "detached" });
  // It starts, and its runner is lost; let it run again.
  const next = (await e.requested("told")).run_id;
  await r.claim(next);
  await r.do("replay.start");
  r.lose();
  await row.getByText("its outcome is unknown").waitFor();
  assert.equal(await row.locator("details[open]").count(), 1, "what was open has closed");
  const again = page.locator(".card.k-unknown", { hasText: "Told later" });
  await again.locator("header code", { hasText: "rm -r build" }).waitFor();
  await again.getByRole("button", { name: "Run it again" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run it again" }).click();
  const second = page.locator(".decided li", { hasText: "allowed again, its outcome was unknown" });
  await second.getByText("rm -r build").first().waitFor();
  await second.getByText("execute command").waitFor();
  await r.claim((await e.requested("told")).run_id);
  await r.do("replay.start");
  await r.do("tool.finish", { tool_call_id: "rm", success: true, content: "gone" });
  await second.getByRole("link", { name: "ran and succeeded" }).waitFor();
  await row.getByRole("link", { name: "its outcome is unknown" }).waitFor(); // the first time
  await shot(page, "decided");
  await page.setViewportSize({ width: 390, height: 844 });
  await fits(page);
  await shot(page, "decided-phone");
  await page.goto(e.url + "#/s/told");
  await page.locator(".ev", { hasText: "Bash allowed again, its outcome was unknown" }).waitFor();
  await r.finish();
  quiet(page);
  await page.context().close();
});

test("a plain run whose runner was lost is resumed, after a confirmation", async () => {
  const r = await Runner.create(e, "broken", { title: "Broken off" });
  await r.request({ prompt: "Go on and on." });
  await r.round();
  r.lose();
  const page = await at(b, e, "#/s/broken", { viewport: { width: 1280, height: 800 } });
  await page.locator(".progress").getByText("last run interrupted: nothing was heard of its runner").waitFor();
  assert.doesNotMatch(await page.locator("body").innerText(), /lease_expired/);
  await page.getByText("by-hand/by-hand-1").first().waitFor();
  await page.getByRole("button", { name: "Resume", exact: true }).click();
  await page.getByRole("dialog").getByText("unknown are not repeated").waitFor();
  await shot(page, "resume");
  await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
  await page.locator(".ev", { hasText: "run requested (retry)" }).waitFor();
  await page.getByRole("button", { name: "Resume", exact: true }).waitFor({ state: "detached" });
  const run = await e.requested("broken");
  assert.equal(run.cause, "retry");
  await r.claim(run.run_id);
  await r.round();
  await r.answer("Done.");
  await r.finish();
  await page.locator(".ev", { hasText: "run completed" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Resume", exact: true }).count(), 0);
  quiet(page);
  await page.context().close();
});

test("a decided call that no run has taken up is run by Resume", async () => {
  const r = await Runner.create(e, "taken");
  await r.request({ prompt: "Go." });
  await r.round();
  await r.answer("", [{ id: "c1", name: "Bash", arguments: '{"command":"make"}' }]);
  await r.do("tool.park", { tool_call_id: "c1", question: "Run it?", request: { tool_name: "Bash", permission_type: "execute_command", resource: "make" } });
  const page = await at(b, e, "#/s/taken");
  await page.locator(".card").getByRole("button", { name: "Allow once" }).click();
  const run = await e.requested("taken");
  await r.claim(run.run_id);
  r.lose();
  await page.getByRole("button", { name: "Resume", exact: true }).click();
  await page.getByRole("dialog").getByText("1 decided call runs first").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
  const next = await e.requested("taken", run.run_id);
  await r.claim(next.run_id);
  assert.equal((await r.do("replay.start")).result.replay.arguments, '{"command":"make"}');
  await r.do("tool.finish", { tool_call_id: "c1", success: true, content: "made" });
  await page.locator(".ev", { hasText: "Bash succeeded (as approved)" }).waitFor();
  await r.finish("cancelled");
  quiet(page);
  await page.context().close();
});

test("a loop whose runner died is continued, after a confirmation", async () => {
  const r = await Runner.create(e, "lost", { title: "Lost runner" });
  await r.request({ prompt: "Improve it.", loop: { max_iterations: 4, max_total_rounds: 9 } });
  await r.round();
  await r.answer("Draft one.");
  await r.round();
  r.lose();
  const page = await at(b, e, "#/s/lost");
  await page.locator(".ev", { hasText: "run interrupted" }).waitFor();
  const go = page.getByRole("button", { name: "Continue loop" });
  await go.waitFor();
  await shot(page, "continue");
  await go.click();
  await page.getByRole("dialog").getByText("remaining iterations").waitFor();
  await page.keyboard.press("Escape"); // not confirmed: nothing happens
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  assert.equal((await e.get("sessions/lost/state")).state.run, null);
  await go.click();
  await shot(page, "continue-dialog");
  await page.getByRole("dialog").getByRole("button", { name: "Continue loop" }).click();
  await page.locator(".ev", { hasText: "continued the loop: 3 iterations" }).waitFor();
  const run = await e.requested("lost");
  assert.equal(run.cause, "continue");
  await r.claim(run.run_id);
  await page.locator(".progress").getByText("iteration 1 of 3").waitFor();
  await r.finish("cancelled");
  quiet(page);
  await page.context().close();
});
