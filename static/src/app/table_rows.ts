/** `tr[data-href]`: a click anywhere in the row follows its link; text can still be selected. */
export function watchRows(): void {
  document.addEventListener("click", (event) => {
    const target = event.target as Element;
    const row = target.closest<HTMLElement>("tr[data-href]");
    if (!row || target.closest("a, button, input, label, select, summary")) return;
    if (window.getSelection()?.toString()) return;
    const href = row.dataset["href"];
    if (!href) return;
    if (event.ctrlKey || event.metaKey) window.open(href, "_blank", "noopener");
    else window.location.assign(href);
  });
}
