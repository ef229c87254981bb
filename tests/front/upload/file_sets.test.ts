import { describe, expect, it } from "vitest";

import { groupFiles } from "../../../static/src/upload/file_sets";
import type { SourceFile } from "../../../static/src/upload/file_sets";

const SLIDEDAT = "[HIERARCHICAL]\r\nINDEXFILE = Index.dat\r\n[DATAFILE]\r\nFILE_COUNT = 1\r\nFILE_0 = Data0000.dat\r\n";
const VMS = "[Virtual Microscope Specimen]\nImageFile=p.jpg\nImageFile(1,0)=q.jpg\nMapFile=m.jpg\nOptimisationFile=o.opt\n";
const DICOM = `${"\0".repeat(128)}DICM..1.2.840.10008.5.1.4.1.1.77.1.6`;

function found(contents: Record<string, string>): SourceFile[] {
  return Object.entries(contents).map(([path, text]) => ({ path, file: new File([text], path.split("/").at(-1) ?? path) }));
}

async function shown(contents: Record<string, string>): Promise<string[]> {
  const things = await groupFiles(found(contents));
  return things.map(({ name, files, missing }) => `${name}: ${files.map(({ path }) => path).join(" ")}${missing && ` (${missing})`}`);
}

describe("what belongs to one slide", () => {
  it("is an MRXS with its folder, and nothing else beside it", async () => {
    const inner = { "in/s/Slidedat.ini": SLIDEDAT, "in/s/Index.dat": "", "in/s/Data0000.dat": "" };
    const all = { "in/s.mrxs": "", ...inner, "in/other.svs": "", "in/.DS_Store": "", "in/s2/x.jpg": "" };
    expect(await shown(all)).toEqual([
      "s.mrxs: s.mrxs s/Data0000.dat s/Index.dat s/Slidedat.ini",
      "other.svs: in/other.svs",
      "x.jpg: in/s2/x.jpg",
    ]);
  });

  it("is a VMS with the files that it names, also without a folder", async () => {
    expect(await shown({ "a.vms": VMS, "p.jpg": "", "q.jpg": "", "m.jpg": "", "z.jpg": "" })).toEqual([
      "a.vms: a.vms m.jpg p.jpg q.jpg",
      "z.jpg: z.jpg",
    ]);
  });

  it("is the DICOM objects of a folder; of none, each is for itself", async () => {
    expect(await shown({ "d/one/1.dcm": DICOM, "d/one/2.dcm": DICOM, "d/one/read.txt": "", "3.dcm": DICOM })).toEqual([
      "one: 1.dcm 2.dcm",
      "3.dcm: 3.dcm",
      "read.txt: d/one/read.txt",
    ]);
  });

  it("is a Zarr with all that is below it, its hidden files too", async () => {
    const zarr = { "in/a.zarr/.zattrs": "", "in/a.zarr/.zgroup": "", "in/a.zarr/0/.zarray": "", "in/a.zarr/0/0/1": "", "in/a.zarr/.DS_Store": "" };
    expect(await shown({ ...zarr, "in/b/zarr.json": "", "in/b/0/c/0": "", "in/c.svs": "" })).toEqual([
      "a.zarr: a.zarr/.zattrs a.zarr/.zgroup a.zarr/0/.zarray a.zarr/0/0/1",
      "b: b/0/c/0 b/zarr.json",
      "c.svs: in/c.svs",
    ]);
  });

  it("leaves frames in the order of their numbers", async () => {
    const frames = { "in/frame_10.png": "", "in/frame_2.png": "", "in/frame_1.png": "" };
    expect(await shown(frames)).toEqual(["frame_1.png: in/frame_1.png", "frame_2.png: in/frame_2.png", "frame_10.png: in/frame_10.png"]);
  });

  it("says which files are not there", async () => {
    const all = { "s.mrxs": "", "s/Slidedat.ini": SLIDEDAT, "s/Index.dat": "" };
    expect((await groupFiles(found(all)))[0]?.missing).toContain("s.mrxs is incomplete: s/Data0000.dat is missing.");
    expect((await groupFiles(found({ "s.mrxs": "" })))[0]?.missing).toContain("s/Slidedat.ini is missing");
    expect((await groupFiles(found({ "a.vms": VMS, "p.jpg": "" })))[0]?.missing).toContain("q.jpg and 1 more are missing");
  });
});
