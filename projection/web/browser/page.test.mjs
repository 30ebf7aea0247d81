// The page in a real browser, against an engine of its own.

import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { Engine, Runner, browser, fits, open, patience, quiet, rests, shot } from "./harness.mjs";

let e, b;

before(async () => { e = await Engine.start(); b = await browser(); });
after(async () => { await b?.close(); await e?.end(); });

const see = (page, text) => page.getByText(text).first().waitFor();

test("an empty page says what to do, and a session is made", async () => {
  const page = await open(b, e.page);
  await see(page, "Nothing has happened here yet.");
  assert.equal(new URL(page.url()).hash, "#/", "the token is still in the address bar");
  assert.equal(await page.evaluate(() => sessionStorage.getItem("culm-token")), e.token);
  await page.getByRole("button", { name: "New session" }).last().click();
  await page.getByLabel(/^Name/).fill("first");
  await page.getByLabel("Title").fill("The first one");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "The first one" }).waitFor();
  await see(page, "verified to 1");
  quiet(page);
  await page.context().close();
});

test("progress is live", async () => {
  const page = await open(b, e.page);
  const r = await Runner.create(e, "loop", { title: "Five drafts" });
  await r.request({ prompt: "Write a draft.", loop: { max_iterations: 5, max_total_rounds: 20 } });
  await r.round();
  const row = page.locator(".side .row", { hasText: "Five drafts" });
  await row.getByText("iteration 1 of 5, round 1 of 20").waitFor();
  await row.click();
  await page.locator(".progress").getByText("iteration 1 of 5, round 1 of 20").waitFor();
  await r.answer("Reading first.", [{ id: "c1", name: "read_file", arguments: '{"path":"draft.md"}' }]);
  await r.tool("c1", "# Draft\nOne line.");
  await see(page, "Reading first.");
  await page.locator(".ev", { hasText: "read_file succeeded" }).waitFor();
  await r.round();
  await r.answer("Draft one.");
  await r.round();
  const began = Date.now();
  await page.locator(".progress").getByText("iteration 2 of 5, round 3 of 20").waitFor();
  console.log("# progress, ms:", Date.now() - began);
  await row.getByText("iteration 2 of 5, round 3 of 20").waitFor();
  await shot(page, "live");
  // stop it, with a confirmation
  await page.getByRole("button", { name: "Stop loop" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Stop loop" }).click();
  await page.locator(".progress").getByText("stop requested").waitFor();
  await r.answer("Draft two.");
  await r.finish();
  await page.locator(".ev", { hasText: "run cancelled" }).or(page.locator(".ev", { hasText: "run completed" })).first().waitFor();
  quiet(page);
  await page.context().close();
});

test("a call is approved from the inbox, and its run is seen", async () => {
  const page = await open(b, e.page);
  await page.goto(e.url + "#/inbox");
  await see(page, "Nothing waits for you.");
  await e.do("draft", "session.create", { title: "Improve the draft" });
  await e.do("draft", "run.request", { prompt: "Improve the text: the next draft, please.", loop: { max_iterations: 3, max_total_rounds: 30, on_park: "pause" } });
  const card = page.locator(".card", { hasText: "/texts/why-logs/draft.md" });
  await card.getByText("exactly what would run").waitFor();
  assert.match(await card.locator(".would").innerText(), /A log only grows at its end/);
  await shot(page, "inbox");
  await page.locator(".nav").getByText("1").waitFor();
  await page.waitForFunction(() => document.title.startsWith("(1) "));
  await card.getByLabel("Note").fill("looks right");
  await card.getByRole("button", { name: "Allow once" }).click();
  await page.locator(".card.done", { hasText: "allowed once" }).getByText("succeeded").waitFor();
  const decided = (await e.until("approvals/list?status=decided&session=draft", (r) => r.items.length)).items.at(-1);
  assert.equal(decided.decided_by, "ada");
  assert.equal(decided.note, "looks right");
  // the scope of a decision: the rest of this session is not asked about
  const next = page.locator(".card:not(.done)", { hasText: "draft.md" }).first();
  await next.waitFor();
  await next.getByLabel("Scope").selectOption("session");
  await next.getByRole("button", { name: "Allow for this session" }).click();
  await e.until("approvals/list?status=decided&session=draft", (r) => r.items.some((i) => i.decision === "allow_session"));
  await shot(page, "inbox-decided");
  quiet(page);
  await page.context().close();
});

test("an address with a stray % is shown as what it is", async () => {
  const page = await open(b, e.url + "#token=100%-not-a-token-that-anybody-has");
  await page.locator(".me", { hasText: "read only" }).waitFor();
  await page.goto(e.url + "#/s/100%");
  await page.locator(".error", { hasText: "is no valid token" }).waitFor();
  await page.goto(e.url + "#/sessions");
  await page.locator(".side .row").first().waitFor();
  quiet(page);
  await page.context().close();
});

test("the state as it was is seen by scrubbing, and shared as an address", async () => {
  const page = await open(b, e.page);
  await page.goto(e.url + "#/s/loop?at=4");
  await page.locator(".asof").getByText("As it was after event 4").waitFor();
  assert.equal(await page.locator(".ev.here").getAttribute("data-seq"), "4");
  await page.locator('.statepane dd', { hasText: "live" }).first().waitFor();
  await page.getByLabel("Sequence").focus();
  await page.keyboard.press("ArrowLeft");
  await page.locator(".asof").getByText("As it was after event 3").waitFor();
  await page.getByRole("button", { name: "back to now" }).click();
  await page.locator(".asof").waitFor({ state: "detached" });
  await page.getByRole("tab", { name: "Usage" }).click();
  await page.locator(".chart").first().waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByText("export").click()]);
  assert.equal(download.suggestedFilename(), "loop.jsonl");
  quiet(page);
  await page.context().close();
});

