/** Other users who have this canvas open: initials in the header, and their selections on the map. */

import Feature from "ol/Feature";
import { getTopLeft } from "ol/extent";
import type { Extent } from "ol/extent";
import Point from "ol/geom/Point";
import { fromExtent } from "ol/geom/Polygon";
import type Polygon from "ol/geom/Polygon";
import VectorLayer from "ol/layer/Vector";
import VectorSource from "ol/source/Vector";
import { Fill, Stroke, Style, Text } from "ol/style";

import { element, required } from "../../dom/elements";
import { boundsFromExtent, extentFromBounds } from "../map/pixel_plane";
import { LiveUpdates } from "../rois/store/live_updates";
import type { Person, Presence } from "../rois/store/live_updates";
import type { Parts } from "./parts";

/** White on each of them can be read. */
const HUES = ["#0b5f69", "#b02f5a", "#7d4b00", "#1d5593", "#17653a", "#6b3fa0", "#a8231b", "#4a5a12"];
/** Largest number of avatars: more would hide the name of the image. */
const MAX_SHOWN = 5;

export function connectCollaborators(parts: Parts): void {
  const { root, canvas, store, layer, mapView, notice, events } = parts;
  const host = required(root, "[data-collaborators]");
  const others = root.querySelector<HTMLElement>("[data-roi-others]");
  const source = new VectorSource<Feature<Polygon>>({ wrapX: false });
  mapView.map.addLayer(new VectorLayer({ source, className: "canvas-people" }));
  const presence = (): Presence => ({
    view: boundsFromExtent(mapView.view.calculateExtent()).map(Math.round) as [number, number, number, number],
    roi: layer.selectedId,
  });
  const live = new LiveUpdates(canvas.id, store, presence, events ? () => events.store.load() : undefined);
  const goTo = ({ name, view }: Person): void => {
    if (!view) return;
    mapView.view.fit(extentFromBounds(view));
    notice.show(`This is what ${name} sees.`);
  };
  const showOthers = (): void => {
    const here = live.people.filter(({ roi }) => roi !== null && roi === layer.selectedId);
    if (!others) return;
    others.hidden = here.length === 0;
    const names = here.map(({ name }) => name).join(" and ");
    others.textContent = `${names} ${here.length > 1 ? "have" : "has"} also selected this region.`;
    others.title = `${others.textContent} Everyone here can change it; conflicting changes are merged.`;
  };
  const mark = (): void => {
    source.clear(true);
    for (const person of live.people) {
      const state = store.get(person.roi);
      const extent = layer.featureOf(state?.id ?? null)?.getGeometry()?.getExtent();
      if (!extent) continue;
      const feature = new Feature(fromExtent(extent));
      feature.setStyle(stylesOf(person, extent));
      source.addFeature(feature);
    }
  };
  live.on("people", (people) => {
    host.hidden = people.length === 0;
    const shown = people.slice(0, MAX_SHOWN).map((person) => avatar(person, () => goTo(person)));
    const rest = people.length - MAX_SHOWN;
    const names = people.slice(MAX_SHOWN).map(({ name }) => name).join(", ");
    const more = rest > 0 ? [element("span", { class: "avatar avatar--more", title: names }, `+${rest}`)] : [];
    host.replaceChildren(...shown, ...more);
    mark();
    showOthers();
  });
  store.on("changed", mark);
  store.on("removed", mark);
  layer.on("select", showOthers);
  live.start(parts.leaving);
}

function avatar({ name, initials, hue, view }: Person, run: () => void): HTMLElement {
  const title = view ? `${name} is here, too. Show what they see.` : `${name} is here, too.`;
  const button = element("button", { type: "button", class: "avatar", title, "aria-label": title, click: run }, initials);
  button.style.setProperty("--hue", HUES[hue % HUES.length] ?? "");
  return button;
}

/** A dashed box around the region, and initials on its upper left corner. */
function stylesOf({ initials, hue }: Person, extent: Extent): Style[] {
  const color = HUES[hue % HUES.length] ?? "";
  return [
    new Style({ stroke: new Stroke({ color, width: 2, lineDash: [6, 5] }) }),
    new Style({
      geometry: new Point(getTopLeft(extent)),
      text: new Text({
        text: initials,
        font: "600 12px sans-serif",
        fill: new Fill({ color: "#ffffff" }),
        backgroundFill: new Fill({ color }), // not drawn for text along a line
        padding: [3, 5, 2, 5],
        textAlign: "left",
        textBaseline: "bottom",
        offsetX: 5,
        offsetY: -3,
      }),
    }),
  ];
}
