import { describe, expect, it } from "vitest";

import { keyName } from "@/viewer/lib/key_bindings";

const press = (key: string, held: Partial<Record<"ctrlKey" | "metaKey" | "shiftKey", boolean>> = {}): string =>
  keyName({ key, ctrlKey: false, metaKey: false, shiftKey: false, ...held });

describe("keyName", () => {
  it("is in lower case, whatever Caps Lock says", () => {
    expect(press("R")).toBe("r");
    expect(press("Escape")).toBe("escape");
  });

  it("names the space", () => {
    expect(press(" ")).toBe("space");
  });

  it("tells shifted letters apart, but not signs that need Shift on some keyboards", () => {
    expect(press("P", { shiftKey: true })).toBe("shift+p");
    expect(press("?", { shiftKey: true })).toBe("?");
    expect(press("+", { shiftKey: true })).toBe("+");
  });

  it("takes Command for Control", () => {
    expect(press("z", { metaKey: true })).toBe("ctrl+z");
    expect(press("Z", { ctrlKey: true, shiftKey: true })).toBe("ctrl+shift+z");
  });
});
