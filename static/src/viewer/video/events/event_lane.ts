/** The lane of the timeline with the events: a mark for a moment, a bar for a span. */

import { element, replaceChanged, required } from "../../../dom/elements";
import { rovingTabindex } from "../../lib/roving_tabindex";
import { oncePerFrame } from "../../lib/scheduling";
import type { FrameTable } from "../frame_table";
import { inOrder, placeText } from "./event_state";
import type { VideoEventState } from "./event_state";
import { hueOf, laneRows } from "./lane_layout";

/** Most rows; further events share the last ones. */
const MAX_ROWS = 3;
/** Height of a row; timeline.css has the same. */
const ROW_PX = 18;
/** A moment, and the shortest bar. */
const MARK_PX = 10;
/** Space for the text next to the mark, and around it. */
const TEXT_START_PX = 14;
const CHARACTER_PX = 6.5;
const MAX_TEXT_PX = 140;

interface LaneEvents {
  /** A mark was clicked. */
  choose: (state: VideoEventState) => void;
}

export class EventLane {
  private readonly host: HTMLElement;
  private events: VideoEventState[] = [];
  private selectedId: string | null = null;
  /** First and last frame of a span whose end is not set yet. */
  private open: [number, number] | null = null;
  private readonly queue = oncePerFrame(() => this.draw());

  constructor(
    root: HTMLElement,
    private readonly frames: FrameTable,
    private readonly on: LaneEvents,
  ) {
    this.host = required(root, "[data-event-lane]");
    rovingTabindex(this.host);
    new ResizeObserver(() => this.queue()).observe(required(root, ".timeline-track"));
  }

  show(events: VideoEventState[], selectedId: string | null): void {
    this.events = inOrder(events);
    this.selectedId = selectedId;
    this.queue();
  }

  showOpen(span: [number, number] | null): void {
    this.open = span;
    this.queue();
  }

  private draw(): void {
    const { host, events, frames } = this;
    host.hidden = events.length === 0 && !this.open;
    if (host.hidden) return host.replaceChildren();
    const width = host.clientWidth;
    const last = Math.max(frames.length - 1, 1);
    const items = events.map((state) => {
      const left = Math.min((width * state.first.index) / last, width - MARK_PX);
      const textWidth = TEXT_START_PX + Math.min(state.name.length * CHARACTER_PX, MAX_TEXT_PX);
      return { left, width: Math.max((width * (state.last.index - state.first.index)) / last, MARK_PX), textWidth };
    });
    const places = laneRows(items, width, MAX_ROWS);
    const rowCount = Math.max(1, ...places.map(({ row }) => row + 1));
    const focused = host.contains(document.activeElement) ? (document.activeElement as HTMLElement).dataset.event : null;
    const buttons = events.map((state, at) => {
      const [item, place] = [items[at], places[at]];
      const button = this.button(state);
      const markWidth = item?.width ?? MARK_PX;
      const textWidth = Math.min(item?.textWidth ?? 0, place?.room ?? 0);
      button.style.left = `${item?.left ?? 0}px`;
      button.style.top = `${(place?.row ?? 0) * ROW_PX}px`;
      button.style.width = `${Math.max(markWidth, textWidth)}px`;
      button.style.setProperty("--event-width", `${markWidth}px`);
      button.tabIndex = (focused ? state.id === focused : at === 0) ? 0 : -1;
      return button;
    });
    host.style.height = `${rowCount * ROW_PX}px`;
    replaceChanged(host, [...this.openBar(width / last), ...buttons]);
    if (focused) host.querySelector<HTMLElement>(`[data-event="${focused}"]`)?.focus({ preventScroll: true });
  }

  private button(state: VideoEventState): HTMLButtonElement {
    const { id, name, isMoment } = state;
    const label = `${name}. ${placeText(state)}`;
    const button = element(
      "button",
      { type: "button", class: `event-mark${isMoment ? " event-mark--moment" : ""}`, "data-event": id, "aria-label": label, title: label },
      element("span", {}, name),
    );
    button.style.setProperty("--event-hue", String(hueOf(name)));
    if (id === this.selectedId) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => this.on.choose(state));
    return button;
  }

  private openBar(framePx: number): HTMLElement[] {
    if (!this.open) return [];
    const [from, to] = this.open;
    const bar = element("span", { class: "event-open", "aria-hidden": "true" });
    bar.style.left = `${from * framePx}px`;
    bar.style.width = `${Math.max((to - from) * framePx, 2)}px`;
    return [bar];
  }
}
