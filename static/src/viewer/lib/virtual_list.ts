/** A list that draws only the rows in sight: thousands of items cost no more than a screenful. */

import { replaceChanged } from "../../dom/elements";
import { oncePerFrame } from "./scheduling";

/** Rows drawn beyond either edge, so that scrolling shows no gap. */
const OVERSCAN_ROWS = 6;

/** The rows to draw, from `first` up to `end`, which may lie beyond the list. */
export function rowsInSight(scrollTopPx: number, heightPx: number, rowHeightPx: number): { first: number; end: number } {
  const top = Math.floor(scrollTopPx / rowHeightPx) - OVERSCAN_ROWS;
  const count = Math.ceil(heightPx / rowHeightPx) + 2 * OVERSCAN_ROWS;
  return { first: Math.max(0, top), end: Math.max(0, top + count) };
}

export class VirtualList<T> {
  private items: T[] = [];
  private readonly rows: HTMLElement;
  private readonly queue = oncePerFrame(() => this.redraw());

  constructor(
    private readonly host: HTMLElement,
    private readonly rowHeightPx: number,
    private readonly draw: (item: T, index: number) => HTMLElement,
  ) {
    this.rows = document.createElement("div");
    this.rows.className = "virtual-rows";
    this.rows.setAttribute("role", "presentation");
    host.append(this.rows);
    host.addEventListener("scroll", () => this.queue());
    new ResizeObserver(() => this.queue()).observe(host);
  }

  get length(): number {
    return this.items.length;
  }

  at(index: number): T | undefined {
    return this.items[index];
  }

  show(items: T[]): void {
    this.items = items;
    this.rows.style.height = `${items.length * this.rowHeightPx}px`;
    this.queue();
  }

  reveal(index: number): void {
    const top = index * this.rowHeightPx;
    const { scrollTop, clientHeight } = this.host;
    if (top < scrollTop) this.host.scrollTop = top;
    else if (top + this.rowHeightPx > scrollTop + clientHeight) {
      this.host.scrollTop = top + this.rowHeightPx - clientHeight;
    }
    this.queue();
  }

  private redraw(): void {
    const { first, end } = rowsInSight(this.host.scrollTop, this.host.clientHeight, this.rowHeightPx);
    const rows = this.items.slice(first, end).map((item, offset) => {
      const row = this.draw(item, first + offset);
      row.style.top = `${(first + offset) * this.rowHeightPx}px`;
      row.setAttribute("aria-posinset", String(first + offset + 1));
      row.setAttribute("aria-setsize", String(this.items.length));
      return row;
    });
    replaceChanged(this.rows, rows);
  }
}
