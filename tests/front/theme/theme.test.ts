import { beforeEach, describe, expect, it, vi } from "vitest";

import { applyTheme, rememberTheme, rememberedTheme, shownTheme } from "@/theme/theme";

let isDarkSystem = false;
let page: { dataset: Record<string, string>; classList: { toggle: (name: string, on: boolean) => unknown }; classes: Set<string> };

/** A store of the browser; `null` where the browser forbids it. */
function storage(kept: Map<string, string> | null): void {
  const forbid = (): never => {
    throw new DOMException("forbidden", "SecurityError");
  };
  vi.stubGlobal("localStorage", {
    getItem: (key: string) => (kept ?? forbid()).get(key) ?? null,
    setItem: (key: string, value: string) => (kept ?? forbid()).set(key, value),
    removeItem: (key: string) => (kept ?? forbid()).delete(key),
  });
}

beforeEach(() => {
  isDarkSystem = false;
  const classes = new Set<string>();
  page = { dataset: {}, classes, classList: { toggle: (name, on) => (on ? classes.add(name) : classes.delete(name)) } };
  vi.stubGlobal("document", { documentElement: page });
  vi.stubGlobal("window", { matchMedia: () => ({ matches: isDarkSystem }) });
  storage(new Map());
});

describe("what is remembered", () => {
  it("is what the system says until something is chosen, and after that again", () => {
    expect(rememberedTheme()).toBe("auto");
    rememberTheme("dark");
    expect(rememberedTheme()).toBe("dark");
    rememberTheme("auto");
    expect(rememberedTheme()).toBe("auto");
  });

  it("is nothing where it makes no sense", () => {
    storage(new Map([["tessera.theme", "purple"]]));
    expect(rememberedTheme()).toBe("auto");
  });

  it("is nothing where the browser forbids it, without a word", () => {
    storage(null);
    rememberTheme("dark");
    expect(rememberedTheme()).toBe("auto");
  });
});

describe("what is shown", () => {
  it.each([
    ["light", true, "light"],
    ["dark", false, "dark"],
    ["auto", true, "dark"],
    ["auto", false, "light"],
  ] as const)("chosen %s, a dark system %s: %s", (theme, isDark, shown) => {
    isDarkSystem = isDark;
    rememberTheme(theme);
    applyTheme(theme);
    expect(shownTheme()).toBe(shown);
    expect(page.classes.has("dark-mode")).toBe(shown === "dark");
    expect(page.dataset.theme).toBe(theme === "auto" ? undefined : theme);
  });
});
