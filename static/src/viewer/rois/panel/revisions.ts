/** Who changed what of an ROI and when, with drawings; any version can be brought back as a new one. */

import { roiRevisions } from "../store/api";
import { dateText } from "../../../dom/dates";
import { element, required } from "../../../dom/elements";
import type { Labels } from "../store/labels";
import { sameGeometry } from "../../map/pixel_plane";
import { sameTrack } from "../store/roi_state";
import { propertyChanges } from "./properties";
import { outlinePreview } from "../rendering/outline_preview";
import type { RoiState } from "../store/roi_state";
import type { RoiEdits } from "../store/edits";
import type { RoiRevision } from "../../lib/types";

const WORDS: Record<string, string> = {
  create: "Drawn",
  update: "Changed",
  delete: "Deleted",
  restore: "Restored",
};

/** "outline", "label Tumor → Stroma": what a version changed of the one before it. */
export function changesText(before: RoiRevision, after: RoiRevision, nameOf: (label: string | null) => string): string[] {
  const changes: string[] = [];
  if (!sameGeometry(before.geometry, after.geometry)) changes.push("outline");
  if (!sameTrack(before.track, after.track)) changes.push(`key frames ${before.track.length} → ${after.track.length}`);
  if (before.label !== after.label) changes.push(`label ${labelNameIn(before, nameOf)} → ${labelNameIn(after, nameOf)}`);
  if (before.name !== after.name) changes.push(`name ${before.name || "none"} → ${after.name || "none"}`);
  if ((before.description || "") !== (after.description || "")) changes.push("description");
  changes.push(...propertyChanges(before.properties, after.properties));
  if (before.locked !== after.locked) changes.push(after.locked ? "locked" : "unlocked");
  if (before.review_state !== after.review_state) changes.push(`review ${before.review_state} → ${after.review_state}`);
  return changes;
}

/** Name of the label at the time of the revision. */
const labelNameIn = ({ label, label_name }: RoiRevision, nameOf: (label: string | null) => string): string =>
  label_name || nameOf(label);

export class Revisions {
  private readonly list: HTMLElement;
  private shown = "";
  private state: RoiState | null = null;

  constructor(
    private readonly host: HTMLElement,
    private readonly edits: RoiEdits,
    private readonly labels: Labels,
    private readonly canAnnotate: boolean,
  ) {
    this.list = required(host, "ol");
    host.addEventListener("toggle", () => void this.load());
  }

  show(state: RoiState): void {
    this.state = state;
    if (!state.server) this.list.replaceChildren();
    void this.load();
  }

  private async load(): Promise<void> {
    const { state } = this;
    if (!state?.server || this.host.hidden) return;
    const key = `${state.id}/${state.server.version}`;
    if (key === this.shown) return;
    this.shown = key;
    try {
      const revisions = await roiRevisions(state.id);
      if (this.shown !== key) return;
      revisions.sort((a, b) => b.version - a.version);
      this.list.replaceChildren(...revisions.map((revision, at) => this.row(state, revision, revisions[at + 1] ?? null)));
    } catch (error) {
      this.shown = "";
      const reason = error instanceof Error ? error.message : "";
      this.list.replaceChildren(element("li", {}, `The history could not be read. ${reason}`));
    }
  }

  private row(state: RoiState, revision: RoiRevision, before: RoiRevision | null): HTMLLIElement {
    const facts = [WORDS[revision.action] ?? revision.action, "by", revision.author ?? "somebody who left"].join(" ");
    const changes = before ? changesText(before, revision, (label) => this.labels.nameOf(label)) : [];
    const isRedrawn = before !== null && !sameGeometry(before.geometry, revision.geometry);
    const row = element(
      "li",
      {},
      element("span", { class: "revision-number" }, String(revision.version)),
      outlinePreview(revision.geometry, this.labels.colorOf(revision.label), isRedrawn ? before.geometry : null),
      element("span", {}, changes.length ? `${facts}: ${changes.join(", ")}` : facts),
      element("time", { datetime: revision.created_at }, dateText(revision.created_at)),
    );
    const isOlder = revision.version !== state.server?.version && revision.action !== "delete";
    if (this.canAnnotate && isOlder) row.append(this.restoreButton(state, revision));
    return row;
  }

  private restoreButton(state: RoiState, { geometry, shape, track, label, name, description, properties, version }: RoiRevision): HTMLElement {
    const click = (): void => {
      this.edits.change(state, { geometry, shape, track, label, name, description, properties }, `Bring back version ${version}`);
    };
    const title = `Bring back version ${version} as a new version`;
    return element("button", { type: "button", class: "btn btn--small btn--quiet", title, click }, "Bring back");
  }
}
