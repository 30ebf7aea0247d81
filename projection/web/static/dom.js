// Building blocks. Everything shown goes through text nodes: no data ever
// becomes markup, and the content security policy forbids the ways in which it
// could.

/** h makes an element: h("p", {class: "x", onclick: f}, "text", child, [more]). */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

const svgSpace = "http://www.w3.org/2000/svg";

/** s makes an element of SVG. */
export function s(tag, props, ...children) {
  return fill(document.createElementNS(svgSpace, tag), props, children);
}

function fill(el, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) el.addEventListener(name.slice(2), value);
    else if (name === "vars") for (const [k, v] of Object.entries(value)) el.style.setProperty(k, v);
    else if (name === "value" && "value" in el) el.value = value;
    else el.setAttribute(name, value === true ? "" : String(value));
  }
  add(el, children);
  return el;
}

/** add appends nodes and texts; nothing for null, undefined, false and "". */
export function add(el, children) {
  for (const c of [children].flat(Infinity)) {
    if (c === null || c === undefined || c === false || c === "") continue;
    el.append(c instanceof Node ? c : document.createTextNode(String(c)));
  }
  return el;
}

/** show replaces the content of an element. */
export function show(el, ...children) {
  el.replaceChildren();
  return add(el, children);
}

/** after calls f once, ms after the last of several calls, at the latest 4·ms after the first. */
export function after(ms, f) {
  let timer = 0, first = 0;
  return (...args) => {
    const now = performance.now();
    if (!timer) first = now;
    clearTimeout(timer);
    timer = setTimeout(() => { timer = 0; f(...args); }, Math.max(0, Math.min(ms, first + 4 * ms - now)));
  };
}

/** toast says something in passing; kind is "", "good" or "bad". */
export function toast(text, kind = "") {
  const el = h("div", { class: "toast " + kind }, content(text));
  document.getElementById("toasts").append(el);
  setTimeout(() => el.remove(), kind === "bad" ? 10000 : 2500);
}

// --- text from outside ------------------------------------------------------

// Characters that show nothing, move the cursor or turn text around. The two
// joiners that scripts and emoji need are left alone.
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff\ud800-\udfff]|[\u{e0000}-\u{e0fff}]/gu;

/** nameOf spells a character that cannot be shown. */
function nameOf(c) {
  return "U+" + c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
}

/** visible is text with every hidden character spelled out, as plain text. */
export function visible(text) {
  return String(text).replace(hidden, nameOf);
}

const maxMarks = 500; // marked one by one; more become plain text

/** content is text from outside as nodes, its hidden characters marked. */
export function content(text) {
  text = String(text ?? "");
  const out = [];
  let at = 0, marks = 0;
  for (const m of text.matchAll(hidden)) {
    if (++marks > maxMarks) break;
    if (m.index > at) out.push(text.slice(at, m.index));
    out.push(h("span", { class: "ctl", title: "a character that shows nothing by itself" }, nameOf(m[0])));
    at = m.index + m[0].length;
  }
  out.push(marks > maxMarks ? visible(text.slice(at)) : text.slice(at));
  return h("bdi", { dir: "auto" }, out);
}

/** line is the beginning of a text on one line. */
export function line(text, limit = 160) {
  const cut = clip(String(text ?? ""), limit + 40).replace(/\s+/g, " ").trim();
  return content(clip(cut, limit));
}

/** clip shortens to at most n UTF-16 units without splitting a pair. */
export function clip(text, n) {
  if (text.length <= n) return text;
  const c = text.charCodeAt(n - 2);
  return text.slice(0, c >= 0xd800 && c < 0xdc00 ? n - 2 : n - 1) + "…";
}

const shortText = 3000, shortLines = 40, piece = 16 << 10;

/** block is text of any length: its beginning, and the rest when asked for. */
export function block(text, cls = "") {
  text = String(text ?? "");
  const pre = h("div", { class: "text " + cls, dir: "auto" });
  const cut = cutAt(text);
  if (cut >= text.length) return add(pre, content(text));
  const rest = h("button", { type: "button", class: "link more", onclick: () => { show(pre, pieces(text)); pre.classList.add("long"); } },
    `show all (${bytes(text.length)})`);
  return add(pre, [content(text.slice(0, cut)), h("span", { class: "cut" }, "…"), rest]);
}

function cutAt(text) {
  let at = -1;
  for (let n = 0; n < shortLines; n++) {
    at = text.indexOf("\n", at + 1);
    if (at < 0) { at = text.length; break; }
  }
  at = Math.min(at, shortText);
  return at + 400 > text.length ? text.length : at; // not worth a button
}

/** pieces splits long text, so that only what is in sight is laid out. */
function pieces(text) {
  const out = [];
  for (let at = 0; at < text.length;) {
    let end = Math.min(text.length, at + piece);
    const nl = text.lastIndexOf("\n", end);
    if (end < text.length && nl > at) end = nl + 1;
    else if (end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end--;
    out.push(h("div", { class: "piece" }, content(text.slice(at, end).replace(/\n$/, ""))));
    at = end;
  }
  return out;
}

/** bytes spells an amount of text. */
export function bytes(n) {
  if (n < 1000) return n + " characters";
  if (n < 1e6) return Math.round(n / 1000) + " k characters";
  return (n / 1e6).toFixed(1) + " M characters";
}

/** pretty is JSON indented, or the text as it is where it is none. Numbers are
 * kept digit by digit, so only white space differs from what was given. */
export function pretty(text) {
  if (text.length > 200000) return text;
  try { JSON.parse(text); } catch { return text; }
  let out = "", depth = 0, quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      out += c;
      if (c === "\\") out += text[++i];
      else if (c === '"') quoted = false;
    } else if (c === '"') { quoted = true; out += c; }
    else if (/\s/.test(c)) continue;
    else if (c === "{" || c === "[") {
      let j = i + 1;
      while (/\s/.test(text[j])) j++;
      if (text[j] === "}" || text[j] === "]") { out += c + text[j]; i = j; }
      else out += c + "\n" + "  ".repeat(++depth);
    } else if (c === "}" || c === "]") out += "\n" + "  ".repeat(--depth) + c;
    else if (c === ",") out += ",\n" + "  ".repeat(depth);
    else if (c === ":") out += ": ";
    else out += c;
  }
  return out;
}
