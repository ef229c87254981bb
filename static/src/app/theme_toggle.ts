/** `[data-theme-toggle]`: light to dark and back, remembered. */
import { applyTheme, rememberedTheme, rememberTheme, shownTheme } from "../theme/theme";

export function watchTheme(): void {
  document.addEventListener("click", (event) => {
    const button = (event.target as Element).closest<HTMLElement>("[data-theme-toggle]");
    if (!button) return;
    const next = shownTheme() === "dark" ? "light" : "dark";
    rememberTheme(next);
    applyTheme(next);
    document.dispatchEvent(new CustomEvent("tessera:theme", { detail: { theme: next } }));
  });
  window
    .matchMedia("(prefers-color-scheme: dark)")
    .addEventListener("change", () => applyTheme(rememberedTheme()));
}
