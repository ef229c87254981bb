/**
 * Grouping of files into slides: an MRXS with its folder, a VMS or VMU with the files that it names, the objects of a
 * DICOM series in a folder, an OME-Zarr. Other files are sent individually.
 */

/** A file by its path below what was chosen or dropped. */
export interface SourceFile {
  path: string;
  file: File;
}

/** A single file or a set of files sent as one upload. */
export interface UploadItem {
  name: string;
  /** One file, or all files of a set, with their paths in the archive. */
  files: SourceFile[];
  isSet: boolean;
  /** Text naming the missing files; empty if complete. */
  missing: string;
}

const INDEXES = [".mrxs", ".vms", ".vmu"];
const NAMED = /^[ \t]*(INDEXFILE|FILE_\d+|ImageFile(?:\([\d,]+\))?|MapFile|OptimisationFile|MacroImage)[ \t]*=[ \t]*(.*?)[ \t\r]*$/gm;
const CAN_DO_WITHOUT = ["OptimisationFile", "MacroImage"];
const GROUP_FILES = ["zarr.json", ".zgroup", ".zattrs", ".zarray"]; // what makes a folder a part of a Zarr hierarchy
const INDEX_BYTES = 2 ** 22; // no index is longer, and the portal refuses one that is
const HEAD_BYTES = 1024; // a DICOM object states its SOP class within these bytes
const MAGIC_AT = 128; // offset of the letters "DICM"
const NATURAL = new Intl.Collator("en", { numeric: true }); // frame_2 before frame_10
const DICOM_SLIDE = "1.2.840.10008.5.1.4.1.1.77.1.6";

export async function groupFiles(found: SourceFile[]): Promise<UploadItem[]> {
  const zarrs = zarrsOf(found);
  const ofZarr = new Set(zarrs.flatMap(({ files }) => files.map(({ file }) => file)));
  const candidates = found.filter(({ path, file }) => !ofZarr.has(file) && !path.split("/").some((part) => part.startsWith(".")));
  const byPath = new Map(candidates.map((entry) => [entry.path, entry]));
  const sets: UploadItem[] = [...zarrs];
  const used = new Set<SourceFile>();
  for (const main of candidates.filter(({ path }) => INDEXES.some((ending) => path.toLowerCase().endsWith(ending)))) {
    const set = await indexed(main, byPath);
    sets.push(set);
    for (const { file } of set.files) for (const one of candidates) if (one.file === file) used.add(one);
  }
  const series = new Map<string, SourceFile[]>();
  for (const one of candidates.filter((other) => !used.has(other))) {
    const folder = folderOf(one.path);
    if (!folder || !(await isDicomSlide(one.file))) continue;
    series.set(folder, [...(series.get(folder) ?? []), one]);
    used.add(one);
  }
  for (const [folder, files] of series) sets.push(setOf(folder.split("/").at(-2) ?? folder, folder, files, ""));
  const single = candidates.filter((entry) => !used.has(entry)).sort((first, second) => NATURAL.compare(first.path, second.path));
  return [...sets, ...single.map((entry) => ({ name: entry.file.name, files: [entry], isSet: false, missing: "" }))];
}

/** Folders that are Zarr hierarchies, with the hidden files that are theirs. */
function zarrsOf(found: SourceFile[]): UploadItem[] {
  const files = found.filter(({ path }) => path.split("/").every((part) => !part.startsWith(".") || GROUP_FILES.includes(part)));
  const folders = new Set(files.filter(({ path }) => GROUP_FILES.includes(path.split("/").at(-1) ?? "")).map(({ path }) => folderOf(path)));
  const isRoot = (folder: string) => folder !== "" && ![...folders].some((other) => other !== folder && folder.startsWith(other));
  const roots = [...folders].filter(isRoot);
  return roots.map((root) => {
    const name = root.split("/").at(-2) ?? root;
    const inside = files.filter(({ path }) => path.startsWith(root));
    return setOf(name, root.slice(0, -name.length - 1), inside, "");
  });
}

/** Dropped files, folders expanded; null if no folder was dropped. */
export function droppedFiles(transfer: DataTransfer): Promise<SourceFile[]> | null {
  const entries = Array.from(transfer.items, (item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  if (!entries.some((entry) => entry.isDirectory)) return null;
  return Promise.all(entries.map((entry) => filesBelow(entry, ""))).then((lists) => lists.flat());
}

/** Chosen files with their paths below the chosen folder. */
export function chosenFiles(files: FileList | null): SourceFile[] {
  return Array.from(files ?? [], (file) => ({ path: file.webkitRelativePath || file.name, file }));
}

async function filesBelow(entry: FileSystemEntry, above: string): Promise<SourceFile[]> {
  const path = above + entry.name;
  if (entry.isFile) {
    const file = await new Promise<File>((done, failed) => (entry as FileSystemFileEntry).file(done, failed));
    return [{ path, file }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const files: SourceFile[] = [];
  for (;;) {
    // a folder is listed in parts, the last of which is empty
    const some = await new Promise<FileSystemEntry[]>((done, failed) => reader.readEntries(done, failed));
    if (some.length === 0) return files;
    for (const child of some) files.push(...(await filesBelow(child, `${path}/`)));
  }
}

async function indexed(main: SourceFile, byPath: Map<string, SourceFile>): Promise<UploadItem> {
  const stem = main.path.replace(/\.[^.]*$/, "");
  const isMrxs = main.path.toLowerCase().endsWith(".mrxs");
  const inner = isMrxs ? `${stem}/` : folderOf(main.path);
  const index = isMrxs ? byPath.get(`${inner}Slidedat.ini`) : main;
  const files = [main];
  const lacks: string[] = [];
  if (!index) lacks.push(`${inner}Slidedat.ini`);
  for (const [, key = "", name = ""] of ((await index?.file.slice(0, INDEX_BYTES).text()) ?? "").matchAll(NAMED)) {
    const entry = byPath.get(inner + name);
    if (entry && !files.includes(entry)) files.push(entry);
    else if (!entry && name && !CAN_DO_WITHOUT.includes(key)) lacks.push(inner + name);
  }
  if (isMrxs) for (const [path, one] of byPath) if (path.startsWith(inner) && !files.includes(one)) files.push(one);
  const shown = lacks[0]?.slice(folderOf(main.path).length);
  const more = lacks.length > 1 ? ` and ${lacks.length - 1} more are missing` : " is missing";
  const missing = shown ? `${main.file.name} is incomplete: ${shown}${more}. Choose the folder that holds all its files.` : "";
  return setOf(main.file.name, folderOf(main.path), files, missing);
}

function setOf(name: string, folder: string, files: SourceFile[], missing: string): UploadItem {
  const inside = files.map(({ path, file }) => ({ path: path.slice(folder.length), file }));
  inside.sort((one, other) => (one.path < other.path ? -1 : 1));
  return { name, files: inside, isSet: true, missing };
}

/** Folder of a path with a trailing slash; "" for none. */
function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/") + 1);
}

async function isDicomSlide(file: File): Promise<boolean> {
  const head = new TextDecoder("latin1").decode(await file.slice(0, HEAD_BYTES).arrayBuffer());
  return head.startsWith("DICM", MAGIC_AT) && head.includes(DICOM_SLIDE);
}
