import type { CanvasData, Level } from "@/viewer/lib/types";

/** A level as the server tells it, in tiles of 256 px unless said otherwise. */
export function level(width: number, height: number, downsample: number, tile = 256): Level {
  return { width, height, downsample, tile_width: tile, tile_height: tile };
}

/** A slide of 1000 x 700 px in two levels, but for what is given. */
export function canvas(given: Partial<CanvasData> = {}): CanvasData {
  return {
    id: "c1",
    kind: "slide",
    modality: "histology",
    is_modality_by_hand: false,
    name: "Slide 1",
    case: { id: "k1", accession: "A-1" },
    width: 1000,
    height: 700,
    stain: "",
    mpp_x: 0.5,
    mpp_y: 0.5,
    levels: [level(1000, 700, 1), level(250, 175, 4)],
    tile_url: "/tiles/old/{z}/{x}/{y}.jpg",
    thumbnail_url: null,
    video: null,
    can_annotate: true,
    can_review: true,
    can_scale: false,
    has_icc_profile: false,
    is_scaled_by_hand: false,
    display_range: null,
    file_display_range: null,
    can_set_display_range: false,
    ...given,
  };
}
