// What a person is asked, what they can answer, and what is said of it later.

import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { Engine, Runner, browser, open, shot } from "./harness.mjs";

let e, b;

before(async () => { e = await Engine.start("--lease", "2s"); b = await browser(); });
after(async () => { await b?.close(); await e?.end(); });

const quiet = (page) => assert.deepEqual(page.bad, [], "errors, dialogs or requests to elsewhere");

/** at opens the page at a place. */
async function at(hash, options) {
  const page = await open(b, e.page, options);
  await page.locator(".lamp.up").waitFor();
  await page.goto(e.url + hash);
  return page;
}

/** alive keeps the lease of a run while the test looks on. */
function alive(r) {
  const timer = setInterval(() => r.do("run.renew").catch(() => {}), 500).unref();
  return () => clearInterval(timer);
}

/** parked is a run whose call waits. */
async function parked(session, call, park, data = {}) {
  const r = await Runner.create(e, session, data);
  await r.request({ prompt: "Go." });
  await r.round();
  await r.answer("", [{ id: "c1", ...call }]);
  await r.do("tool.park", { tool_call_id: "c1", ...park });
  return r;
}

const two = {
  questions: [
    { question: "Which rig do these beads belong to? (Should I use 'spotter'?)", header: "Rig", options: [{ label: "spotter", description: "Use 'spotter' as the rig prefix" }, { label: "No rig", description: "Don't use a rig prefix" }], multiSelect: false },
    { question: "Which tools should we set up?", header: "Tools", options: [{ label: "All four (Recommended)", description: "Credo + Dialyxir + mix_audit + Sobelow" }, { label: "Credo + Dialyxir + mix_audit" }, { label: "Custom selection" }], multiSelect: false },
    { question: "Where does it run?", options: ["here", "there"], multiSelect: true },
  ],
};
const flat = { question: "1. Which rig do these beads belong to? (Should I use 'spotter'?) (spotter / No rig)\n2. Which tools should we set up? (All four / Custom)\n3. Where does it run? (here / there)", options: ["spotter", "No rig", "All four (Recommended)", "Custom selection", "here", "there"], allow_custom: true };

