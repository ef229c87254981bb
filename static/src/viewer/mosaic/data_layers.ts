/**
 * Coverage, count, uncertainty and time over a mosaic: one at a time, with opacity, legend and the
 * value under the pointer.
 */

import type OlMap from "ol/Map";
import type BaseLayer from "ol/layer/Base";
import type Projection from "ol/proj/Projection";

import { colorAt, gradientOf, rampOf } from "./color_ramp";
import { element, required } from "../../dom/elements";
import type { MosaicLayerData, MosaicComponentData } from "./api";
import { l0FromMap } from "../map/pixel_plane";
import { ImageOverlay } from "../map/image_overlay";
import { colorRange, colorShare, valueAtPointerText, valueText } from "./layer_values";

const WORDS: Record<string, [string, string]> = {
  coverage: ["Coverage", "What was seen at all"],
  count: ["Count", "How many frames saw it"],
  uncertainty: ["Uncertainty", "How far its position may be off"],
  time: ["First seen", "When the scope first saw it"],
  time_last: ["Last seen", "When the scope last saw it"],
};

/** The mosaic still shows through; the slider of the page begins there. */
const FIRST_OPACITY = 0.6;

interface Painted {
  picture: HTMLCanvasElement;
  grey: Uint8ClampedArray;
  width: number;
  height: number;
}

export class MosaicDataLayers {
  private readonly picture: ImageOverlay;
  private readonly painted = new Map<string, Promise<Painted>>();
  private shown: { data: MosaicLayerData; painted: Painted } | null = null;
  private current = "";

  constructor(
    private readonly root: HTMLElement,
    private readonly component: MosaicComponentData,
    projection: Projection,
    private readonly onError: (text: string) => void,
  ) {
    this.picture = new ImageOverlay(projection, { className: "mosaic-layer", opacity: FIRST_OPACITY });
    this.layer.setVisible(false);
    this.list();
    const opacity = required<HTMLInputElement>(root, "[data-layer-opacity]");
    opacity.addEventListener("input", () => this.layer.setOpacity(Number(opacity.value) / 100));
  }

  get layer(): BaseLayer {
    return this.picture.layer;
  }

  /** T: the next one; none after the last. */
  next(): void {
    const names = ["", ...this.component.layers.map((layer) => layer.name)];
    void this.choose(names[(names.indexOf(this.current) + 1) % names.length] ?? "");
  }

  followPointer(map: OlMap): void {
    map.on("pointermove", (event) => this.read(l0FromMap(event.coordinate)));
  }

  private list(): void {
    const { layers } = this.component;
    required(this.root, "[data-layers-none]").hidden = layers.length > 0;
    if (!layers.length) return;
    const rows: [string, string, string][] = [["", "None", "The mosaic alone"]];
    for (const { name } of layers) rows.push([name, ...(WORDS[name] ?? [name, ""])] as [string, string, string]);
    required(this.root, "[data-layers]").replaceChildren(
      ...rows.map(([name, title, says]) =>
        element(
          "label",
          { class: "layer-row" },
          element("input", { type: "radio", name: "mosaic-layer", value: name, checked: name === "", change: () => void this.choose(name) }),
          element("span", { class: "layer-title" }, title),
          element("span", { class: "layer-description" }, says),
        ),
      ),
    );
  }

  private async choose(name: string): Promise<void> {
    this.current = name;
    for (const input of this.root.querySelectorAll<HTMLInputElement>("[name=mosaic-layer]")) input.checked = input.value === name;
    const data = this.component.layers.find((layer) => layer.name === name);
    if (!data) return this.hide();
    try {
      const painted = this.painted.get(name) ?? paintedOf(data);
      this.painted.set(name, painted);
      const ready = await painted;
      if (this.current !== name) return;
      this.shown = { data, painted: ready };
      const { picture: image, width, height } = ready;
      this.picture.show({ image, width: width * data.downsample, height: height * data.downsample });
      this.layer.setVisible(true);
      this.legend(data);
    } catch {
      this.painted.delete(name);
      this.hide();
      this.onError("The layer could not be loaded.");
    }
  }

  private hide(): void {
    this.shown = null;
    this.layer.setVisible(false);
    required(this.root, "[data-layer-settings]").hidden = true;
  }

  private legend(data: MosaicLayerData): void {
    required(this.root, "[data-layer-settings]").hidden = false;
    required(this.root, "[data-layer-ramp]").style.background = gradientOf(rampOf(data.name));
    const isFlat = data.name === "coverage";
    const [low, high] = colorRange(data);
    required(this.root, "[data-layer-minimum]").textContent = isFlat ? "seen" : valueText(data, low);
    required(this.root, "[data-layer-maximum]").textContent = isFlat ? "" : valueText(data, high);
    this.read([-1, -1]);
  }

  /** The value under the pointer, as a mark on the legend. */
  private read([x, y]: [number, number]): void {
    if (!this.shown) return;
    const { data, painted } = this.shown;
    const [i, j] = [Math.floor(x / data.downsample), Math.floor(y / data.downsample)];
    const isInside = i >= 0 && j >= 0 && i < painted.width && j < painted.height;
    const byte = isInside ? (painted.grey[j * painted.width + i] ?? 0) : 0;
    const mark = required(this.root, "[data-layer-mark]");
    mark.hidden = byte === 0 || data.name === "coverage";
    mark.style.left = `${100 * colorShare(data, byte)}%`;
    required(this.root, "[data-layer-value]").textContent = isInside ? valueAtPointerText(data, byte) : "";
  }
}

async function paintedOf(data: MosaicLayerData): Promise<Painted> {
  const response = await fetch(data.url);
  if (!response.ok) throw new Error(`layer: ${response.status}`);
  const bitmap = await createImageBitmap(await response.blob());
  const picture = document.createElement("canvas");
  const [width, height] = [bitmap.width, bitmap.height];
  [picture.width, picture.height] = [width, height];
  const context = picture.getContext("2d", { willReadFrequently: true });
  if (!context) throw new Error("layer: no canvas");
  context.drawImage(bitmap, 0, 0);
  const pixels = context.getImageData(0, 0, width, height);
  const grey = new Uint8ClampedArray(width * height);
  const ramp = rampOf(data.name);
  const colors = Array.from({ length: 256 }, (_, byte) => colorAt(ramp, colorShare(data, byte)));
  for (let i = 0; i < grey.length; i += 1) {
    const byte = pixels.data[4 * i] ?? 0;
    grey[i] = byte;
    const [red, green, blue] = colors[byte] ?? [0, 0, 0];
    pixels.data.set([red, green, blue, byte === 0 ? 0 : 255], 4 * i);
  }
  context.putImageData(pixels, 0, 0);
  bitmap.close();
  return { picture, grey, width, height };
}
