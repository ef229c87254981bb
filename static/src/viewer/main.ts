/** The viewer: one for slides, stills, mosaics and videos. */

import "../../css/viewer.css";

import { required } from "../dom/elements";
import { startCompare } from "./compare/start";
import { ImageSwitch } from "./workbench/image_switch";

function showFailure(root: HTMLElement, error: unknown): void {
  console.error(error);
  const host = required(root, "[data-failure]");
  required(host, "p").textContent = error instanceof Error ? error.message : "Unknown error";
  host.hidden = false;
}

const root = document.querySelector<HTMLElement>("[data-viewer]");
if (root) void new ImageSwitch(root, showFailure).show();
const comparePage = document.querySelector<HTMLElement>("[data-compare]");
if (comparePage) void startCompare(comparePage).catch((error: unknown) => showFailure(comparePage, error));
