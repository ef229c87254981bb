/**
 * The list of hits, `[data-hits]`: J and K move between hits, L and U press their marks, W opens the explanation. A
 * mark redraws the list and keeps the focus. After returning from a hit or its explanation, the focus is on that hit
 * and the list is scrolled as before.
 */
import { isTyping } from "../dom/focus";

const STORAGE_KEY = "tessera.hit";
const MARK_KEYS: Readonly<Record<string, string>> = { l: "alike", u: "unlike" };

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
    const isHandled = key === "j" ? go(1) : key === "k" ? go(-1) : key === "w" ? openExplanation() : mark(MARK_KEYS[key]);
    if (isHandled) event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const title = cardOf(link)?.querySelector(".card__link");
    if (title) storePlace({ page: location.href, id: title.id, top: scrollY });
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    const isAnswer = (event.target as HTMLElement).id === "similar";
    if (isAnswer && place >= 0 && document.activeElement === document.body) focusAt(place);
  });
}

/** Close the filters where they would push the hits below the window; a click opens them. */
export function foldFilters(root: ParentNode): void {
  if (!matchMedia("(max-width: 900px)").matches) return;
  for (const filters of root.querySelectorAll<HTMLDetailsElement>("[data-facets]")) filters.open = false;
}

/** Focus the hit that was opened last, if the browser returned to the list. */
export function restoreHit(): void {
  const [entry] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
  const left = storedPlace();
  const isBack = entry?.type === "back_forward" || document.referrer.includes("/explanation/");
  if (!left || !isBack || left.page.split("#")[0] !== location.href.split("#")[0]) return;
  document.getElementById(left.id)?.focus({ preventScroll: true });
  scrollTo({ top: left.top, behavior: "instant" });
}

interface Place {
  readonly page: string;
  readonly id: string;
  readonly top: number;
}

function storePlace(left: Place): void {
  sessionStorage.setItem(STORAGE_KEY, JSON.stringify(left));
}

function storedPlace(): Place | null {
  try {
    return JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? "null") as Place | null;
  } catch {
    return null; // written by an earlier version
  }
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

function openExplanation(): boolean {
  const link = cardOf(document.activeElement)?.querySelector<HTMLElement>("[data-explanation]");
  link?.click();
  return Boolean(link);
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
