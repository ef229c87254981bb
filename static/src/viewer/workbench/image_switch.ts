/**
 * Switching between the images of a case in one page: another image's page is fetched and replaces the viewer, with its
 * own tools, regions, undo steps and presence, as if it had been loaded.
 */

import { required } from "../../dom/elements";
import type { ImageKeys } from "./key_bindings";
import { ImageTray } from "./image_tray";
import { TrayState } from "./tray_state";
import type { Parts } from "./parts";
import { makeParts, start } from "./start";

/** Changes that take longer to save stay in this browser, as they do when a page is left. */
const SAVE_TIMEOUT_MS = 2000;

export class ImageSwitch implements ImageKeys {
  private readonly tray: ImageTray;
  private readonly state = new TrayState();
  private leaving = new AbortController();
  private parts: Parts | null = null;
  /** Path of the image on screen. */
  private path = location.pathname;
  private request: AbortController | null = null;

  constructor(
    private root: HTMLElement,
    private readonly showFailure: (root: HTMLElement, error: unknown) => void,
  ) {
    this.tray = new ImageTray(required(root, "[data-tray]"), (url) => void this.open(url));
    addEventListener("popstate", () => this.followHistory());
    void this.tray.load(`${location.pathname}tray/`);
  }

  /** Start the viewer on the image of the page. */
  async show(): Promise<void> {
    const { root } = this;
    const leaving = new AbortController();
    this.leaving = leaving;
    this.connectTray();
    try {
      const parts = await makeParts(root, leaving.signal);
      this.parts = parts;
      const showCount = (): void => this.tray.showCount(parts.canvas.id, parts.store.total);
      for (const name of ["loaded", "added", "removed"] as const) parts.store.on(name, showCount);
      await start(parts, this);
    } catch (error) {
      if (!leaving.signal.aborted) this.showFailure(root, error);
    }
  }

  step(by: 1 | -1): void {
    const url = this.tray.neighbour(by);
    if (url) return void this.open(url);
    this.parts?.notice.show(by > 0 ? "This is the last image of the case." : "This is the first image of the case.");
  }

  toggleTray(): void {
    this.state.toggle(this.root);
  }

  private connectTray(): void {
    const { root } = this;
    this.tray.setCurrent(this.path, required(root, "[data-tray-toggle]"));
    required(root, "[data-tray-toggle]").addEventListener("click", () => this.toggleTray());
    this.state.apply(root);
  }

  /** Go to another image on Back and Forward, or to another view of this one. */
  private followHistory(): void {
    if (location.pathname !== this.path) return void this.open(location.href, true);
    this.request?.abort();
    this.tray.setPending(null);
  }

  /** Open an image in place of this one; the latest call wins. */
  private async open(url: string, isHistory = false): Promise<void> {
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    if (new URL(url, location.href).pathname === this.path) return this.tray.setPending(null); // it is on screen
    this.tray.setPending(url);
    this.root.setAttribute("aria-busy", "true");
    try {
      const [page] = await Promise.all([viewerPage(url, request.signal), this.parts?.saving.finish(SAVE_TIMEOUT_MS)]);
      if (request.signal.aborted) return;
      if (page && (this.parts?.saving.isSafeToLeave ?? true)) this.replace(page, url, isHistory);
      else loadPage(url, isHistory); // the browser shows the answer, or asks whether to leave
    } catch (error) {
      if (request.signal.aborted) return;
      if (isHistory) return location.reload(); // the address is that of the other image already
      console.error(error);
      this.tray.setPending(null);
      this.parts?.notice.show("The image cannot be opened: the server does not answer.");
    } finally {
      if (this.request === request) this.root.removeAttribute("aria-busy");
    }
  }

  private replace(page: Document, url: string, isHistory: boolean): void {
    this.leaving.abort();
    this.parts = null;
    if (!isHistory) history.pushState(null, "", url);
    this.path = location.pathname;
    document.title = page.title;
    const panel = this.root.dataset.panel;
    const main = required(document, "#main");
    const scrolled = this.tray.scrollPosition;
    main.replaceChildren(...required(page, "#main").childNodes);
    this.root = required(main, "[data-viewer]");
    if (panel === "closed") required(this.root, "[data-panel-toggle]").setAttribute("aria-expanded", "false");
    this.root.dataset.panel = panel;
    required(this.root, "[data-tray]").replaceWith(this.tray.host);
    this.tray.setPending(null);
    window.htmx.process(this.root);
    window.htmx.trigger(this.root, "htmx:load");
    void this.show();
    this.tray.scrollPosition = scrolled;
    this.tray.reveal();
  }
}

/** Page of an image; null if the server sends anything else, such as the sign-in page. */
async function viewerPage(url: string, signal: AbortSignal): Promise<Document | null> {
  const response = await fetch(url, { signal, credentials: "same-origin", headers: { Accept: "text/html" } });
  if (!response.ok || response.redirected) return null;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  return page.querySelector("[data-viewer]") ? page : null;
}

function loadPage(url: string, isHistory: boolean): void {
  if (isHistory) location.reload();
  else location.assign(url);
}
