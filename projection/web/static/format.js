// Numbers and times as people read them.

const number = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (n) => number.format(n ?? 0);
export const short = (n) => (n < 10000 ? number.format(n ?? 0) : compact.format(n));
export const plural = (n, one, many = one + "s") => `${count(n)} ${n === 1 ? one : many}`;

/** when parses a time; null for none. */
export function when(t) {
  if (!t) return null;
  const d = new Date(t);
  return isNaN(d) || d.getFullYear() < 1980 ? null : d;
}

const two = (n) => String(n).padStart(2, "0");

export const clock = (d) => (d ? `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}` : "");
export const day = (d) => (d ? `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}` : "");
export const full = (d) => (d ? `${day(d)} ${clock(d)}` : "");

/** age is how long ago in the largest unit: "now", "12 s", "5 min", "3 h", "2 d". */
export function age(d, now = Date.now()) {
  if (!d) return "";
  const sec = Math.max(0, Math.round((now - d) / 1000));
  if (sec < 3) return "now";
  if (sec < 60) return sec + " s";
  if (sec < 3600) return Math.floor(sec / 60) + " min";
  if (sec < 48 * 3600) return Math.floor(sec / 3600) + " h";
  return Math.floor(sec / 86400) + " d";
}

export function elapsed(ms) {
  if (!ms) return "";
  if (ms < 1000) return ms + " ms";
  if (ms < 60000) return (ms / 1000).toFixed(ms < 10000 ? 1 : 0) + " s";
  return Math.floor(ms / 60000) + " min " + Math.round((ms % 60000) / 1000) + " s";
}

/** modelOf names a model as commands take it. */
export const modelOf = (m) => `${m.provider}/${m.model}`;

/** words turns a code into words: "budget_exhausted" -> "budget exhausted". */
export const words = (code) => String(code ?? "").replaceAll("_", " ");
