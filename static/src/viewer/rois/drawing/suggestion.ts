/** One outline that was proposed: dashed until it is accepted, tighter or wider by a step. */

import Feature from "ol/Feature";
import VectorLayer from "ol/layer/Vector";
import VectorSource from "ol/source/Vector";
import Fill from "ol/style/Fill";
import Stroke from "ol/style/Stroke";
import Style from "ol/style/Style";

import { Emitter } from "../../lib/events";
import type { FrameRef, PolygonGeometry, Position } from "../../lib/types";
import { geometryFromL0, mapFromL0 } from "../../map/pixel_plane";
import type { OutlineQuestion, ProposedOutlines } from "../store/outline_proposals";

/** Style of proposed outlines. */
export const PROPOSAL_STYLE = [
  new Style({ stroke: new Stroke({ color: "rgba(255, 255, 255, 0.92)", width: 4.5 }) }),
  new Style({
    stroke: new Stroke({ color: "#10151c", width: 2, lineDash: [7, 6] }),
    fill: new Fill({ color: "rgba(255, 255, 255, 0.12)" }),
  }),
];

export type SuggestionState = "none" | "requested" | "shown";

interface SuggestionEvents {
  change: SuggestionState;
  failed: string;
}

/** Requests and shows proposals; the caller that creates the ROI calls `take`. */
export class OutlineSuggestion extends Emitter<SuggestionEvents> {
  state: SuggestionState = "none";
  private found: ProposedOutlines | null = null;
  private at = 0;
  private frame: FrameRef | null = null;
  private asking: AbortController | null = null;
  private readonly source = new VectorSource<Feature>({ wrapX: false });
  readonly layer = new VectorLayer({ source: this.source, style: PROPOSAL_STYLE, className: "canvas-suggestion" });

  constructor(private readonly propose: (question: OutlineQuestion, signal: AbortSignal) => Promise<ProposedOutlines>) {
    super();
  }

  /** Number of proposals and index of the one shown; 0 is the tightest. */
  get steps(): { count: number; at: number } {
    return { count: this.found?.geometries.length ?? 0, at: this.at };
  }

  async ask(question: OutlineQuestion): Promise<void> {
    this.dismiss();
    const asking = new AbortController();
    this.asking = asking;
    this.frame = question.frame;
    this.setState("requested");
    try {
      const proposal = await this.propose(question, asking.signal);
      if (asking.signal.aborted) return;
      this.found = proposal;
      this.go(proposal.likely);
    } catch (error) {
      if (asking.signal.aborted) return;
      this.dismiss();
      this.emit("failed", error instanceof Error ? error.message : String(error));
    }
  }

  /** True if there was one to widen (or to tighten). */
  step(by: number): boolean {
    if (!this.found) return false;
    this.go(this.at + by);
    return true;
  }

  go(at: number): void {
    const geometries = this.found?.geometries ?? [];
    this.at = Math.min(Math.max(at, 0), geometries.length - 1);
    this.source.clear();
    const geometry = geometries[this.at];
    if (geometry) this.source.addFeature(new Feature(geometryFromL0(geometry)));
    this.setState("shown");
  }

  /** Accept the outline shown: returns it with its frame and hides it. */
  accept(): { geometry: PolygonGeometry; frame: FrameRef | null } | null {
    const geometry = this.found?.geometries[this.at];
    if (!geometry) return null;
    this.dismiss();
    return { geometry, frame: this.frame };
  }

  /** True if there was one, or one was requested. */
  dismiss(): boolean {
    const wasThere = this.state !== "none";
    this.asking?.abort();
    this.asking = null;
    this.found = null;
    this.source.clear();
    if (wasThere) this.setState("none");
    return wasThere;
  }

  isAt(at: Position): boolean {
    return this.source.getFeaturesAtCoordinate(mapFromL0(at)).length > 0;
  }

  private setState(state: SuggestionState): void {
    this.state = state;
    this.emit("change", state);
  }
}
