/** The map of a lab's regions, `[data-region-map]`. */
import { startRegionMap } from "./page";

const root = document.querySelector<HTMLElement>("[data-region-map]");
if (root) void startRegionMap(root);
