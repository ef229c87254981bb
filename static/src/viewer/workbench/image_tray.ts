/** The tray: all images of the case with their pictures, the one on screen marked. */

import { required } from "../../dom/elements";
import { call } from "../lib/http";

export class ImageTray {
  private items: HTMLAnchorElement[] = [];
  private currentPath = "";
  private pendingPath: string | null = null;
  private toggle: HTMLElement | null = null;

  /** `open` gets the address of an image that was chosen. */
  constructor(
    readonly host: HTMLElement,
    private readonly open: (url: string) => void,
  ) {
    host.addEventListener("click", (event) => this.choose(event));
  }

  async load(url: string): Promise<void> {
    const note = required(this.host, "[data-tray-note]");
    try {
      const response = await call(url, { headers: { Accept: "text/html" } });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      required(this.host, "[data-tray-images]").replaceChildren(...page.body.childNodes);
      note.hidden = true;
    } catch {
      note.textContent = "The images could not be listed. Reload the page.";
      return;
    }
    this.items = [...this.host.querySelectorAll<HTMLAnchorElement>("[data-tray-image]")];
    this.mark();
    this.reveal();
  }

  /** Mark the image of this path in the tray and on its toggle button. */
  setCurrent(path: string, toggle: HTMLElement): void {
    this.currentPath = path;
    this.toggle = toggle;
    this.mark();
  }

  /** The image that is being opened; null if none is. */
  setPending(url: string | null): void {
    this.pendingPath = url === null ? null : new URL(url, location.href).pathname;
    this.mark();
  }

  /** Address of the image after the one on screen or being opened, or of the one before. */
  neighbour(by: 1 | -1): string | null {
    const at = this.indexOf(this.pendingPath ?? this.currentPath);
    return at < 0 ? null : (this.items[at + by]?.href ?? null);
  }

  /** The number of regions of an image, as the page of the image knows it. */
  showCount(id: string, count: number): void {
    const host = this.items.find((item) => item.dataset.trayImage === id)?.querySelector("[data-tray-count=region]");
    if (host) host.textContent = regionsText(count);
  }

  get scrollPosition(): number {
    return this.scroller.scrollTop;
  }

  set scrollPosition(top: number) {
    this.scroller.scrollTop = top;
  }

  /** Scroll to the image on screen. */
  reveal(): void {
    this.items[this.indexOf(this.currentPath)]?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  private get scroller(): HTMLElement {
    return required(this.host, "[data-tray-images]");
  }

  private indexOf(path: string): number {
    return this.items.findIndex((item) => item.pathname === path);
  }

  private mark(): void {
    for (const item of this.items) {
      const isCurrent = item.pathname === this.currentPath;
      if (isCurrent) item.setAttribute("aria-current", "page");
      else item.removeAttribute("aria-current");
      item.toggleAttribute("data-pending", item.pathname === this.pendingPath);
    }
    const at = this.indexOf(this.currentPath);
    if (!this.toggle || at < 0) return;
    const text = `${at + 1} / ${this.items.length}`;
    required(this.toggle, "[data-tray-position]").textContent = text;
    this.toggle.setAttribute("aria-label", `Images of this case: ${text}`);
  }

  /** With Ctrl, Shift or the middle button a link opens as the browser opens it. */
  private choose(event: MouseEvent): void {
    const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>("[data-tray-image]") : null;
    if (!link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    if (event.detail > 0) link.blur(); // by the mouse: the keys belong to the image
    if (link.pathname !== (this.pendingPath ?? this.currentPath)) this.open(link.href);
  }
}

/** Follows the description of an image; empty if it has no regions. */
export function regionsText(count: number): string {
  if (!count) return "";
  return ` · ${count.toLocaleString("en")} ${count === 1 ? "region" : "regions"}`;
}
