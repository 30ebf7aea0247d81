// What a person is asked, what they can answer, and what is said of it later.

import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { Engine, Runner, at, browser, fits, quiet, shot } from "./harness.mjs";

let e, b;

before(async () => { e = await Engine.start(); b = await browser(); });
after(async () => { await b?.close(); await e?.end(); });

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
  const page = await at(b, e, "#/inbox", { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  const card = page.locator(".card", { hasText: "AskUserQuestion" });
  await card.locator("fieldset").nth(2).waitFor();
  assert.equal(await card.locator("fieldset").count(), 3);
  assert.equal(await card.getByRole("button", { name: "spotter" }).count(), 0, "an option looks like the answer to all");
  await fits(page);
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

test("a question is answered, a call denied", async () => {
  const q = await Runner.create(e, "question");
  await q.request({ prompt: "Find a name." });
  await q.round();
  await q.answer("", [{ id: "ask", name: "ask_person", arguments: "{}" }, { id: "rm", name: "run_command", arguments: '{"command":"rm -rf build"}' }]);
  await q.do("tool.park", { tool_call_id: "ask", question: "Which name?", options: ["queue", "backlog"], allow_custom: true });
  await q.do("tool.park", { tool_call_id: "rm", question: "Delete the folder?", request: { tool_name: "run_command", permission_type: "execute_command", resource: "rm -rf build" } });
  const page = await at(b, e, "#/s/question");
  await page.getByRole("button", { name: "backlog" }).click();
  await page.locator(".ev", { hasText: "answered ask_person" }).waitFor();
  await page.locator(".card", { hasText: "rm -rf build" }).getByRole("button", { name: "Deny" }).click();
  await page.locator(".ev", { hasText: "run_command denied" }).waitFor();
  quiet(page);
  await page.context().close();
});

test("a run that its runner refuses leaves the calls it had started to the inbox", async () => {
  const page = await at(b, e, "#/inbox");
  const r = await Runner.create(e, "refused", { title: "Refused later" });
  await r.request({ prompt: "Push it." });
  await r.round();
  await r.answer("", [{ id: "push", name: "run_command", arguments: '{"command":"git push"}' }]);
  await r.do("tool.start", { tool_call_id: "push" });
  await page.locator(".side .row", { hasText: "Refused later" }).getByText("running").waitFor();
  await r.do("run.refuse", { code: "provider_gone", message: "the provider is gone" });
  await page.locator(".card.k-unknown", { hasText: "Refused later" }).waitFor();
  assert.equal((await e.get("sessions/refused/events")).events.at(-1).type, "run.refused", "another event has helped");
  await page.locator(".card.k-unknown", { hasText: "Refused later" }).getByRole("button", { name: "Do not run it" }).click();
  await page.locator(".card.done", { hasText: "not run again" }).waitFor();
  quiet(page);
  await page.context().close();
});

test("options of several questions that cannot be told apart are no buttons", async () => {
  await parked("torn", { name: "AskUserQuestion", arguments: '{"questions": torn' }, flat);
  await parked("one", { name: "ask_user", arguments: '{"question":"Which one?"}' }, { question: "Which one?", options: ["spotter", "No rig at all, thank you very much", "another"], allow_custom: true });
  const page = await at(b, e, "#/inbox", { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  const torn = page.locator(".card", { hasText: "torn" });
  await torn.getByPlaceholder("a line for each").waitFor();
  assert.equal(await torn.getByRole("button", { name: "spotter" }).count(), 0);
  const one = page.locator(".card", { hasText: "Which one?" });
  await one.locator(".answer .buttons button").nth(2).waitFor();
  const heights = await one.locator(".answer .buttons button").evaluateAll((all) => all.map((x) => x.getBoundingClientRect().height));
  assert.ok(heights.length === 3 && heights.every((x) => x < 45), `a button is squeezed: ${heights}`);
  await shot(page, "options-phone");
  quiet(page);
  await page.context().close();
  const wide = await at(b, e, "#/s/one", { viewport: { width: 1280, height: 800 } });
  const label = wide.locator(".card .fold .label", { hasText: "the call" });
  await label.waitFor();
  assert.ok(await label.evaluate((x) => x.scrollWidth <= x.clientWidth), "the label is cut");
  await shot(wide, "question-session");
  await wide.context().close();
});

test("a loop that ended because a call waited says so, and rounds have one number", async () => {
  const r = await Runner.create(e, "waited", { title: "Waited" });
  await r.request({ prompt: "Improve the zebra.", loop: { max_iterations: 3, max_total_rounds: 30 } });
  for (const text of ["Draft one.", "Draft two."]) { await r.round(); await r.answer(text); }
  await r.round();
  await r.answer("", [{ id: "w", name: "write_file", arguments: "{}" }]);
  await r.do("tool.park", { tool_call_id: "w", question: "Write?", request: { tool_name: "write_file", permission_type: "write_file", resource: "a.txt" } });
  const page = await at(b, e, "#/s/waited", { viewport: { width: 1280, height: 800 } });
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
  await e.until("messages/search?text=zebra", (r) => r.items.length === 3);
  await page.goto(e.url + "#/search?q=zebra");
  await page.locator(".found li", { hasText: "objective repeated" }).nth(1).waitFor();
  assert.equal(await page.locator(".found li", { hasText: "person" }).count(), 1);
  quiet(page);
  await page.context().close();
});

test("a session is made with mode, model and workspace, and a loop that pauses; what is said in passing covers no button", async () => {
  const page = await at(b, e, "#/", { viewport: { width: 1280, height: 800 } });
  await page.keyboard.press("n");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/^Name/).fill("made");
  await dialog.getByLabel("Permission mode").selectOption("bypass");
  await dialog.getByLabel("Model, PROVIDER/MODEL").fill("by-hand/some/model");
  await dialog.getByLabel("Workspace").fill("/tmp/w");
  await shot(page, "new-session");
  // What is said in passing may be gone before it can be looked at.
  await page.evaluate(() => {
    const box = document.getElementById("toasts");
    new MutationObserver(() => { if (box.lastChild) window.toastEnd ??= box.lastChild.getBoundingClientRect().bottom; }).observe(box, { childList: true });
  });
  await dialog.getByRole("button", { name: "Create" }).click();
  await page.getByText("by-hand/some/model").first().waitFor();
  const s = (await e.get("sessions/made/state")).state.session;
  assert.deepEqual([s.mode, s.model, s.workspace], ["bypass", { provider: "by-hand", model: "some/model" }, "/tmp/w"]);
  await page.waitForFunction(() => window.toastEnd);
  const run = await page.getByRole("button", { name: "Run", exact: true }).boundingBox();
  assert.ok(await page.evaluate(() => window.toastEnd) <= run.y, "it covers the Run button");
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
