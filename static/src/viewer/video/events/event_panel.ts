/** The events of a video: the page of the panel with their list, the editor of the chosen one, and the lane of the timeline. */

import { element, replaceChanged, required } from "../../../dom/elements";
import { DeletedList } from "../../lib/saving/deleted_list";
import { oncePerFrame } from "../../lib/scheduling";
import type { PanelTabs } from "../../lib/panel_tabs";
import type { StageNotice } from "../../lib/stage_notice";
import { timeText } from "../../lib/units";
import { ClipButton } from "../clip";
import type { ClipSpan } from "../clip";
import type { VideoPlayer } from "../player";
import { videoEventNames, videoEventsDeleted } from "./api";
import type { VideoEvent } from "./api";
import { EventLane } from "./event_lane";
import { VideoEventState, durationText, inOrder, placeText, withName } from "./event_state";
import type { VideoEventEdits, VideoEventStore } from "./event_store";
import { hueOf } from "./lane_layout";
import { OpenSpan } from "./open_span";

/** Id of the page of the panel. */
export const EVENTS_PAGE = "panel-events";
/** Name of an event before it has got one. */
const FIRST_NAME = "Event";

export interface VideoEventParts {
  root: HTMLElement;
  canAnnotate: boolean;
  canvasId: string;
  leaving: AbortSignal;
  player: VideoPlayer;
  store: VideoEventStore;
  edits: VideoEventEdits;
  tabs: PanelTabs;
  notice: StageNotice;
  undo: () => void;
}

export class VideoEventPanel {
  private readonly page: HTMLElement;
  private readonly list: HTMLElement;
  private readonly editor: HTMLElement;
  private readonly search: HTMLInputElement;
  private readonly name: HTMLInputElement;
  private readonly note: HTMLTextAreaElement;
  private readonly lane: EventLane;
  private readonly span = new OpenSpan();
  private readonly queue = oncePerFrame(() => this.draw());
  private selected: VideoEventState | null = null;
  private isLoaded = false;
  /** Name for the next event: the last one used. */
  private nextName = FIRST_NAME;

  constructor(private readonly parts: VideoEventParts) {
    const { root, store, player } = parts;
    this.page = required(root, `#${EVENTS_PAGE}`);
    this.list = required(this.page, "[data-event-list]");
    this.editor = required(this.page, "[data-event-editor]");
    this.search = required<HTMLInputElement>(this.page, "[data-event-search]");
    this.name = required<HTMLInputElement>(this.editor, "[data-event-name]");
    this.note = required<HTMLTextAreaElement>(this.editor, "[data-event-note]");
    this.lane = new EventLane(root, player.frames, { choose: (state) => this.goTo(state) });
    this.search.addEventListener("input", () => this.queue());
    required(this.page, "[data-event-reload]").addEventListener("click", () => void store.load());
    for (const name of ["added", "removed", "changed"] as const) store.on(name, () => this.queue());
    store.on("loaded", () => this.handleLoaded());
    store.on("error", (message) => this.showError(message));
    player.on("frame", () => this.followFrame());
    this.page.addEventListener("toggle", () => this.isLoaded && !this.page.hidden && void store.load());
    this.connectEditor();
    this.connectDeleted();
  }

  /** Read the events, and the names to suggest. */
  async load(): Promise<void> {
    await this.parts.store.load();
    const names = await videoEventNames(this.parts.canvasId).catch(() => []);
    required(this.page, "datalist").replaceChildren(...names.map((name) => element("option", { value: name })));
  }

  /** Add an event at the frame on screen. */
  addMoment(): void {
    const { index } = this.parts.player;
    this.add(index, index);
  }

  /** Begin the event at the frame on screen; pressed again, the beginning moves there. */
  beginSpan(): void {
    const { player, notice } = this.parts;
    this.span.begin(player.index);
    this.showSpan();
    notice.show(`An event begins at frame ${player.index + 1}. Shift + K ends it.`, { label: "Cancel", run: () => this.cancelSpan() });
  }

  /** End the begun event at the frame on screen and save it. */
  endSpan(): void {
    const { player, notice } = this.parts;
    const span = this.span.end(player.index);
    if (!span) return notice.show("Go to the first frame of the event and press Shift + J, then to its last and press Shift + K.");
    this.showSpan();
    this.add(...span);
  }

  private cancelSpan(): void {
    this.span.cancel();
    this.showSpan();
  }