test("hostile content is shown harmlessly", async () => {
  const page = await open(b, e.page);
  const evil = '<script>alert(1)</script><img src=x onerror=alert(2)><a href="javascript:alert(3)">x</a>';
  const rtl = "safe \u202Egnp.exe\u2066 and \u200Bnothing \u0000 NUL \u001b[31m red \ud800 alone \u{E0041}";
  const r = await Runner.create(e, "hostile", { title: evil + " \u202Etitle", workspace: "/tmp/" + evil, metadata: { [evil]: rtl.replace("\ud800", "") } });
  await r.request({ prompt: evil });
  await r.round();
  await r.answer(evil + rtl.replace("\ud800", ""), [
    { id: "big", name: "run<b>command", arguments: '{"command":"' + "x".repeat(300000) + '"}' },
    { id: "sur", name: "surrogate", arguments: '"\\ud800 lone, \\u202e turned, \\u0000 nothing"' },
    { id: "gate", name: "write_file", arguments: '{"path":"\u202Efdp.sh","text":"<script>alert(4)</script>"}' },
  ]);
  await r.do("tool.start", { tool_call_id: "big" });
  await r.do("tool.finish", { tool_call_id: "big", success: true, content: "y".repeat(900000) + "\n" + evil });
  await r.tool("sur", rtl.replace("\ud800", ""));
  await r.do("tool.park", { tool_call_id: "gate", question: evil, request: { tool_name: "write_file", permission_type: "write_file", resource: "\u202Efdp.sh", summary: evil } });
  await page.goto(e.url + "#/s/hostile");
  await page.locator(".ev", { hasText: "waits for approval" }).waitFor();
  const said = page.locator(".ev .say.model");
  const text = await said.innerText();
  for (const part of ["<script>alert(1)</script>", "U+202E", "U+2066", "U+200B", "U+0000", "U+001B[31m", "U+E0041"]) assert.ok(text.includes(part), `${part} is not shown in ${text}`);
  assert.ok(!/[\u202A-\u202E\u2066-\u2069\u0000]/.test(await page.locator("body").innerText()), "a hidden character is in the page");
  const fold = page.locator(".ev", { hasText: "run<b>command succeeded" }).locator("details").first();
  await fold.locator("summary").click();
  const more = fold.getByRole("button", { name: /show all/ });
  await more.waitFor();
  assert.ok((await fold.innerText()).length < 6000, "huge content is not cut");
  const began = Date.now();
  await more.click();
  await fold.locator(".piece").last().waitFor({ state: "attached" });
  await page.evaluate(() => new Promise(requestAnimationFrame));
  console.log("# a megabyte, ms:", Date.now() - began);
  assert.ok((await fold.locator(".piece").count()) > 20);
  const card = page.locator(".card", { hasText: "write_file" });
  await card.getByText("exactly what would run").waitFor();
  assert.ok((await card.innerText()).includes("U+202Efdp.sh"), "the name is turned around");
  await shot(page, "hostile");
  await fits(page);
  for (const view of ["usage/get?by=session&session=hostile", "messages/search?text=alert"]) await e.until(view, (r) => r.items.length);
  for (const [to, shown] of [["#/", ".part .line"], ["#/inbox", ".card .would"], ["#/search?q=alert", ".found .snippet"], ["#/usage", "td"], ["#/s/" + encodeURIComponent("<img src=x>"), ".error"], ["#/s/hostile", ".ev .say"]]) {
    await page.goto(e.url + to);
    await page.locator(".main " + shown, { hasText: to === "#/usage" ? "hostile" : /<script>|<img|alert/ }).first().waitFor();
    assert.equal(await page.locator("script:not([src]), img[src=x], a[href^=javascript]").count(), 0, `${to} made markup of what it shows`);
  }
  quiet(page);
  await page.context().close();
});

