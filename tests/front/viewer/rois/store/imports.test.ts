import { describe, expect, it } from "vitest";

import { isUndoable } from "@/viewer/rois/store/imports";
import type { Job } from "@/viewer/lib/jobs";
import type { ImportReport, RoiImport } from "@/viewer/rois/store/imports";

const row = (stage: RoiImport["stage"], job: Job["state"] | null, more: Partial<RoiImport> = {}): RoiImport => ({
  ...{ id: "1", canvas: "c1", created_at: "2026-01-02T03:04:05Z", format: "geojson", name: "a.geojson", stage, done: 1, undone: null, undone_at: null },
  job: job && ({ id: "2", state: job } as Job),
  report: { created: 1, updated: 0, restored: 0 } as ImportReport,
  ...more,
});

describe("what can be taken back on a later visit", () => {
  it("is what was imported, or was stopped on its way in or out", () => {
    expect(isUndoable(row("imported", null))).toBe(true);
    expect(isUndoable(row("imported", "succeeded"))).toBe(true);
    expect(isUndoable(row("importing", "cancelled"))).toBe(true);
    expect(isUndoable(row("undoing", "failed"))).toBe(true);
  });

  it("is not what a job is at, what was only looked at, wrote nothing or is taken back", () => {
    expect(isUndoable(row("importing", "running"))).toBe(false);
    expect(isUndoable(row("undoing", "queued"))).toBe(false);
    expect(isUndoable(row("previewed", "succeeded"))).toBe(false);
    expect(isUndoable(row("imported", null, { undone_at: "2026-01-01T00:00:00Z" }))).toBe(false);
    expect(isUndoable(row("imported", null, { report: null }))).toBe(false);
    const nothing = { created: 0, updated: 0, restored: 0 } as ImportReport;
    expect(isUndoable(row("imported", null, { report: nothing }))).toBe(false);
  });
});
