/** State of the tray: as it was left; initially open if the case has several images and the window is wide enough. */

const KEY = "tessera-tray";
/** The tray, two columns of tools, the panel and an image wider than any of them. */
const ROOM = "(min-width: 75rem)";

export class TrayState {
  private isOpen: boolean | null = readStored();

  /** Show the state on a page whose `data-image-count` is the number of images. */
  apply(root: HTMLElement): void {
    const isOpen = this.isOpen ?? (Number(root.dataset.imageCount) > 1 && matchMedia(ROOM).matches);
    root.dataset.trayState = isOpen ? "open" : "closed";
    root.querySelector("[data-tray-toggle]")?.setAttribute("aria-expanded", String(isOpen));
  }

  toggle(root: HTMLElement): void {
    this.isOpen = root.dataset.trayState !== "open";
    try {
      localStorage.setItem(KEY, this.isOpen ? "open" : "closed");
    } catch {
      // the browser stores nothing: it holds while the page is open
    }
    this.apply(root);
  }
}

function readStored(): boolean | null {
  try {
    const text = localStorage.getItem(KEY);
    return text === null ? null : text === "open";
  } catch {
    return null;
  }
}
