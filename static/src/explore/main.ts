/** The map of a lab's regions, `[data-region-map]`. */
import { startRegionMap } from "./region_map";

const root = document.querySelector<HTMLElement>("[data-region-map]");
if (root) void startRegionMap(root);
