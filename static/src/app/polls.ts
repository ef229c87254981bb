/** Parts of a page that fetch themselves again and again, until the server refuses. */
import htmx from "htmx.org";

/** Refusals that pass by themselves: a later request may succeed. */
const PASSING: readonly number[] = [408, 429];

/** Whether htmx fetches this part of a page again and again on a timer. */
export function isPoll(part: Element): boolean {
  return part.getAttribute("hx-trigger")?.includes("every ") ?? false;
}

/**
 * Leave a refused part as it is, with the reason on it, and fetch it no more.
 *
 * A copy takes its place: htmx only fetches what is in the document. False for other parts, and where trying again may help.
 */
export function stopRefusedPoll(part: Element, status: number, reason: string): boolean {
  if (!isPoll(part) || status < 400 || status >= 500 || PASSING.includes(status)) return false;
  const still = part.cloneNode(true) as Element;
  for (const { name } of [...still.attributes]) if (name.startsWith("hx-")) still.removeAttribute(name);
  still.removeAttribute("aria-busy");
  still.querySelectorAll("progress, .progress-line").forEach((moving) => moving.remove());
  const said = document.createElement("div");
  said.className = "message message--error";
  said.setAttribute("role", "alert");
  const text = document.createElement("p");
  text.textContent = reason;
  said.append(text);
  (still.querySelector(".panel__body") ?? still).prepend(said);
  part.replaceWith(still);
  htmx.process(still);
  return true;
}
