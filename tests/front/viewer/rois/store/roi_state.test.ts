import { describe, expect, it } from "vitest";

import { RoiState } from "@/viewer/rois/store/roi_state";
import { roi, square } from "../fake_server";

/** One that was drawn here and that the server has never seen. */
const drawn = (): RoiState => new RoiState("r1", null, { geometry: square(), label: null, name: "" });

describe("what has to be sent next", () => {
  it("of a new ROI: itself, unless it was deleted at once", () => {
    const state = drawn();
    expect(state.nextStep).toBe("create");
    state.deleted = true;
    expect(state.nextStep).toBeNull();
  });

  it("of one as the server has it: nothing", () => {
    const state = RoiState.fromServer(roi());
    expect(state.nextStep).toBeNull();
    expect(state.isSettled).toBe(true);
  });

  it("of a changed one: the fields that differ", () => {
    const state = RoiState.fromServer(roi({ name: "old", label: "l1" }));
    state.setFields({ name: "new", label: "l1" });
    expect(state.nextStep).toBe("update");
    expect(state.patch()).toEqual({ name: "new" });
  });

  it("of one changed back: nothing", () => {
    const state = RoiState.fromServer(roi({ name: "old" }));
    state.setFields({ name: "new" });
    state.setFields({ name: "old" });
    expect(state.nextStep).toBeNull();
  });

  it("of one changed back while the change is under way: the change back", () => {
    const state = RoiState.fromServer(roi({ name: "old" }));
    state.setFields({ name: "new" });
    state.inFlight = true;
    state.setFields({ name: "old" });
    expect(state.patch()).toEqual({ name: "old" });
  });

  it("of one that is unlocked and deleted at once: to unlock, then to delete", () => {
    const state = RoiState.fromServer(roi({ locked: true }));
    state.setFields({ locked: false });
    state.deleted = true;
    expect([state.nextStep, state.patch()]).toEqual(["update", { locked: false }]);
    state.adopt(roi({ version: 2 }), { locked: false });
    expect([state.nextStep, state.deleted]).toEqual(["delete", true]);
  });

  it("of one deleted here or there: to delete, or to restore", () => {
    const state = RoiState.fromServer(roi());
    state.deleted = true;
    expect(state.nextStep).toBe("delete");
    const gone = RoiState.fromServer(roi({ deleted_at: "2026-01-03T00:00:00Z" }));
    expect([gone.deleted, gone.nextStep]).toEqual([true, null]);
    gone.deleted = false;
    expect(gone.nextStep).toBe("restore");
  });

  it("takes an equal outline for unchanged, though it is another object", () => {
    const state = RoiState.fromServer(roi({ geometry: square(5) }));
    state.setFields({ geometry: square(5) });
    expect(state.nextStep).toBeNull();
    state.setFields({ geometry: square(6) });
    expect(state.patch()).toEqual({ geometry: square(6), shape: "polygon" });
  });

  it("an empty label and an empty name are wishes too", () => {
    const state = RoiState.fromServer(roi({ name: "old", label: "l1" }));
    state.setFields({ name: "", label: null });
    expect(state.patch()).toEqual({ name: "", label: null });
  });
});

describe("adopt", () => {
  it("confirms what was sent", () => {
    const state = RoiState.fromServer(roi());
    state.setFields({ name: "new" });
    expect(state.adopt(roi({ name: "new", version: 2 }), { name: "new" })).toBe(false);
    expect(state.isSettled).toBe(true);
    expect(state.server?.version).toBe(2);
  });

  it("takes over what the server made of it, and says that it did", () => {
    const state = RoiState.fromServer(roi());
    const sent = square(-5);
    state.setFields({ geometry: sent });
    expect(state.adopt(roi({ geometry: square(0), version: 2 }), { geometry: sent })).toBe(true);
    expect(state.geometry).toEqual(square(0));
    expect(state.isSettled).toBe(true);
  });

  it("keeps what the user changed while the answer was under way", () => {
    const state = RoiState.fromServer(roi());
    state.setFields({ name: "first" });
    state.setFields({ name: "second" });
    state.adopt(roi({ name: "first", version: 2 }), { name: "first" });
    expect(state.name).toBe("second");
    expect(state.patch()).toEqual({ name: "second" });
  });

  it("takes over a field that someone else changed and that was not touched here", () => {
    const state = RoiState.fromServer(roi({ label: null }));
    state.setFields({ name: "mine" });
    expect(state.adopt(roi({ name: "mine", label: "theirs", version: 2 }), { name: "mine" })).toBe(true);
    expect(state.label).toBe("theirs");
  });
});

describe("trouble", () => {
  it("is over with the next change, but a conflict stays until it is decided", () => {
    const state = RoiState.fromServer(roi());
    state.problem = { kind: "refused", message: "too small" };
    state.setFields({ name: "x" });
    expect(state.problem).toBeNull();
    state.problem = { kind: "conflict", message: "" };
    state.setFields({ name: "y" });
    expect(state.problem).not.toBeNull();
  });

  it("ends with taking the server's version, and nothing is left to send", () => {
    const state = RoiState.fromServer(roi());
    state.setFields({ name: "mine", geometry: square(3) });
    state.problem = { kind: "conflict", message: "" };
    state.acceptServer(roi({ name: "theirs", version: 5, deleted_at: "2026-01-03T00:00:00Z" }));
    expect(state).toMatchObject({ name: "theirs", geometry: square(), problem: null, deleted: true });
    expect(state.nextStep).toBeNull();
  });
});
