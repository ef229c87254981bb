/** The viewer: one for slides, stills, mosaics and videos. */

import "../../css/viewer.css";

import { required } from "../dom/elements";
import { startBeside } from "./beside/start";
import { start } from "./page/start";

function showFailure(root: HTMLElement, error: unknown): void {
  console.error(error);
  const host = required(root, "[data-failure]");
  required(host, "p").textContent = error instanceof Error ? error.message : "Unknown error";
  host.hidden = false;
}

const root = document.querySelector<HTMLElement>("[data-viewer]");
if (root) void start(root).catch((error: unknown) => showFailure(root, error));
const beside = document.querySelector<HTMLElement>("[data-beside-panes]");
if (beside) void startBeside(beside).catch((error: unknown) => showFailure(beside, error));
