/** Parts of a page that poll until the server refuses. */
import htmx from "htmx.org";

/** Temporary refusals: a later request may succeed. */
const TRANSIENT: readonly number[] = [408, 429];

/** True if htmx refreshes this part of a page on a timer. */
export function isPoll(part: Element): boolean {
  return part.getAttribute("hx-trigger")?.includes("every ") ?? false;
}

/**
 * Stop polling a refused part and show the reason on it. A copy replaces the part, because htmx only fetches what is in
 * the document. False for other parts, and for temporary refusals.
 */
export function stopRefusedPoll(part: Element, status: number, reason: string): boolean {
  if (!isPoll(part) || status < 400 || status >= 500 || TRANSIENT.includes(status)) return false;
  const frozen = part.cloneNode(true) as Element;
  for (const { name } of [...frozen.attributes]) if (name.startsWith("hx-")) frozen.removeAttribute(name);
  frozen.removeAttribute("aria-busy");
  frozen.querySelectorAll("progress, .progress-line").forEach((moving) => moving.remove());
  const alert = document.createElement("div");
  alert.className = "message message--error";
  alert.setAttribute("role", "alert");
  const text = document.createElement("p");
  text.textContent = reason;
  alert.append(text);
  (frozen.querySelector(".panel__body") ?? frozen).prepend(alert);
  part.replaceWith(frozen);
  htmx.process(frozen);
  return true;
}
