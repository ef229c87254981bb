/** The tool rail: its buttons do what the keys do. */

import type { KeyTargets } from "./bindings";
import type { ToolName } from "../rois/tools";

export function toolbar(root: HTMLElement, targets: KeyTargets): void {
  const { tools, layer, mapView, history } = targets;
  const buttons = (selector: string): NodeListOf<HTMLButtonElement> =>
    root.querySelectorAll<HTMLButtonElement>(selector);

  const actions: Record<string, () => void> = {
    undo: targets.undo,
    redo: targets.redo,
    "zoom-in": () => mapView.zoomBy(2),
    "zoom-out": () => mapView.zoomBy(0.5),
    fit: () => mapView.fit(),
    full: () => mapView.fullResolution(),
    "reset-rotation": () => mapView.resetRotation(),
    keys: targets.openSheet,
  };
  for (const button of buttons("[data-tool]")) {
    button.addEventListener("click", () => tools.use(button.dataset.tool as ToolName));
  }
  for (const button of buttons("[data-toggle]")) {
    button.addEventListener("click", () => layer.toggle(button.dataset.toggle as "visible"));
  }
  for (const button of buttons("[data-action]")) {
    button.addEventListener("click", () => actions[button.dataset.action ?? ""]?.());
  }
  giveBackFocus(root, mapView.target);
  foldPanel(root);

  tools.on("tool", (tool) => {
    for (const button of buttons("[data-tool]")) {
      button.setAttribute("aria-pressed", String(button.dataset.tool === tool));
    }
  });
  layer.on("display", (display) => {
    for (const button of buttons("[data-toggle]")) {
      const isOn = display[button.dataset.toggle as keyof typeof display];
      button.setAttribute("aria-pressed", String(isOn));
    }
  });
  const showHistory = (): void => {
    for (const [action, label] of [["undo", history.undoLabel], ["redo", history.redoLabel]] as const) {
      for (const button of buttons(`[data-action=${action}]`)) button.disabled = label === null;
    }
  };
  history.on("change", showHistory);
  showHistory();
}

/** After a mouse click the keys belong to the image again; a keyboard user keeps the focus. */
function giveBackFocus(root: HTMLElement, target: HTMLElement): void {
  root.addEventListener("click", (event) => {
    const isMouse = event.detail > 0;
    const isTool = event.target instanceof Element && event.target.closest("[data-rail] button, [data-timeline] button");
    if (!isMouse || !isTool) return;
    target.toggleAttribute("data-pointed", true);
    target.focus({ preventScroll: true });
  });
}

/** The panel beside the image folds away, and back. */
function foldPanel(root: HTMLElement): void {
  const toggles = root.querySelectorAll<HTMLElement>("[data-panel-toggle]");
  for (const button of toggles) {
    button.addEventListener("click", () => {
      const isOpen = root.dataset.panel !== "closed";
      root.dataset.panel = isOpen ? "closed" : "open";
      for (const other of toggles) other.setAttribute("aria-expanded", String(!isOpen));
    });
  }
}
