/**
 * Several files as one ZIP archive that is never stored: a list of headers and of the files on disk, which are read
 * while they are sent. Nothing is compressed; all sizes have 64 bits (APPNOTE.TXT, 4.3).
 */

import type { SourceFile } from "./file_sets";

const READ_BYTES = 2 ** 22; // at once: scrolling the page does not stutter
const LONG = 0xffffffff; // "see the long field"
const SHORT = 0xffff; // the same of a count
const VERSION = 45; // the first with sizes of 64 bits
const UTF8 = 0x0800; // file names are encoded so
const DAY = 0x21; // the first of 1980: the same files give the same bytes
const PLAIN_FILE = 0o100644 * 2 ** 16; // Unix mode of a regular file
const POLYNOMIAL = 0xedb88320; // of CRC-32, its bits reversed
const MADE_BY = 3 * 2 ** 8; // Unix

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? POLYNOMIAL ^ (value >>> 1) : value >>> 1;
  return value;
});

/** Continue a CRC-32; that of nothing is 0. */
export function crc32(bytes: Uint8Array, before = 0): number {
  let value = ~before;
  for (const byte of bytes) value = (TABLE[(value ^ byte) & 0xff] ?? 0) ^ (value >>> 8);
  return ~value >>> 0;
}

/**
 * Build an archive; every file is read once for its checksum. @param read is called with the number of bytes read so
 * far.
 */
export async function zipArchive(name: string, files: SourceFile[], read: (bytes: number) => void): Promise<File> {
  const parts: BlobPart[] = [];
  const listing: Uint8Array<ArrayBuffer>[] = [];
  let [at, done] = [0, 0];
  for (const { path, file } of files) {
    let checksum = 0;
    for (let from = 0; from < file.size; from += READ_BYTES) {
      const bytes = new Uint8Array(await file.slice(from, from + READ_BYTES).arrayBuffer());
      checksum = crc32(bytes, checksum);
      read((done += bytes.length));
    }
    const called = new TextEncoder().encode(path);
    const about: Field[] = [[VERSION, 2], [UTF8, 2], [0, 4], [DAY, 2], [checksum, 4], [LONG, 4], [LONG, 4], [called.length, 2]];
    const head = concatBytes(fields([0x04034b50, 4], ...about, [20, 2]), called, fields([1, 2], [16, 2], [file.size, 8], [file.size, 8]));
    const entry = fields([0x02014b50, 4], [MADE_BY + VERSION, 2], ...about, [28, 2], [0, 6], [PLAIN_FILE, 4], [LONG, 4]);
    listing.push(concatBytes(entry, called, fields([1, 2], [24, 2], [file.size, 8], [file.size, 8], [at, 8])));
    parts.push(head, file);
    at += head.length + file.size;
  }
  const size = listing.reduce((sum, part) => sum + part.length, 0);
  const count = files.length;
  const far: Field[] = [[0x06064b50, 4], [44, 8], [VERSION, 2], [VERSION, 2], [0, 8], [count, 8], [count, 8], [size, 8], [at, 8]];
  const where: Field[] = [[0x07064b50, 4], [0, 4], [at + size, 8], [1, 4]];
  const end: Field[] = [[0x06054b50, 4], [0, 4], [SHORT, 2], [SHORT, 2], [LONG, 4], [LONG, 4], [0, 2]];
  const lastModified = Math.max(...files.map(({ file }) => file.lastModified));
  return new File([...parts, ...listing, fields(...far, ...where, ...end)], name, { lastModified });
}

/** A whole number and its length in bytes, the lowest first. */
type Field = [value: number, bytes: number];

function fields(...all: Field[]): Uint8Array<ArrayBuffer> {
  const bytes = all.flatMap(([value, length]) => Array.from({ length }, (_, place) => Math.floor(value / 2 ** (8 * place)) % 256));
  return Uint8Array.from(bytes);
}

function concatBytes(...parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(parts.flatMap((part) => Array.from(part)));
}
