import { describe, expect, it } from "vitest";

import { ApiError } from "@/dom/http";
import { transferOutcome, reasonOf } from "@/upload/transfer";

describe("what became of a file that has arrived", () => {
  const damaged = { code: "damaged", message: "a.svs is damaged." };

  it.each(["receiving", "checking"] as const)("is not known while its state is %s", (state) => {
    expect(transferOutcome({ state, error: null })).toBeNull();
  });

  it("is that it is stored, or refused for a reason", () => {
    expect(transferOutcome({ state: "stored", error: null })).toBe("stored");
    expect(transferOutcome({ state: "refused", error: damaged })).toEqual({ reason: "a.svs is damaged.", isFinal: true });
  });

  it("is that it lies in quarantine, where it left the gate between two looks", () => {
    expect(transferOutcome({ state: "quarantined", error: damaged })).toEqual({
      reason: "a.svs is damaged. The file is kept apart; a manager of the lab decides about it.",
      isFinal: true,
      note: "In quarantine",
    });
  });

  it("is that it was deleted, or what else will not pass by itself", () => {
    expect(transferOutcome(new ApiError(404, "not-found", "No such upload."))).toMatchObject({ reason: expect.stringContaining("deleted") as string, isFinal: false });
    expect(transferOutcome(new ApiError(401, "not-signed-in", "Sign in."))).toEqual({ reason: "Sign in.", isFinal: false });
  });

  it.each([new ApiError(0, "offline", "The server does not answer."), new ApiError(503, "busy", "Busy."), new SyntaxError("no JSON")])(
    "is asked for again after %s",
    (error) => expect(transferOutcome(error)).toBeNull(),
  );
});

describe("why a transfer was refused", () => {
  it("is what the server says, or else what is known", () => {
    expect(reasonOf('{"detail": "Storage is full."}', 507)).toBe("Storage is full.");
    expect(reasonOf("<html>", 502)).toBe("The server answered 502. Try again.");
    expect(reasonOf("", 0)).toContain("Try again to continue");
  });
});
