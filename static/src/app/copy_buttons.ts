/** `[data-copy="id"]`: copies the text of that element and says so. */
import { toast } from "./toasts";

async function copy(source: HTMLElement): Promise<void> {
  const text = (source instanceof HTMLInputElement ? source.value : source.textContent).trim();
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied.", "success");
  } catch {
    window.getSelection()?.selectAllChildren(source);
    toast("Press Ctrl+C to copy the selected text.", "info"); // no clipboard outside of HTTPS
  }
}

export function watchCopyButtons(): void {
  document.addEventListener("click", (event) => {
    const button = (event.target as Element).closest<HTMLElement>("[data-copy]");
    const source = button && document.getElementById(button.dataset["copy"] ?? "");
    if (source) void copy(source);
  });
}
