// What runs, goes and breaks while somebody looks at the page.

import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { Engine, Runner, at, browser, fits, patience, publish, quiet, rests, shot } from "./harness.mjs";

let e, b;

before(async () => { e = await Engine.start(); b = await browser(); });
after(async () => { await b?.close(); await e?.end(); });

test("a streamed answer is shown as provisional, until the record takes its place", async () => {
  const r = await Runner.create(e, "stream", { title: "Streams" });
  await r.request({ prompt: "Say something long." });
  await r.round();
  const page = await at(b, e, "#/s/stream");
  const draft = page.locator(".draft");
  await r.stream("Let me see. ", { kind: "reasoning" });
  await page.locator(".draft", { hasText: "is thinking" }).getByText("Let me see.").waitFor();
  for (const word of ["First ", "draft, ", "<b>with</b> \u202E a trick. "]) await r.stream(word);
  const answer = page.locator(".draft", { hasText: "is answering" });
  await answer.getByText("First draft, <b>with</b> U+202E a trick.").waitFor();
  await answer.getByText("not recorded yet").waitFor();
  assert.equal(await page.locator(".events .ev", { hasText: "First draft" }).count(), 0, "it stands among what is recorded");
  await shot(page, "draft");
  // Another attempt begins anew; what comes late of the first one is void.
  await r.stream("retrying: overloaded", { kind: "progress", attempt: 2 });
  await page.locator(".draft").getByText("retrying: overloaded").waitFor();
  await r.stream("Second draft", { attempt: 2 });
  await r.stream("late of the first");
  await r.stream(", better.", { attempt: 2 });
  await answer.getByText("Second draft, better.").waitFor();
  await answer.getByText("attempt 2").waitFor();
  assert.doesNotMatch(await page.locator(".drafts").innerText(), /First draft|late of the first|retrying/);
  // What is lost shows as a gap; what is no delta shows as nothing.
  r.pieces += 3;
  await r.stream("And more.", { attempt: 2 });
  await answer.getByText("Second draft, better. … And more.").waitFor();
  for (const junk of ["not json", '{"round":"x"}', '{"round":0,"index":99,"kind":"text","text":{"a":1}}', "null", "[]"]) await publish(e.ports[0], `agent.delta.stream.${r.run.run_id}`, junk);
  await r.answer("Second draft, better. And more.", [{ id: "c1", name: "run_command", arguments: '{"command":"make"}' }]);
  await page.locator(".events .ev", { hasText: "Second draft, better. And more." }).waitFor();
  await draft.waitFor({ state: "detached" });
  await r.stream(" later than its round", { attempt: 2 });
  await r.do("tool.start", { tool_call_id: "c1" });
  await page.locator(".ev", { hasText: "run_command started" }).waitFor();
  await r.stream("compiling…\n", { kind: "tool_output", tool_call_id: "c1" });
  await page.locator(".draft", { hasText: "output of run_command" }).getByText("compiling…").waitFor();
  assert.equal(await draft.count(), 1, "a delta of a recorded round is shown");
  await shot(page, "draft-tool");
  await r.do("tool.finish", { tool_call_id: "c1", success: true, content: "compiled" });
  await draft.waitFor({ state: "detached" });
  await r.round();
  await r.stream("Done");
  await answer.getByText("Done").waitFor();
  // Numbers that begin again are the round begun anew.
  await r.stream("… or not");
  r.pieces = 0;
  await r.stream("Anew");
  await r.stream(", once more");
  await answer.getByText("Anew, once more", { exact: true }).waitFor();
  assert.doesNotMatch(await page.locator(".drafts").innerText(), /Done|or not/);
  await r.finish("cancelled");
  await draft.waitFor({ state: "detached" });
  quiet(page);
  await page.context().close();
});

/** streamed streams a piece until it is seen: a client that is slower than what
 * streams misses pieces. */
async function streamed(r, text, more, seen) {
  for (const end = Date.now() + patience; Date.now() < end;) {
    await r.stream(text, more);
    if (await seen.waitFor({ timeout: 1000 }).then(() => true, () => false)) return;
  }
  throw new Error(`${text} is never seen`);
}

