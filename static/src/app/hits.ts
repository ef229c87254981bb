/**
 * The list of hits, `[data-hits]`: J and K go from one to the next, L and U press its marks. A mark
 * draws the list anew; the focus stays at its place. Back from a hit, it is on that hit again.
 */
import { isTyping } from "../dom/focus";

const KEPT = "tessera.hit";
const MARKS: Readonly<Record<string, string>> = { l: "alike", u: "unlike" };

let place = -1;

export function watchHits(): void {
  document.addEventListener("focusin", (event) => {
    const card = cardOf(event.target);
    if (card) place = cards().indexOf(card);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]") || !cards().length) return;
    const key = event.key.toLowerCase();
    const done = key === "j" ? go(1) : key === "k" ? go(-1) : mark(MARKS[key]);
    if (done) event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest(".card__link") : null;
    if (link && cardOf(link)) sessionStorage.setItem(KEPT, link.id);
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    const isAnswer = (event.target as HTMLElement).id === "similar";
    if (isAnswer && place >= 0 && document.activeElement === document.body) focusAt(place);
  });
}

/** Once the page stands: the hit that was opened last, where the browser came back to the list. */
export function restoreHit(): void {
  const [entry] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
  const id = sessionStorage.getItem(KEPT);
  if (!id || entry?.type !== "back_forward" || !cards().length) return;
  document.getElementById(id)?.focus();
}

function go(step: number): boolean {
  return focusAt(cardOf(document.activeElement) ? place + step : Math.max(place, 0));
}

function mark(word: string | undefined): boolean {
  const card = word ? cardOf(document.activeElement) : null;
  const button = card?.querySelector<HTMLButtonElement>(`[data-mark="${word}"]`);
  button?.click();
  return Boolean(button);
}

function focusAt(index: number): boolean {
  const all = cards();
  const card = all[Math.min(Math.max(index, 0), all.length - 1)];
  const link = card?.querySelector<HTMLElement>(".card__link");
  link?.focus();
  link?.scrollIntoView({ block: "nearest" });
  return Boolean(link);
}

function cards(): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>("[data-hits] > li")];
}

function cardOf(target: EventTarget | null): HTMLElement | null {
  return target instanceof Element ? target.closest<HTMLElement>("[data-hits] > li") : null;
}
