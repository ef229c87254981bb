/** One image of the compare page, with its ROIs, read-only. */

import type { Extent } from "ol/extent";

import { required } from "../../dom/elements";
import { StageNotice } from "../lib/stage_notice";
import type { CanvasData } from "../lib/types";
import { canvasLayers } from "../map/tile_layers";
import { applyView, writeLink } from "../map/deep_link";
import type { LinkTarget } from "../map/deep_link";
import { MapView } from "../map/map_view";
import { boundsFromExtent, extentFromBounds, l0FromMap, projectionOf } from "../map/pixel_plane";
import { readouts } from "../map/readouts";
import { Labels } from "../rois/store/labels";
import { RoiStore } from "../rois/store/roi_store";
import { RoiLayer } from "../rois/rendering/roi_layer";
import { VideoPlayer } from "../video/player";
import { timeline } from "../video/timeline";
import type { Pose } from "./view_sync";

export class Pane {
  readonly layer: RoiLayer;
  readonly notice: StageNotice;

  private constructor(
    readonly host: HTMLElement,
    readonly canvas: CanvasData,
    readonly mapView: MapView,
    readonly player: VideoPlayer | null,
    private readonly store: RoiStore,
    private readonly labels: Labels,
  ) {
    this.layer = new RoiLayer(store, labels);
    this.notice = new StageNotice(required(host, "[data-stage-notice]"));
    mapView.map.addLayer(this.layer.layer);
  }

  static async open(host: HTMLElement, canvas: CanvasData): Promise<Pane> {
    const projection = projectionOf(canvas);
    const labels = await Labels.load(canvas.id).catch(() => Labels.empty());
    const player = canvas.video ? await VideoPlayer.open(canvas, projection) : null;
    const image = player ? null : canvasLayers(canvas, projection, (count) => showTileErrors(count));
    const target = required(host, "[data-map]");
    const layers = player ? [player.layer] : (image?.layers ?? []);
    const mapView = new MapView(canvas, projection, target, layers, { isFree: true });
    const pane = new Pane(host, canvas, mapView, player, new RoiStore(canvas), labels);
    const showTileErrors = (count: number): void => {
      const retry = { label: "Try now", run: () => image?.retry() };
      if (count) pane.notice.show("Tiles are missing. Loading is tried again until the server answers.", retry);
      else pane.notice.hide();
    };
    readouts(host, mapView, canvas);
    pane.connect();
    return pane;
  }

  get target(): HTMLElement {
    return this.mapView.target;
  }

  /** Show the view of a link; returns whether the link has one. */
  async place(link: LinkTarget): Promise<boolean> {
    this.mapView.map.updateSize(); // the timeline below the image has been laid out by now
    this.mapView.fit(false);
    this.mapView.onPlaced();
    await this.seek(link.t);
    const isPlaced = applyView(this.mapView, link);
    await this.store.load();
    this.loadWindow();
    if (link.roi && !this.store.get(link.roi)) await this.store.fetchOne(link.roi);
    const roi = this.store.get(link.roi);
    if (!roi?.server || roi.deleted) return isPlaced;
    if (link.t === null && roi.frame) await this.seek(roi.frame.pts);
    this.layer.select(roi.id);
    if (!isPlaced) this.fit(extentFromBounds(roi.server.bounds));
    return isPlaced;
  }

  /** Seek the frame nearest to a presentation time; null: the first frame. */
  async seek(pts: number | null): Promise<void> {
    await this.player?.seek(pts === null ? 0 : this.player.frames.nearest(pts));
  }

  fit(extent: Extent): void {
    this.mapView.view.fit(extent, { padding: [60, 60, 60, 60] });
  }

  get pose(): Pose {
    const { view } = this.mapView;
    const [x = 0, y = 0] = view.getCenter() ?? [];
    return { centre: [x, y], resolution: view.getResolution() ?? 1, rotation: view.getRotation() };
  }

  set pose({ centre, resolution, rotation }: Pose) {
    const { view } = this.mapView;
    if (view.getAnimating()) view.cancelAnimations();
    view.setResolution(resolution);
    view.setRotation(rotation);
    view.setCenter(centre);
  }

  link(): LinkTarget {
    const { centre, resolution, rotation } = this.pose;
    const [x, y] = l0FromMap(centre);
    const rot = (rotation * 180) / Math.PI;
    return { x, y, z: resolution, rot, roi: this.layer.selectedId, t: this.player?.frame?.pts ?? null };
  }

  private connect(): void {
    const { host, canvas, mapView, player, layer, store, labels } = this;
    const name = required<HTMLAnchorElement>(host, "[data-pane-name]");
    name.textContent = canvas.name;
    required(host, "[data-pane-case]").textContent = canvas.case.accession;
    this.target.setAttribute("aria-label", `Image ${canvas.name}. Arrow keys pan, plus and minus zoom.`);
    const follow = (): void => {
      name.href = `/canvases/${canvas.id}/?${writeLink(this.link())}`;
    };
    mapView.map.on("moveend", () => {
      follow();
      this.loadWindow();
    });
    layer.on("select", (state) => {
      follow();
      if (state) this.notice.show([state.name, labels.nameOf(state.label)].filter(Boolean).join(" · "));
    });
    mapView.map.on("click", (event) => {
      layer.select(layer.at(event.coordinate, mapView.view.getResolution() ?? 1)?.id ?? null);
    });
    if (!player) return;
    timeline(host, player, store, labels);
    player.on("error", (text) => this.notice.show(text));
    player.on("frame", ({ frame, exact }) => {
      layer.setFilter("frame", (state) => state.frame === null || state.frame.pts === frame.pts);
      if (exact) follow();
    });
  }

  private loadWindow(): void {
    const { view } = this.mapView;
    void this.store.loadWindow(boundsFromExtent(view.calculateExtent()));
  }
}