test("a flood of deltas keeps the page as small as it was", async () => {
  const r = await Runner.create(e, "flood");
  await r.request({ prompt: "Flood." });
  await r.round();
  const page = await at(b, e, "#/s/flood", { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, colorScheme: "dark" });
  const line = "x".repeat(4000) + "\n";
  for (let i = 0; i < 400; i++) await r.stream(line);
  const answer = page.locator(".draft", { hasText: "is answering" });
  await streamed(r, "the very end", {}, answer.getByText("the very end"));
  const shown = (await answer.innerText()).length;
  assert.ok(shown > 8000 && shown < 30000, `${shown} characters are shown`);
  for (let i = 0; i < 99; i++) await r.stream("y", { kind: "tool_output", tool_call_id: "call " + i });
  await streamed(r, "y", { kind: "tool_output", tool_call_id: "call 99" }, page.locator(".draft", { hasText: "call 99" }));
  assert.ok((await page.locator(".draft").count()) <= 12);
  await fits(page);
  await page.waitForFunction(() => document.querySelector(".draft:last-child").getBoundingClientRect().bottom <= innerHeight); // it follows
  await shot(page, "draft-phone-dark");
  await r.finish();
  await page.locator(".draft").first().waitFor({ state: "detached" });
  quiet(page);
  await page.context().close();
});

test("what was opened is open after scrolling away and back", async () => {
  const r = await Runner.create(e, "folds");
  await r.request({ prompt: "Read." });
  await r.round();
  await r.answer("Reading.", [{ id: "c1", name: "read_file", arguments: '{"path":"a"}' }]);
  await r.tool("c1", "line of the result\n".repeat(300));
  await r.finish();
  for (let i = 0; i < 10; i++) await Promise.all(Array.from({ length: 30 }, (_, n) => e.do("folds", "message.submit", { content: `message ${i} ${n}` })));
  const page = await at(b, e, "#/s/folds");
  await rests(page);
  await page.locator(".scroller").evaluate((s) => { s.dispatchEvent(new Event("wheel")); s.scrollTop = 0; });
  const row = page.locator(".ev", { hasText: "read_file succeeded" });
  await row.locator("summary").click();
  await row.getByRole("button", { name: /show all/ }).click();
  await row.getByRole("button", { name: /^Details of event/ }).click();
  await row.locator(".details").waitFor();
  await page.evaluate(() => document.activeElement.blur()); // what has the focus stays in the page
  const seq = await row.getAttribute("data-seq"), height = (await row.boundingBox()).height;
  await page.locator(".scroller").evaluate((s) => { s.scrollTop = s.scrollHeight; });
  await row.waitFor({ state: "detached" });
  await page.locator(".scroller").evaluate((s) => { s.scrollTop = 0; });
  const again = page.locator(`.ev[data-seq="${seq}"]`);
  await again.locator("details[open] .text.long").waitFor();
  await again.locator(".details").waitFor();
  assert.equal(await again.getByRole("button", { name: /^Details of event/ }).getAttribute("aria-expanded"), "true");
  assert.ok(Math.abs((await again.boundingBox()).height - height) < 2, "it is not as it was left");
  // What is closed again stays closed.
  await again.getByRole("button", { name: /^Details of event/ }).click();
  await again.locator("summary").first().click();
  await page.evaluate(() => document.activeElement.blur());
  await page.locator(".scroller").evaluate((s) => { s.scrollTop = s.scrollHeight; });
  await again.waitFor({ state: "detached" });
  await page.locator(".scroller").evaluate((s) => { s.scrollTop = 0; });
  await again.waitFor();
  assert.equal(await again.locator("details[open], .details").count(), 0);
  quiet(page);
  await page.context().close();
});

