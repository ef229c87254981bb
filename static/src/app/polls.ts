/** What asks for itself again and again, until it is refused. */
import htmx from "htmx.org";

/** Refusals that pass by themselves: asked again, the answer may be another. */
const PASSING: readonly number[] = [408, 429];

/** Whether this part of a page asks for itself on a clock, by htmx. */
export function isPoll(part: Element): boolean {
  return part.getAttribute("hx-trigger")?.includes("every ") ?? false;
}

/**
 * Leave a refused part as it is, with the reason on it, and ask no more.
 *
 * A copy takes its place: htmx asks for what is in the document alone. False where asking again may help.
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
