/** `details.menu`: closes on Escape, on a click elsewhere and when another one opens. */
function close(menu: HTMLDetailsElement, focus: boolean): void {
  menu.open = false;
  if (focus) menu.querySelector("summary")?.focus();
}

function openMenus(): HTMLDetailsElement[] {
  return Array.from(document.querySelectorAll<HTMLDetailsElement>("details.menu[open]"));
}

export function watchMenus(): void {
  document.addEventListener("click", (event) => {
    for (const menu of openMenus()) {
      if (!menu.contains(event.target as Node)) close(menu, false);
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of openMenus()) close(menu, menu.contains(document.activeElement));
  });
}
