/** The viewer on the whole screen, and back. */

export function fullScreen(inside: HTMLElement): void {
  const viewer = inside.closest("[data-viewer]");
  if (document.fullscreenElement) void document.exitFullscreen();
  else void viewer?.requestFullscreen();
}