  private add(first: number, last: number): void {
    const { edits, player, notice, undo } = this.parts;
    const { frames } = player;
    const state = edits.create({ name: this.nextName, note: "", first: frames.at(first), last: frames.at(last) });
    this.search.value = "";
    this.select(state);
    notice.show(`Event added: ${placeText(state)}.`, { label: "Undo", run: undo });
    if (player.isPlaying) return; // the keys stay with the player
    this.parts.tabs.open(EVENTS_PAGE);
    this.name.focus();
    this.name.select();
  }

  private connectEditor(): void {
    const { page, editor, name, note } = this;
    const { player, edits, canAnnotate } = this.parts;
    name.readOnly = note.readOnly = !canAnnotate;
    required(editor, "[data-event-close]").addEventListener("click", () => this.select(null));
    const clip = editor.querySelector<HTMLButtonElement>("[data-event-clip]");
    if (clip) new ClipButton(clip, this.clipStatus, player.video.id, () => this.clipSpan(), this.parts.leaving);
    if (!canAnnotate) return;
    const onClick = (host: HTMLElement, selector: string, run: () => void): void => required(host, selector).addEventListener("click", run);
    onClick(page, "[data-event-add]", () => this.addMoment());
    onClick(page, "[data-event-begin]", () => this.beginSpan());
    onClick(page, "[data-event-end]", () => this.endSpan());
    onClick(editor, "[data-event-first]", () => this.setEnd("first"));
    onClick(editor, "[data-event-last]", () => this.setEnd("last"));
    onClick(editor, "[data-event-delete]", () => this.remove());
    name.addEventListener("change", () => this.rename());
    name.addEventListener("keydown", (event) => this.nameKey(event));
    note.addEventListener("change", () => {
      const text = note.value.trim();
      if (this.selected && text !== this.selected.note) edits.change(this.selected, { note: text }, "Change note");
    });
    editor.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && event.target === note) note.blur();
    });
    player.on("playing", () => this.showSpan());
  }

  private connectDeleted(): void {
    const { root, canvasId, store, edits } = this.parts;
    const host = root.querySelector<HTMLElement>("[data-event-deleted]");
    if (!host) return;
    new DeletedList<VideoEvent>(host, {
      load: () => videoEventsDeleted(canvasId),
      title: ({ name, first }) => `${name}, ${timeText(first.time_s)}`,
      picture: ({ name, first, last }) => swatch(name, first.index === last.index),
      restore: (event) => {
        const state = store.get(event.id) ?? VideoEventState.fromServer(event);
        edits.restore(state);
        this.goTo(state);
      },
      onSaved: (run) => store.sync.on("status", ({ status }) => status === "saved" && run()),
    });
  }

  private get clipStatus(): HTMLElement {
    return required(this.editor, "[data-event-clip-status]");
  }

  private clipSpan(): ClipSpan | null {
    return this.selected && { first: this.selected.first.index, last: this.selected.last.index };
  }

  private rename(): void {
    const { selected, name } = this;
    const text = name.value.trim().replace(/\s+/g, " ");
    if (!selected || text === selected.name) return;
    if (!text) {
      name.value = selected.name;
      return;
    }
    this.nextName = text;
    this.parts.edits.change(selected, { name: text }, "Rename event");
  }

  /** Enter returns the focus to the video; Escape discards the new name. */
  private nameKey(event: KeyboardEvent): void {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault();
    if (event.key === "Escape" && this.selected) this.name.value = this.selected.name;
    this.rename();
    required(this.parts.root, "[data-map]").focus({ preventScroll: true });
  }

  /** Set the beginning or end of the chosen event to the frame on screen. */
  private setEnd(end: "first" | "last"): void {
    const { player, edits, notice } = this.parts;
    const { selected } = this;
    const { frame } = player;
    if (!selected || !frame) return;
    const isPast = end === "first" ? frame.index > selected.last.index : frame.index < selected.first.index;
    if (isPast) return notice.show(end === "first" ? "This frame is after the last frame of the event." : "This frame is before the first frame of the event.");
    edits.change(selected, { [end]: frame }, "Change frames");
  }

  private remove(): void {
    const { edits, notice, undo } = this.parts;
    const { selected } = this;
    if (!selected) return;
    edits.remove(selected);
    notice.show(`${selected.name} deleted.`, { label: "Undo", run: undo });
    required(this.parts.root, "[data-map]").focus({ preventScroll: true });
  }

  private goTo(state: VideoEventState): void {
    this.select(state);
    this.parts.tabs.open(EVENTS_PAGE);
    void this.parts.player.seek(state.first.index);
  }

  private select(state: VideoEventState | null): void {
    if (state !== this.selected) this.rename();
    this.selected = state;
    this.draw();
    if (state) this.list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }

  private handleLoaded(): void {
    this.isLoaded = true;
    required(this.page, "[data-event-error]").hidden = true;
    this.queue();
  }

  private showError(message: string): void {
    const host = required(this.page, "[data-event-error]");
    host.hidden = false;
    required(host, "p").textContent = `The events could not be loaded. ${message}`;
    required(this.page, "[data-event-loading]").hidden = true;
  }

  /** Extend the bar of a begun event to the frame on screen, and mark events of this frame in the list. */
  private followFrame(): void {
    this.showSpan();
    for (const row of this.list.querySelectorAll<HTMLElement>("[data-first]")) {
      row.toggleAttribute("data-here", this.isHere(Number(row.dataset.first), Number(row.dataset.last)));
    }
  }

  private isHere(first: number, last: number): boolean {
    const { index } = this.parts.player;
    return first <= index && index <= last;
  }

  private showSpan(): void {
    const span = this.span.upTo(this.parts.player.index);
    this.lane.showOpen(span);
    const end = this.page.querySelector<HTMLButtonElement>("[data-event-end]");
    if (end) end.disabled = !span;
  }

  private draw(): void {
    const { page, selected } = this;
    const events = inOrder(this.parts.store.existingObjects());
    if (selected?.deleted || (selected && !this.parts.store.get(selected.id))) this.selected = null;
    const shown = withName(events, this.search.value);
    required(page, "[data-event-count]").textContent = shown.length === events.length ? String(events.length) : `${shown.length} of ${events.length}`;
    const isEmpty = this.isLoaded && events.length === 0;
    required(page, "[data-event-empty]").hidden = !isEmpty;
    required(page, "[data-event-find]").hidden = events.length === 0;
    required(page, "[data-event-loading]").hidden = this.isLoaded || events.length > 0 || !required(page, "[data-event-error]").hidden;
    required(page, "[data-event-no-match]").hidden = shown.length > 0 || events.length === 0;
    this.list.hidden = shown.length === 0;
    this.drawRows(shown);
    this.lane.show(shown, this.selected?.id ?? null);
    this.drawEditor();
    this.followFrame();
  }

  private drawRows(events: VideoEventState[]): void {
    const focused = this.list.contains(document.activeElement) ? (document.activeElement as HTMLElement).dataset.event : null;
    replaceChanged(
      this.list,
      events.map((state) => element("li", {}, this.row(state))),
    );
    if (focused) this.list.querySelector<HTMLElement>(`[data-event="${focused}"]`)?.focus({ preventScroll: true });
  }

  private row(state: VideoEventState): HTMLElement {
    const duration = durationText(state);
    const facts = `${timeText(state.first.time_s)}${duration ? ` · ${duration}` : ""}${state.note ? ` · ${state.note}` : ""}`;
    const sign = { retry: "waits", refused: "refused", conflict: "conflict" };
    const button = element(
      "button",
      { type: "button", class: "event-row", "data-event": state.id, title: placeText(state), click: () => this.goTo(state) },
      swatch(state.name, state.isMoment),
      element("span", { class: "roi-row-title" }, state.name),
      element("span", { class: "roi-row-facts" }, facts),
      ...(state.problem ? [element("span", { class: "roi-row-sign is-bad" }, sign[state.problem.kind])] : []),
    );
    button.dataset.first = String(state.first.index);
    button.dataset.last = String(state.last.index);
    button.toggleAttribute("data-here", this.isHere(state.first.index, state.last.index));
    if (state === this.selected) button.setAttribute("aria-current", "true");
    return button;
  }

  private drawEditor(): void {
    const { selected: state, editor, name, note } = this;
    const isOther = editor.dataset.event !== (state?.id ?? "");
    editor.hidden = !state;
    editor.dataset.event = state?.id ?? "";
    if (!state) return;
    if (isOther) this.clipStatus.textContent = "";
    if (isOther || document.activeElement !== name) name.value = state.name;
    if (isOther || document.activeElement !== note) note.value = state.note;
    required(editor, "[data-event-place]").textContent = `${placeText(state)}${state.isMoment ? "" : ` (${durationText(state)})`}`;
    const problem = required(editor, "[data-event-problem]");
    problem.hidden = !state.problem;
    problem.textContent = state.problem?.message ?? "";
  }
}

/** The colour of a name: a bar, or a diamond for a moment. */
function swatch(name: string, isMoment: boolean): HTMLElement {
  const mark = element("span", { class: isMoment ? "event-swatch event-swatch--moment" : "event-swatch", "aria-hidden": "true" });
  mark.style.setProperty("--event-hue", String(hueOf(name)));
  return mark;
}
