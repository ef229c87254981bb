/** Names of files that are saved. */

/** Name of an image as a file name without its extension. */
export function stemOf(name: string): string {
  return name.replace(/(\.ome)?\.(?=\w*[a-z])\w{1,5}$/i, "").replace(/[\\/:*?"<>|\s]+/g, "_") || "image";
}