test("somebody who scrolls up is not pulled back by what arrives in that moment", async () => {
  await e.do("pulled", "session.create", { title: "Pulled" });
  const say = (n, text) => Promise.all(Array.from({ length: n }, (_, i) => e.do("pulled", "message.submit", { content: `${text} ${i}` })));
  await say(70, "early");
  const page = await at(b, e, "#/s/pulled");
  await rests(page);
  for (let i = 0; i < 5; i++) {
    // What is read is held until the moment after the scroll, before the page is told of it.
    await page.evaluate(() => {
      const read = window.fetch;
      window.fetch = async (...args) => {
        const r = await read(...args);
        if (!/\/events\?/.test(args[0])) return r;
        window.fetch = read;
        const text = await r.text();
        await new Promise((go) => { window.arrive = go; });
        return new Response(text);
      };
    });
    await say(4, "late " + i);
    await page.waitForFunction(() => window.arrive);
    const rows = await page.locator(".ev").count();
    await page.evaluate(() => requestAnimationFrame(() => {
      document.querySelector(".scroller").scrollTop -= 300;
      window.arrive(); window.arrive = null;
    }));
    await page.waitForFunction((n) => document.querySelectorAll(".ev").length > n, rows);
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const left = await page.locator(".scroller").evaluate((s) => s.scrollHeight - s.scrollTop - s.clientHeight);
    assert.ok(left >= 250, `it was pulled to ${left} pixels from the end`);
    await page.locator(".scroller").evaluate((s) => { s.scrollTop = s.scrollHeight; });
    await rests(page);
  }
  // At the end again, it follows again, and a small step up is enough to stay.
  await say(1, "the end");
  await page.locator(".ev", { hasText: "the end 0" }).waitFor();
  await rests(page);
  await page.locator(".scroller").evaluate((s) => { s.scrollTop -= 20; });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await say(3, "after");
  await page.locator(".ev", { hasText: "after 2" }).waitFor();
  const left = await page.locator(".scroller").evaluate((s) => s.scrollHeight - s.scrollTop - s.clientHeight);
  assert.ok(left > 20, "a small step up is undone");
  quiet(page);
  await page.context().close();
});

test("a deleted session leaves the list, the page of it and the inbox", async () => {
  const r = await Runner.create(e, "doomed", { title: "Not for long" });
  await r.request({ prompt: "Ask." });
  await r.round();
  await r.answer("", [{ id: "g", name: "run_command", arguments: "{}" }]);
  await r.do("tool.park", { tool_call_id: "g", question: "Run it?", request: { tool_name: "run_command", permission_type: "execute_command", resource: "true" } });
  await e.do("stays", "session.create", { title: "Here to stay" });
  const list = await at(b, e, "#/inbox"), page = await at(b, e, "#/s/doomed");
  await list.locator(".card", { hasText: "Not for long" }).waitFor();
  await list.locator(".side .row", { hasText: "Here to stay" }).waitFor();
  const birth = (await e.get("sessions/doomed/state")).birth;
  await e.do("doomed", "session.delete", { birth });
  await list.locator(".side .row", { hasText: "Not for long" }).waitFor({ state: "detached" }); // with the next comparison of the views with the log
  await list.locator(".card", { hasText: "Not for long" }).waitFor({ state: "detached" });
  await page.getByText("There is no session").waitFor();
  assert.equal(await list.locator(".side .row", { hasText: "Here to stay" }).count(), 1, "others have gone as well");
  quiet(page); quiet(list);
  await page.context().close();
  await list.context().close();
});

test("a session that cannot be read on is shown as stuck, with the reason", async () => {
  await e.do("poison", "session.create", { title: "Poisoned" });
  await e.until("sessions/list?text=Poisoned", (r) => r.items.length);
  const page = await at(b, e, "#/");
  await publish(e.ports[0], "agent.log.poison.note.appended", "this is <b>no</b> event");
  const line = page.locator(".main .line", { hasText: "Poisoned" });
  await line.getByText("stuck at event 2").waitFor();
  await line.getByText("malformed").waitFor();
  await page.locator(".side .row", { hasText: "Poisoned" }).getByText("stuck").waitFor();
  await page.getByLabel("Status").selectOption("stuck");
  await page.waitForFunction(() => document.querySelectorAll(".side .row").length === 1);
  await page.locator(".lamp.up", { hasText: "live" }).waitFor(); // one stuck session makes no views late
  await shot(page, "stuck");
  await line.click();
  await page.locator(".progress").getByText("stuck at event 2").waitFor();
  await page.locator(".ev", { hasText: "session created" }).waitFor(); // what can be read, and what cannot
  await page.locator(".ev", { hasText: "these bytes are no event" }).getByText("this is <b>no</b> event").waitFor();
  await page.locator(".badge.bad").waitFor();
  assert.equal(await page.locator(".composer:visible, .actions button").count(), 0, "it offers what would be refused");
  await shot(page, "stuck-session");
  quiet(page);
  await page.context().close();
});

