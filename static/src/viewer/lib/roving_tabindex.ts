/** A toolbar is one stop of the Tab key; arrow keys go through its buttons, as ARIA has it. */

/** Index of the button that a key moves to; null for other keys. */
export function rovingTarget(key: string, at: number, count: number): number | null {
  const targets: Record<string, number> = {
    ArrowDown: (at + 1) % count,
    ArrowRight: (at + 1) % count,
    ArrowUp: (at + count - 1) % count,
    ArrowLeft: (at + count - 1) % count,
    Home: 0,
    End: count - 1,
  };
  return targets[key] ?? null;
}

export function rovingTabindex(toolbar: HTMLElement): void {
  const buttons = (): HTMLButtonElement[] =>
    [...toolbar.querySelectorAll<HTMLButtonElement>("button")].filter((button) => !button.disabled);
  const makeFocusable = (focusable: HTMLElement): void => {
    for (const button of toolbar.querySelectorAll("button")) button.tabIndex = button === focusable ? 0 : -1;
  };
  const [first] = buttons();
  if (first) makeFocusable(first);
  toolbar.addEventListener("focusin", (event) => {
    if (event.target instanceof HTMLButtonElement) makeFocusable(event.target);
  });
  toolbar.addEventListener("keydown", (event) => {
    const all = buttons();
    const target = rovingTarget(event.key, all.indexOf(document.activeElement as HTMLButtonElement), all.length);
    if (target === null || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    all[target]?.focus();
  });
}
