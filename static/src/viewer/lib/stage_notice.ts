/** The message over the canvas: one at a time, with at most one action; announced to screen readers. */

import { element } from "../../dom/elements";

/** Time to read two lines and to press the button. */
const SHOWN_MS = 7000;

export class StageNotice {
  private timer: ReturnType<typeof setTimeout> | null = null;

  constructor(private readonly host: HTMLElement) {}

  show(text: string, action?: { label: string; run: () => void }): void {
    const parts: Node[] = [element("span", {}, text)];
    if (action) {
      const run = (): void => {
        this.hide();
        action.run();
      };
      parts.push(element("button", { type: "button", class: "stage-notice-action", click: run }, action.label));
    }
    this.host.replaceChildren(...parts);
    this.host.hidden = false;
    if (this.timer) clearTimeout(this.timer);
    this.timer = setTimeout(() => this.hide(), SHOWN_MS);
  }

  /** Hide the message, or only the one with this text. */
  hide(text?: string): void {
    if (text === undefined || this.host.firstChild?.textContent === text) this.host.hidden = true;
  }
}
