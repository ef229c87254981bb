/** The tool rail: its buttons do what the keys do. */

import { required } from "../../dom/elements";
import { rovingTabindex } from "../lib/roving_tabindex";
import { fullScreen } from "../lib/full_screen";
import type { KeyTargets } from "./key_bindings";
import type { Display } from "../rois/rendering/roi_layer";
import type { ToolName } from "../rois/tools/tool_names";

type Buttons = (selector: string) => NodeListOf<HTMLButtonElement>;

export function toolbar(root: HTMLElement, targets: KeyTargets): void {
  const buttons: Buttons = (selector) => root.querySelectorAll<HTMLButtonElement>(selector);
  connectButtons(buttons, targets);
  showStates(buttons, targets);
  returnFocus(root, targets.mapView.target);
  rovingTabindex(required(root, "[data-rail]"));
  connectPanelToggle(root);
}

function connectButtons(buttons: Buttons, { tools, layer, mapView, undo, redo, openSheet, adjustments }: KeyTargets): void {
  const actions: Record<string, () => void> = {
    undo,
    redo,
    "zoom-in": () => mapView.zoomBy(2),
    "zoom-out": () => mapView.zoomBy(0.5),
    fit: () => mapView.fit(),
    full: () => mapView.fullResolution(),
    "reset-rotation": () => mapView.resetRotation(),
    "full-screen": () => fullScreen(mapView.target),
    keys: openSheet,
    adjustments,
  };
  for (const button of buttons("[data-tool]")) {
    button.addEventListener("click", () => tools.use(button.dataset.tool as ToolName));
  }
  for (const button of buttons("[data-toggle]")) {
    button.addEventListener("click", () => layer.toggle(button.dataset.toggle as keyof Display));
  }
  for (const button of buttons("[data-action]")) {
    button.addEventListener("click", () => actions[button.dataset.action ?? ""]?.());
  }
}

/** Show the active tool, display options and undo state on the buttons. */
function showStates(buttons: Buttons, { tools, layer, history }: KeyTargets): void {
  tools.on("tool", (tool) => {
    for (const button of buttons("[data-tool]")) {
      button.setAttribute("aria-pressed", String(button.dataset.tool === tool));
    }
  });
  layer.on("display", (display) => {
    for (const button of buttons("[data-toggle]")) {
      button.setAttribute("aria-pressed", String(display[button.dataset.toggle as keyof Display]));
    }
  });
  const showHistory = (): void => {
    for (const button of buttons("[data-action=undo]")) button.disabled = history.undoLabel === null;
    for (const button of buttons("[data-action=redo]")) button.disabled = history.redoLabel === null;
  };
  history.on("change", showHistory);
  showHistory();
}

/** Return the focus to the image after a mouse click; keyboard users keep it. */
function returnFocus(root: HTMLElement, target: HTMLElement): void {
  root.addEventListener("click", (event) => {
    const isMouse = event.detail > 0;
    const pressed = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-rail] button, [data-timeline] button") : null;
    const isTool = pressed && pressed.dataset.action !== "look"; // that one opens a panel, which has the focus
    if (!isMouse || !isTool) return;
    target.toggleAttribute("data-pointed", true);
    target.focus({ preventScroll: true });
  });
}

/** Connect the button that opens and closes the panel. */
function connectPanelToggle(root: HTMLElement): void {
  const toggles = root.querySelectorAll<HTMLElement>("[data-panel-toggle]");
  for (const button of toggles) {
    button.addEventListener("click", () => {
      const isOpen = root.dataset.panel !== "closed";
      root.dataset.panel = isOpen ? "closed" : "open";
      for (const other of toggles) other.setAttribute("aria-expanded", String(!isOpen));
    });
  }
}
