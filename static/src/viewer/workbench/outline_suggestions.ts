/** The tool that proposes an outline around a click: its clicks, its keys and its bar. */

import { required } from "../../dom/elements";
import { boundsFromExtent, l0FromMap } from "../map/pixel_plane";
import type { DrawContext } from "../rois/drawing/draw_interaction";
import { outlinesAt } from "../rois/store/outline_proposals";
import { OutlineSuggestion } from "../rois/drawing/suggestion";
import type { Tools } from "../rois/tools/tools";
import type { Parts } from "./parts";

/** Actions on a proposed outline, tried first by shared keys; each returns whether it applied. */
export interface SuggestionActions {
  accept: () => boolean;
  dismiss: () => boolean;
  step: (by: number) => boolean;
}

export const NO_SUGGESTIONS: SuggestionActions = { accept: () => false, dismiss: () => false, step: () => false };

export function connectSuggestions(parts: Parts, tools: Tools, context: DrawContext): SuggestionActions {
  const { canvas, edits, layer, mapView, notice, player } = parts;
  const suggestion = new OutlineSuggestion((question, signal) => outlinesAt(canvas.id, question, signal));
  mapView.map.addLayer(suggestion.layer);
  const accept = (): boolean => {
    const accepted = suggestion.accept();
    if (accepted) layer.select(edits.create({ geometry: accepted.geometry, shape: "polygon" }, context.label(), accepted.frame).id);
    return accepted !== null;
  };
  const keys = { accept, dismiss: () => suggestion.dismiss(), step: (by: number) => suggestion.step(by) };
  followClicks(parts, tools, context, suggestion, accept);
  connectSuggestionBar(parts.root, suggestion, keys);
  suggestion.on("change", (state) => {
    if (state !== "none") notice.hide(); // replaced by the bar
  });
  suggestion.on("failed", (text) => notice.show(text));
  tools.on("tool", (tool) => {
    if (tool !== "outline") suggestion.dismiss();
  });
  player?.on("frame", () => suggestion.dismiss()); // it was for another frame
  return keys;
}

/** A click requests an outline; a double click inside the proposal accepts it. */
function followClicks({ mapView }: Parts, tools: Tools, context: DrawContext, suggestion: OutlineSuggestion, accept: () => boolean): void {
  const { map, view } = mapView;
  map.on("click", (event) => {
    const at = l0FromMap(event.coordinate);
    if (tools.current !== "outline" || (suggestion.state === "shown" && suggestion.isAt(at))) return;
    const bounds = boundsFromExtent(view.calculateExtent(map.getSize()));
    void suggestion.ask({ at, bounds, frame: context.frame() });
  });
  map.on("dblclick", (event) => {
    if (tools.current !== "outline") return;
    event.stopPropagation(); // and no zoom
    accept();
  });
}

function connectSuggestionBar(root: HTMLElement, suggestion: OutlineSuggestion, { accept, dismiss }: SuggestionActions): void {
  const host = required(root, "[data-suggestion]");
  const range = required<HTMLInputElement>(host, "input");
  const text = required(host, "[data-suggestion-text]");
  const ok = required<HTMLButtonElement>(host, "[data-suggestion-accept]");
  suggestion.on("change", (state) => {
    const { count, at } = suggestion.steps;
    host.hidden = state === "none";
    host.dataset.state = state;
    text.textContent = state === "requested" ? "Looking for an outline…" : count > 1 ? `Outline ${at + 1} of ${count}` : "Outline";
    range.max = String(Math.max(count - 1, 0));
    range.value = String(at);
    range.disabled = count < 2;
    ok.disabled = state !== "shown";
  });
  range.addEventListener("input", () => suggestion.go(Number(range.value)));
  ok.addEventListener("click", accept);
  required(host, "[data-suggestion-dismiss]").addEventListener("click", dismiss);
}
