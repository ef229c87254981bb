/** Playback speed: a menu, and J, K, L while playing. */

import { element } from "../../dom/elements";
import { isTyping } from "../../dom/focus";
import { SPEEDS } from "./player";
import type { VideoPlayer } from "./player";

export function connectSpeed(menu: HTMLSelectElement, player: VideoPlayer, leaving?: AbortSignal): void {
  for (const speed of SPEEDS) menu.append(element("option", { value: String(speed) }, `${speed}×`));
  menu.value = "1";
  menu.addEventListener("change", () => player.setSpeed(Number(menu.value)));
  player.on("speed", (speed) => (menu.value = String(speed)));
  // before the general key bindings, which use J, K and L while the video is paused
  addEventListener("keydown", (event) => handleSpeedKey(event, player), { capture: true, ...(leaving && { signal: leaving }) });
}

function handleSpeedKey(event: KeyboardEvent, player: VideoPlayer): void {
  if (!player.isPlaying || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || isTyping(event.target)) return;
  const actions: Record<string, () => void> = {
    j: () => player.changeSpeed(-1),
    k: () => void player.pause(),
    l: () => player.changeSpeed(1),
  };
  const action = actions[event.key.toLowerCase()];
  if (!action) return;
  event.preventDefault();
  event.stopPropagation();
  action();
}
