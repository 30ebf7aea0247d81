// The API of this server. The token names who acts; it comes in the fragment of
// the page's first URL, which no server sees, and stays in this tab.

const key = "culm-token";

/** takeToken moves the token out of the address bar. */
export function takeToken() {
  const m = /^#token=([\x21-\x7e]+)$/.exec(location.hash);
  if (!m) return;
  setToken(decoded(m[1]));
  history.replaceState(null, "", location.pathname + "#/");
}

/** decoded is a part of an address without its escapes, or as it stands where
 * a % begins none: an address may come from anywhere. */
export function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

export const token = () => sessionStorage.getItem(key) || "";
export function setToken(t) { t ? sessionStorage.setItem(key, t) : sessionStorage.removeItem(key); }

export function authorize(headers = {}) {
  const t = token();
  return t ? { ...headers, Authorization: "Bearer " + t } : headers;
}

/** Failure is an answer that says no, or none at all (code "unreachable"). */
export class Failure extends Error {
  constructor(code, message, details, status) {
    super(message);
    this.code = code; this.details = details || {}; this.status = status;
  }
}

async function call(path, init) {
  let r, body;
  try {
    r = await fetch("/api/v1/" + path, { ...init, headers: authorize(init?.headers), credentials: "omit", cache: "no-store" });
    body = await r.json();
  } catch (e) {
    if (e.name === "AbortError") throw e;
    throw new Failure("unreachable", "The server cannot be reached.", {}, 0);
  }
  if (body && body.ok) return body;
  const e = body?.error || {};
  throw new Failure(e.code || "unknown", e.message || "The server answered " + r.status + ".", e.details, r.status);
}

const json = { "Content-Type": "application/json" };

export const get = (path, signal) => call(path, { signal });
export const query = (name, request = {}, signal) =>
  call(name.replace(".", "/"), { method: "POST", headers: json, body: JSON.stringify(request), signal });

const enc = encodeURIComponent;
export const session = (id, what, signal) => get(`sessions/${enc(id)}/${what}`, signal);

/** command gives a command; one that finds nobody at home is given again under
 * the same id, so that it is carried out at most once. */
export async function command(sessionId, name, data = {}) {
  const id = newId();
  for (let attempt = 1; ; attempt++) {
    try {
      return await call(`commands/${enc(sessionId)}/${enc(name)}`, {
        method: "POST", headers: { ...json, "Culm-Command-Id": id }, body: JSON.stringify(data),
      });
    } catch (e) {
      if (attempt >= 4 || (e.code !== "unavailable" && e.code !== "unreachable")) throw e;
      await new Promise((done) => setTimeout(done, 300 * attempt));
    }
  }
}

function newId() {
  const b = crypto.getRandomValues(new Uint8Array(16));
  return "page-" + Array.from(b, (x) => x.toString(16).padStart(2, "0")).join("");
}
