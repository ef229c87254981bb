import { beforeEach, describe, expect, it, vi } from "vitest";

import { TrayState } from "@/viewer/workbench/tray_state";

/** As much of the viewer's element as the state needs. */
function root(imageCount: number): HTMLElement {
  return { dataset: { imageCount: String(imageCount), trayState: "closed" }, querySelector: () => null } as unknown as HTMLElement;
}

function stateOn(imageCount: number): string | undefined {
  const host = root(imageCount);
  new TrayState().apply(host);
  return host.dataset.trayState;
}

const windowIsWide = (matches: boolean): void => void vi.stubGlobal("matchMedia", () => ({ matches }));

beforeEach(() => {
  const kept = new Map<string, string>();
  vi.stubGlobal("localStorage", { getItem: (key: string) => kept.get(key) ?? null, setItem: (key: string, text: string) => kept.set(key, text) });
  windowIsWide(true);
});

describe("TrayState", () => {
  it("is open at first where there are several images and the window has room", () => {
    expect(stateOn(2)).toBe("open");
    expect(stateOn(1)).toBe("closed");
    windowIsWide(false);
    expect(stateOn(2)).toBe("closed");
  });

  it("is as it was left on the next page", () => {
    const host = root(2);
    const state = new TrayState();
    state.apply(host);
    state.toggle(host);
    expect(host.dataset.trayState).toBe("closed");
    expect(stateOn(5)).toBe("closed");
    state.toggle(host);
    windowIsWide(false);
    expect(stateOn(1)).toBe("open");
  });

  it("works where the browser stores nothing", () => {
    const refuse = (): never => {
      throw new DOMException("denied", "SecurityError");
    };
    vi.stubGlobal("localStorage", { getItem: refuse, setItem: refuse });
    const host = root(2);
    const state = new TrayState();
    state.apply(host);
    state.toggle(host);
    expect(host.dataset.trayState).toBe("closed");
  });
});
