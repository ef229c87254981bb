/** `[data-dialog-open="id"]` opens a `<dialog>`; `[data-dialog-close]` and the backdrop close it. */
export function watchDialogs(): void {
  document.addEventListener("click", (event) => {
    const target = event.target as Element;
    const opener = target.closest<HTMLElement>("[data-dialog-open]");
    if (opener) {
      const dialog = document.getElementById(opener.dataset["dialogOpen"] ?? "");
      if (dialog instanceof HTMLDialogElement) dialog.showModal();
      return;
    }
    if (target.closest("[data-dialog-close]")) target.closest("dialog")?.close();
    else if (target instanceof HTMLDialogElement && isOutside(target, event)) target.close();
  });
}

function isOutside(dialog: HTMLDialogElement, event: MouseEvent): boolean {
  const box = dialog.getBoundingClientRect();
  return (
    event.clientX < box.left ||
    event.clientX > box.right ||
    event.clientY < box.top ||
    event.clientY > box.bottom
  );
}
