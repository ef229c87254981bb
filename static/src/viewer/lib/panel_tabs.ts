/** Tabs of a panel, as ARIA has them: `aria-controls` names the page of a tab. A page that opens gets the event `toggle`. */

export class PanelTabs {
  constructor(private readonly list: HTMLElement) {
    for (const tab of list.querySelectorAll<HTMLElement>("[role=tab]")) {
      tab.addEventListener("click", () => this.open(pageIdOf(tab)));
      tab.addEventListener("keydown", (event) => this.handleKey(event, tab));
    }
    const [first] = this.tabs();
    if (first) this.open(pageIdOf(first));
  }

  /** Id of the page that is open. */
  get current(): string {
    const tab = this.tabs().find((one) => one.getAttribute("aria-selected") === "true");
    return tab ? pageIdOf(tab) : "";
  }

  open(pageId: string): void {
    for (const tab of this.tabs()) {
      const isOpen = pageIdOf(tab) === pageId;
      tab.setAttribute("aria-selected", String(isOpen));
      tab.tabIndex = isOpen ? 0 : -1;
      const page = document.getElementById(pageIdOf(tab));
      if (page) page.hidden = !isOpen;
    }
    document.getElementById(pageId)?.dispatchEvent(new Event("toggle"));
  }

  private handleKey(event: KeyboardEvent, tab: HTMLElement): void {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const tabs = this.tabs();
    const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length];
    if (!next) return;
    this.open(pageIdOf(next));
    next.focus();
  }

  private tabs(): HTMLElement[] {
    return [...this.list.querySelectorAll<HTMLElement>("[role=tab]:not([hidden])")];
  }
}

const pageIdOf = (tab: HTMLElement): string => tab.getAttribute("aria-controls") ?? "";
