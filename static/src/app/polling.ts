/** Parts of a page that fetch themselves again and again, until the server refuses. */
import htmx from "htmx.org";

/** Refusals that pass by themselves: a later request may succeed. */
const TRANSIENT: readonly number[] = [408, 429];

/** True if htmx refreshes this part of a page on a timer. */
export function isPoll(part: Element): boolean {
  return part.getAttribute("hx-trigger")?.includes("every ") ?? false;
}

/**
 * Leave a refused part as it is, with the reason on it, and fetch it no more.
 *
 * A copy takes its place: htmx only fetches what is in the document. False for other parts, and where trying again may help.
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
