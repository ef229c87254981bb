/** The keyboard: QuPath's keys on images, CVAT's on videos. One table, also shown as the key sheet. */

import { element, required } from "../../dom/elements";
import { isTyping } from "../../dom/focus";

export interface KeyBinding {
  /** `KeyboardEvent.key` in lower case, prefixed by `ctrl+` and `shift+` in this order. */
  keys: string[];
  display: string;
  does: string;
  run?: () => void;
  /** Action when the key is released. */
  release?: () => void;
  /** Whether a held key repeats the action (stepping through frames). */
  repeats?: boolean;
}

export interface KeyGroup {
  title: string;
  bindings: KeyBinding[];
}

/** The name of a key as the table has it: lower case, with the modifiers that matter before it. */
export function keyName(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "shiftKey">): string {
  const key = event.key === " " ? "space" : event.key.toLowerCase();
  const isShifted = event.shiftKey && /^([a-z]|arrow\w+)$/.test(key); // with other keys, Shift yields another key
  const modifiers = `${event.ctrlKey || event.metaKey ? "ctrl+" : ""}${isShifted ? "shift+" : ""}`;
  return modifiers + key;
}

/** True for keys that belong to a focused control: Space and Enter of a button. */
function belongsToControl(event: KeyboardEvent): boolean {
  const { target } = event;
  if (isTyping(target)) return true;
  if (!(target instanceof HTMLElement)) return false;
  if (target.matches("[type=range]") && /^(Arrow|Home|End|Page)/.test(event.key)) return true;
  const presses = event.key === " " || event.key === "Enter";
  return presses && target.matches("button, a, summary, input, [role=option]");
}

/** Run the actions of keys until `leaving` is aborted. */
export function listenToKeys(groups: KeyGroup[], leaving?: AbortSignal): void {
  const table = new Map<string, KeyBinding>();
  const options = leaving ? { signal: leaving } : {};
  for (const { bindings } of groups) {
    for (const binding of bindings) for (const key of binding.keys) table.set(key, binding);
  }
  addEventListener("keydown", (event) => {
    if (event.altKey || document.querySelector("dialog[open]") || belongsToControl(event)) return;
    const binding = table.get(keyName(event));
    if (!binding) return;
    event.preventDefault();
    if (event.repeat && !binding.repeats) return;
    binding.run?.();
  }, options);
  addEventListener("keyup", (event) => {
    const key = event.key === " " ? "space" : event.key.toLowerCase();
    table.get(key)?.release?.();
  }, options);
  addEventListener("blur", () => {
    for (const binding of table.values()) binding.release?.();
  }, options);
}

export function keySheet(root: HTMLElement, groups: KeyGroup[]): () => void {
  const dialog = required<HTMLDialogElement>(root, "[data-dialog=keys]");
  const host = required(dialog, "[data-key-groups]");
  for (const group of groups) {
    const rows = group.bindings.filter(({ display }) => display).flatMap(({ display, does }) => [
      element("dt", {}, ...keyCaps(display)),
      element("dd", {}, does),
    ]);
    host.append(element("section", {}, element("h3", {}, group.title), element("dl", {}, ...rows)));
  }
  return () => dialog.showModal();
}

function keyCaps(display: string): (Node | string)[] {
  return display.split(" ").map((part) => (part === "/" ? " / " : element("kbd", {}, part)));
}
