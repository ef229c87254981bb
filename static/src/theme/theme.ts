/** Light, dark, or what the system says ("auto"). */
export type Theme = "auto" | "light" | "dark";

const KEY = "tessera.theme";

export function rememberedTheme(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto"; // storage may be forbidden: follow the system
  }
}

export function rememberTheme(theme: Theme): void {
  try {
    if (theme === "auto") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // forbidden storage: the choice holds for this page only
  }
}

export function applyTheme(theme: Theme): void {
  const root = document.documentElement;
  if (theme === "auto") delete root.dataset["theme"];
  else root.dataset["theme"] = theme;
  root.classList.toggle("dark-mode", shownTheme() === "dark"); // the class that Swagger UI reads
}

/** The theme in effect. */
export function shownTheme(): "light" | "dark" {
  const chosen = rememberedTheme();
  if (chosen !== "auto") return chosen;
  return window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}