test("several questions of one call are answered each, and together", async () => {
  await parked("rigs", { name: "AskUserQuestion", arguments: JSON.stringify(two) }, flat, { title: "Beads" });
  const page = await at("#/inbox", { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  const card = page.locator(".card", { hasText: "AskUserQuestion" });
  await card.locator("fieldset").nth(2).waitFor();
  assert.equal(await card.locator("fieldset").count(), 3);
  assert.equal(await card.getByRole("button", { name: "spotter" }).count(), 0, "an option looks like the answer to all");
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is wider than a phone");
  await shot(page, "questions-phone");
  await card.getByLabel("No rig").check();
  await card.getByRole("button", { name: "Answer all 3" }).click();
  await card.getByText("Question 2 has no answer yet").waitFor();
  await card.getByLabel("Custom selection").check();
  await card.getByLabel("Another answer").nth(1).fill("Credo only");
  assert.equal(await card.getByLabel("Custom selection").isChecked(), false, "one question has two answers");
  for (const place of ["there", "here"]) await card.getByLabel(place, { exact: true }).check();
  await card.getByRole("button", { name: "Answer all 3" }).click();
  await page.locator(".card.done", { hasText: "answered" }).waitFor();
  const decided = (await e.until("approvals/list?status=decided&session=rigs", (r) => r.items.length)).items[0];
  assert.equal(decided.answer, "Which rig do these beads belong to? (Should I use 'spotter'?): No rig\nWhich tools should we set up?: Credo only\nWhere does it run?: here, there");
  quiet(page);
  await page.context().close();
});

test("options of several questions that cannot be told apart are no buttons", async () => {
  await parked("torn", { name: "AskUserQuestion", arguments: '{"questions": torn' }, flat);
  await parked("one", { name: "ask_user", arguments: '{"question":"Which one?"}' }, { question: "Which one?", options: ["spotter", "No rig at all, thank you very much", "another"], allow_custom: true });
  const page = await at("#/inbox", { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  const torn = page.locator(".card", { hasText: "torn" });
  await torn.getByPlaceholder("a line for each").waitFor();
  assert.equal(await torn.getByRole("button", { name: "spotter" }).count(), 0);
  const one = page.locator(".card", { hasText: "Which one?" });
  const heights = await one.locator(".answer .buttons button").evaluateAll((all) => all.map((x) => x.getBoundingClientRect().height));
  assert.ok(heights.length === 3 && heights.every((x) => x < 45), `a button is squeezed: ${heights}`);
  await shot(page, "options-phone");
  quiet(page);
  await page.context().close();
  const wide = await at("#/s/one", { viewport: { width: 1280, height: 800 } });
  const label = wide.locator(".card .fold .label", { hasText: "the call" });
  await label.waitFor();
  assert.ok(await label.evaluate((x) => x.scrollWidth <= x.clientWidth), "the label is cut");
  await shot(wide, "question-session");
  await wide.context().close();
});

test("what was decided is told: what exactly, by whom, and what ran of it", async () => {
  const r = await Runner.create(e, "told", { title: "Told later" });
  await r.request({ prompt: "Clean up." });
  let stop = alive(r);
  await r.round();
  const bash = '{"command":"rm -r build","why":"' + "it is old ".repeat(2500) + '"}';
  await r.answer("", [{ id: "rm", name: "Bash", arguments: bash }]);
  await r.do("tool.park", { tool_call_id: "rm", question: "Run it?", request: { tool_name: "Bash", permission_type: "execute_command", resource: "rm -r build", allowed_decisions: ["allow_once", "allow_session", "deny_once"], suggested_matchers: [{ id: "m1", kind: "command_prefix", pattern: "rm -r" }] } });
  stop();
  const page = await at("#/inbox");
  const card = page.locator(".card", { hasText: "Told later" });
  await card.getByLabel("Scope").selectOption("session");
  await card.getByLabel("Note").fill("build can be made again");
  await card.getByRole("button", { name: "Allow for this session" }).click();
  const row = page.locator(".decided li", { hasText: "allowed for this session" });
  for (const text of ["allowed for this session", "execute command", "command prefix: rm -r", "build can be made again", "by ada", "not run yet"]) await row.getByText(text).first().waitFor();
  await row.locator("summary").click();
  for (const text of ["sha-256", (await e.get("approvals/list?status=decided&session=told")).items[0].arguments_digest]) await row.getByText(text).first().waitFor();
  await row.getByRole("button", { name: /cut: show all/ }).click();
  await row.getByRole("button", { name: /cut: show all/ }).waitFor({ state: "detached" });
  // It starts, and its runner is lost; let it run again.
  const next = (await e.requested("told")).run_id;
  await r.claim(next);
  await r.do("replay.start");
  await row.getByText("its outcome is unknown").waitFor({ timeout: 30000 });
  assert.equal(await row.locator("details[open]").count(), 1, "what was open has closed");
  const again = page.locator(".card.k-unknown", { hasText: "Told later" });
  await again.locator("header code", { hasText: "rm -r build" }).waitFor();
  await again.getByRole("button", { name: "Run it again" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run it again" }).click();
  const second = page.locator(".decided li", { hasText: "allowed again, its outcome was unknown" });
  await second.getByText("rm -r build").first().waitFor();
  await second.getByText("execute command").waitFor();
  await r.claim((await e.requested("told")).run_id);
  stop = alive(r);
  await r.do("replay.start");
  await r.do("tool.finish", { tool_call_id: "rm", success: true, content: "gone" });
  await second.getByRole("link", { name: "ran and succeeded" }).waitFor();
  await row.getByRole("link", { name: "its outcome is unknown" }).waitFor(); // the first time
  await shot(page, "decided");
  await page.setViewportSize({ width: 390, height: 844 });
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is wider than a phone");
  await shot(page, "decided-phone");
  await page.goto(e.url + "#/s/told");
  await page.locator(".ev", { hasText: "Bash allowed again, its outcome was unknown" }).waitFor();
  stop();
  await r.finish();
  quiet(page);
  await page.context().close();
});

test("a plain run whose runner was lost is resumed, after a confirmation", async () => {
  const r = await Runner.create(e, "broken", { title: "Broken off" });
  await r.request({ prompt: "Go on and on." });
  await r.round();
  const page = await at("#/s/broken", { viewport: { width: 1280, height: 800 } });
  await page.locator(".progress").getByText("last run interrupted: nothing was heard of its runner").waitFor({ timeout: 30000 });
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
  const r = await parked("taken", { name: "Bash", arguments: '{"command":"make"}' }, { question: "Run it?", request: { tool_name: "Bash", permission_type: "execute_command", resource: "make" } });
  const page = await at("#/s/taken");
  await page.locator(".card").getByRole("button", { name: "Allow once" }).click();
  const run = await e.requested("taken");
  await r.claim(run.run_id); // and is not heard of any more
  await page.getByRole("button", { name: "Resume", exact: true }).click({ timeout: 30000 });
  await page.getByRole("dialog").getByText("1 decided call runs first").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
  const next = await e.requested("taken", run.run_id);
  await r.claim(next.run_id);
  const stop = alive(r);
  assert.equal((await r.do("replay.start")).result.replay.arguments, '{"command":"make"}');
  await r.do("tool.finish", { tool_call_id: "c1", success: true, content: "made" });
  await page.locator(".ev", { hasText: "Bash succeeded (as approved)" }).waitFor();
  stop();
  await r.finish("cancelled");
  quiet(page);
  await page.context().close();
});

test("a loop that ended because a call waited says so, and rounds have one number", async () => {
  const r = await Runner.create(e, "waited", { title: "Waited" });
  await r.request({ prompt: "Improve the zebra.", loop: { max_iterations: 3, max_total_rounds: 30 } });
  let stop = alive(r);
  for (const text of ["Draft one.", "Draft two."]) { await r.round(); await r.answer(text); }
  await r.round();
  await r.answer("", [{ id: "w", name: "write_file", arguments: "{}" }]);
  await r.do("tool.park", { tool_call_id: "w", question: "Write?", request: { tool_name: "write_file", permission_type: "write_file", resource: "a.txt" } });
  stop();
  const page = await at("#/s/waited", { viewport: { width: 1280, height: 800 } });
  await page.locator(".ev", { hasText: "round 3 of 30 (iteration 3 of 3)" }).waitFor();
  await page.locator(".ev", { hasText: "round 1 of 30 (iteration 1 of 3)" }).first().waitFor();
  await page.locator(".card").getByRole("button", { name: "Deny" }).click();
  await r.claim((await e.requested("waited")).run_id);
  await r.round();
  await r.answer("Then not.");
  await r.finish();
  await page.locator(".progress").getByText("the loop ended because a call had to wait for a person: continue or abandon it").waitFor();
  await page.getByRole("button", { name: "Abandon loop" }).waitFor();
  assert.doesNotMatch(await page.locator(".progress").innerText(), /lost|runner/);
  await shot(page, "parked-loop");
  await page.goto(e.url + "#/search?q=zebra");
  await page.locator(".found li", { hasText: "objective repeated" }).nth(1).waitFor();
  assert.equal(await page.locator(".found li", { hasText: "person" }).count(), 1);
  quiet(page);
  await page.context().close();
});

test("a session is made with mode, model and workspace, and a loop that pauses; what is said in passing covers no button", async () => {
  const page = await at("#/", { viewport: { width: 1280, height: 800 } });
  await page.keyboard.press("n");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/^Name/).fill("made");
  await dialog.getByLabel("Permission mode").selectOption("bypass");
  await dialog.getByLabel("Model, PROVIDER/MODEL").fill("by-hand/some/model");
  await dialog.getByLabel("Workspace").fill("/tmp/w");
  await shot(page, "new-session");
  await dialog.getByRole("button", { name: "Create" }).click();
  await page.getByText("by-hand/some/model").first().waitFor();
  const s = (await e.get("sessions/made/state")).state.session;
  assert.deepEqual([s.mode, s.model, s.workspace], ["bypass", { provider: "by-hand", model: "some/model" }, "/tmp/w"]);
  const [toast, run] = await Promise.all([page.locator(".toast").boundingBox(), page.getByRole("button", { name: "Run", exact: true }).boundingBox()]);
  assert.ok(toast.y + toast.height <= run.y, "it covers the Run button");
  await shot(page, "toast");
  // A loop that is asked for here waits with its calls, and goes on after the decision.
  await page.getByPlaceholder("Ask for a run").fill("Twice.");
  await page.getByLabel("Iterations").fill("2");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.locator(".ev", { hasText: "asked for a loop: 2 iterations" }).waitFor();
  assert.equal((await e.get("sessions/made/events")).events.at(-1).data.loop_request.on_park, "pause");
  await page.keyboard.press("Escape");
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("?");
  await dialog.getByText("search all messages").waitFor();
  assert.deepEqual(await dialog.getByRole("button").allInnerTexts(), ["Close"]);
  await dialog.getByRole("button", { name: "Close" }).click();
  await dialog.waitFor({ state: "hidden" });
  quiet(page);
  await page.context().close();
});