test("the content security policy is in force", async () => {
  const page = await open(b, e.page);
  const got = await page.evaluate(async () => {
    const out = {};
    const s = document.createElement("script");
    try { s.textContent = "window.ran = true"; document.head.append(s); } catch { /* trusted types */ }
    out.inline = window.ran === true;
    try { document.createElement("p").innerHTML = "<b>x</b>"; out.markup = true; } catch { out.markup = false; }
    const i = document.createElement("img");
    try { i.setAttribute("onerror", "window.ran = true"); } catch { /* trusted types */ }
    const failed = new Promise((done) => { i.addEventListener("error", done); });
    i.src = "/none"; document.body.append(i);
    await failed;
    out.handler = window.ran === true;
    out.outside = await fetch("http://127.0.0.2:9/").then(() => true, () => false);
    const st = document.createElement("style");
    st.textContent = "body { --leak: 1 }"; document.head.append(st);
    out.style = getComputedStyle(document.body).getPropertyValue("--leak") === "1";
    return out;
  });
  assert.deepEqual(got, { inline: false, markup: false, handler: false, outside: false, style: false });
  await page.context().close();
});

test("it works without a mouse", async () => {
  const r = await Runner.create(e, "keys", { title: "By keyboard" });
  await r.request({ prompt: "Delete it." });
  await r.round();
  await r.answer("", [{ id: "rm", name: "run_command", arguments: '{"command":"rm -r old"}' }]);
  await r.do("tool.park", { tool_call_id: "rm", question: "Delete it?", request: { tool_name: "run_command", permission_type: "execute_command", resource: "rm -r old" } });
  const page = await open(b, e.page);
  const focus = () => page.evaluate(() => document.activeElement.innerText || document.activeElement.getAttribute("aria-label") || document.activeElement.tagName);
  const tabTo = async (what) => {
    for (let i = 0; i < 80; i++) {
      if (what.test(await focus())) return;
      await page.keyboard.press("Tab");
    }
    assert.fail(`Tab does not reach ${what}`);
  };
  for (const end = Date.now() + patience; new URL(page.url()).hash !== "#/inbox" && Date.now() < end;) { // g waits a moment for i
    await page.keyboard.press("g");
    await page.keyboard.press("i");
  }
  const card = page.locator(".card", { hasText: "rm -r old" });
  await card.waitFor();
  await page.evaluate(() => [...document.querySelectorAll(".card")].find((c) => c.innerText.includes("rm -r old")).focus());
  await tabTo(/^Allow once$/);
  const ring = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(ring, "solid", "the focus is not seen");
  await page.keyboard.press("Enter");
  await page.locator(".card.done", { hasText: "run_command" }).first().waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("drafts");
  await page.keyboard.press("Enter");
  await page.waitForURL(/#\/search\?q=drafts/);
  await page.goto(e.url + "#/s/loop");
  await rests(page);
  await page.evaluate(() => document.querySelector(".scroller").focus());
  await page.keyboard.press("j");
  const first = await page.evaluate(() => document.activeElement.dataset.seq);
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  assert.equal(await page.evaluate(() => document.activeElement.dataset.seq), first);
  await page.keyboard.press("d");
  await page.locator(".details").first().waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("search all messages").waitFor();
  await page.keyboard.press("Escape");
  quiet(page);
  await page.context().close();
});

test("a phone, light and dark", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await open(b, e.page, { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true, colorScheme });
    for (const [to, ready] of [["#/", ".part"], ["#/sessions", ".row"], ["#/inbox", ".decided li"], ["#/s/loop", ".ev"], ["#/s/hostile", ".ev"], ["#/usage", ".chart"], ["#/search?q=alert", ".found li"]]) {
      await page.goto(e.url + to);
      await page.locator(ready).first().waitFor();
      const wide = await page.evaluate(() => [...document.querySelectorAll("main *, header *")].filter((x) => x.getBoundingClientRect().right > innerWidth + 1 && !x.closest(".scroll, .text, .fold summary, .row, [hidden]") && x.getBoundingClientRect().width > 0 && !x.closest(".title")).map((x) => x.className || x.tagName).slice(0, 4));
      assert.deepEqual(wide, [], `${to} is wider than a phone`);
      await shot(page, `phone-${colorScheme}-${to.replace(/\W+/g, "")}`);
    }
    const colours = await page.evaluate(() => { const c = getComputedStyle(document.body); return [c.color, c.backgroundColor]; });
    assert.ok(contrast(...colours) > 7, `text ${colours} has too little contrast`);
    quiet(page);
    await page.context().close();
  }
});

