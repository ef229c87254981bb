/** The viewer on the whole screen, and back. */

export function fullScreen(inside: HTMLElement): void {
  const page = inside.closest("main"); // stays when another image is opened
  if (document.fullscreenElement) void document.exitFullscreen();
  else void page?.requestFullscreen();
}
