/** The pages of the panel, where it has several. */

export class PanelTabs {
  constructor(private readonly root: HTMLElement) {
    for (const tab of this.tabs()) {
      tab.addEventListener("click", () => this.open(tab.dataset.tab ?? ""));
      tab.addEventListener("keydown", (event) => this.key(event, tab));
    }
    this.open("rois");
  }

  get current(): string {
    return this.tabs().find((tab) => tab.getAttribute("aria-selected") === "true")?.dataset.tab ?? "";
  }

  open(name: string): void {
    for (const tab of this.tabs()) {
      tab.setAttribute("aria-selected", String(tab.dataset.tab === name));
      tab.tabIndex = tab.dataset.tab === name ? 0 : -1;
    }
    for (const page of this.root.querySelectorAll<HTMLElement>("[data-page]")) page.hidden = page.dataset.page !== name;
  }

  private key(event: KeyboardEvent, tab: HTMLElement): void {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const tabs = this.tabs();
    const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length];
    this.open(next?.dataset.tab ?? "");
    next?.focus();
  }

  private tabs(): HTMLElement[] {
    return [...this.root.querySelectorAll<HTMLElement>("[data-tab]")];
  }
}