function contrast(a, b) {
  const l = (c) => { const [r, g, bl] = c.match(/[\d.]+/g).map((v) => { v /= 255; return v <= 0.04 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * bl; };
  const [x, y] = [l(a), l(b)].sort((p, q) => q - p);
  return (x + 0.05) / (y + 0.05);
}

test("without the token the page looks and does not touch", async () => {
  const page = await open(b, e.url);
  await page.locator(".me", { hasText: "read only" }).waitFor();
  await page.goto(e.url + "#/s/first");
  await page.locator(".ev").first().waitFor();
  assert.equal(await page.locator(".composer:visible, .actions button").count(), 0);
  quiet(page);
  await page.context().close();
});

test("the engine is killed and comes back", async () => {
  const page = await open(b, e.page);
  await page.goto(e.url + "#/s/first");
  await page.locator(".lamp.up").waitFor();
  await page.locator(".ev").first().waitFor();
  await e.kill();
  await page.locator(".banner:visible", { hasText: "Disconnected since" }).waitFor();
  await page.locator(".lamp.down").waitFor();
  await shot(page, "disconnected");
  await e.up();
  await e.do("first", "message.submit", { content: "after the restart" });
  await page.locator(".lamp.up").waitFor();
  await page.locator(".ev", { hasText: "after the restart" }).waitFor();
  await page.locator(".banner").waitFor({ state: "hidden" });
  await page.locator(".me", { hasText: "ada" }).waitFor();
  await page.getByPlaceholder("Ask for a run").fill("go on");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.locator(".ev", { hasText: "go on" }).waitFor();
  quiet(page);
  await page.context().close();
});
