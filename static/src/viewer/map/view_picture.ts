/** Picture of the view: the layers as the map has drawn them, with the colours that the page shows them in. */

import type OlMap from "ol/Map";

import { viewportOf } from "./viewport";

/** Distances within the scale bar, in CSS pixels. */
const BAR = { text: 18, tick: 6 };

/** Draw the map as on screen, once all its tiles are loaded. */
export async function viewPicture(map: OlMap, scaleBar: HTMLElement): Promise<Blob> {
  await new Promise<void>((resolve) => {
    map.once("rendercomplete", () => resolve());
    map.render();
  });
  const target = viewportOf(map);
  const [width = 0, height = 0] = map.getSize() ?? [];
  const picture = document.createElement("canvas");
  [picture.width, picture.height] = [width * devicePixelRatio, height * devicePixelRatio].map(Math.round) as [number, number];
  const context = picture.getContext("2d");
  if (!context) throw new Error("This browser cannot draw the picture.");
  context.fillStyle = getComputedStyle(target.closest(".stage") ?? target).backgroundColor;
  context.fillRect(0, 0, picture.width, picture.height);
  for (const layer of target.querySelectorAll<HTMLElement>(".ol-layers > *")) drawLayer(context, layer);
  drawScaleBar(context, target, scaleBar);
  return new Promise((resolve, reject) => {
    picture.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The picture is too large for this browser."))), "image/png");
  });
}

function drawLayer(context: CanvasRenderingContext2D, layer: HTMLElement): void {
  const { opacity, filter, backgroundColor } = getComputedStyle(layer);
  if (filter !== "none" && !("filter" in context)) {
    throw new Error("This browser cannot draw changed colours: reset them, or use another browser.");
  }
  context.save();
  context.globalAlpha = Number(opacity);
  context.fillStyle = backgroundColor;
  context.fillRect(0, 0, context.canvas.width, context.canvas.height);
  context.filter = filter;
  for (const canvas of layer instanceof HTMLCanvasElement ? [layer] : layer.querySelectorAll("canvas")) {
    if (!canvas.width) continue;
    context.setTransform(new DOMMatrix().scale(devicePixelRatio).multiply(new DOMMatrix(getComputedStyle(canvas).transform)));
    context.drawImage(canvas, 0, 0);
  }
  context.restore();
}

/** The scale bar at its place. */
function drawScaleBar(context: CanvasRenderingContext2D, target: HTMLElement, host: HTMLElement): void {
  const [area, box, line] = [target, host, host.querySelector(".scale-bar-line") ?? host].map((one) => one.getBoundingClientRect());
  if (!area || !box?.width || !line) return;
  const [left, top] = [box.left - area.left, box.top - area.top];
  const { backgroundColor, color, font } = getComputedStyle(host);
  context.save();
  context.scale(devicePixelRatio, devicePixelRatio);
  context.fillStyle = backgroundColor;
  context.fillRect(left, top, box.width, box.height);
  context.fillStyle = context.strokeStyle = color;
  context.font = font;
  context.textAlign = "center";
  context.fillText(host.textContent, left + box.width / 2, top + BAR.text);
  const [from, to, base] = [line.left - area.left + 1, line.right - area.left - 1, line.bottom - area.top - 1];
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(from, base - BAR.tick + 1);
  context.lineTo(from, base);
  context.lineTo(to, base);
  context.lineTo(to, base - BAR.tick + 1);
  context.stroke();
  context.restore();
}
