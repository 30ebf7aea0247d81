// Confirmations. The dialog element keeps the focus inside and gives it back.

import { h, show, add, content } from "./dom.js";

/** busy runs f while the button can not be pressed again, and says what failed. */
export async function busy(button, place, f) {
  if (button.disabled) return false;
  button.disabled = true;
  button.setAttribute("aria-busy", "true");
  show(place);
  try {
    await f();
    return true;
  } catch (e) {
    add(place, h("span", { class: "bad" }, content(say(e))));
    return false;
  } finally {
    button.disabled = false;
    button.removeAttribute("aria-busy");
  }
}

const plain = {
  unauthorized: "This page may not act: open it by the address that culm page prints.",
  unreachable: "The server cannot be reached. Nothing is known to have happened; try again.",
  already_decided: "Somebody else has decided already.",
  no_pending_question: "It no longer waits: somebody was faster, or the run has ended.",
  generation_changed: "It has changed since this was shown. Look again before you decide.",
};

/** say is an error in a sentence. */
export function say(e) {
  if (plain[e.code]) return plain[e.code];
  return e.code && e.code !== "unknown" ? `${e.message} (${e.code})` : e.message || String(e);
}

/** ask shows {title, body, yes, tone, act}: act is carried out on yes and the
 * dialog closes when it succeeded. Without act there is nothing but to close it. */
export function ask({ title, body = [], yes = "OK", tone = "", act }) {
  const dialog = document.getElementById("dialog");
  const error = h("p", { class: "error", role: "alert" });
  const go = h("button", { type: "submit", class: "primary " + tone }, yes);
  const form = h("form", { method: "dialog", onsubmit: async (e) => {
    e.preventDefault();
    if (!act || await busy(go, error, act)) dialog.close();
  } },
  h("h2", { id: "dialog-title" }, title), body, error,
  h("div", { class: "buttons" }, act ? h("button", { type: "button", onclick: () => dialog.close() }, "Back") : "", go));
  show(dialog, form);
  dialog.showModal();
}
