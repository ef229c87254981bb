import { describe, expect, it } from "vitest";

import { zipArchive, crc32 } from "../../../static/src/upload/zip_archive";
import type { SourceFile } from "../../../static/src/upload/file_sets";

const SIGNATURES = { local: 0x04034b50, central: 0x02014b50, far: 0x06064b50, end: 0x06054b50 };
const files: SourceFile[] = [
  { path: "a.vms", file: new File(["123456789"], "a.vms", { lastModified: 5 }) },
  { path: "ü/b.jpg", file: new File(["x".repeat(70_000)], "b.jpg", { lastModified: 9 }) },
];

describe("the archive of a set", () => {
  it("has the checksum that everybody computes", () => {
    expect(crc32(new TextEncoder().encode("123456789"))).toBe(0xcbf43926);
    const halves = crc32(new TextEncoder().encode("56789"), crc32(new TextEncoder().encode("1234")));
    expect(halves).toBe(0xcbf43926);
  });

  it("holds each file where its list says, under its path, in the bytes it has", async () => {
    const read: number[] = [];
    const made = await zipArchive("a.zip", files, (bytes) => read.push(bytes));
    expect([made.name, made.lastModified, read.at(-1)]).toEqual(["a.zip", 9, 70_009]);
    const bytes = new Uint8Array(await made.arrayBuffer());
    const view = new DataView(bytes.buffer);
    expect(view.getUint32(bytes.length - 22, true)).toBe(SIGNATURES.end);
    const far = Number(view.getBigUint64(bytes.length - 42 + 8, true));
    expect(view.getUint32(far, true)).toBe(SIGNATURES.far);
    expect(Number(view.getBigUint64(far + 32, true))).toBe(files.length);
    let entry = Number(view.getBigUint64(far + 48, true));
    for (const { path, file } of files) {
      expect(view.getUint32(entry, true)).toBe(SIGNATURES.central);
      const named = view.getUint16(entry + 28, true);
      expect(new TextDecoder().decode(bytes.slice(entry + 46, entry + 46 + named))).toBe(path);
      const at = Number(view.getBigUint64(entry + 46 + named + 20, true));
      expect(view.getUint32(at, true)).toBe(SIGNATURES.local);
      const start = at + 30 + view.getUint16(at + 26, true) + view.getUint16(at + 28, true);
      expect(bytes.slice(start, start + file.size)).toEqual(new Uint8Array(await file.arrayBuffer()));
      expect(view.getUint32(at + 14, true)).toBe(crc32(bytes.slice(start, start + file.size)));
      entry += 46 + named + view.getUint16(entry + 30, true);
    }
    expect(entry).toBe(far);
    expect(new Uint8Array(await (await zipArchive("a.zip", files, () => undefined)).arrayBuffer())).toEqual(bytes);
  });
});
