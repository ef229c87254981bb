/** `[data-hotkey="/"]`: the key focuses a field or clicks anything else. */
import { isTyping } from "../dom/focus";

export function watchHotkeys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    for (const element of document.querySelectorAll<HTMLElement>("[data-hotkey]")) {
      if (element.dataset["hotkey"] !== event.key) continue;
      event.preventDefault();
      if (element.matches("input, textarea, select")) element.focus();
      else element.click();
      return;
    }
  });
}
