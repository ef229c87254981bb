/** The labels page: order by dragging or by keys, merge with a preview, retire, publish. */
import { element, required } from "../dom/elements";
import { API_ROOT, ApiError, call, postJson } from "../dom/http";
import { confirmDialog } from "./confirmation";
import { toast } from "./toasts";
import { mergeText, restoredText } from "./label_texts";
import type { Merged, Undone } from "./label_texts";

/** Steps below the top: the server allows four levels. */
const MAX_DEPTH = 3;

export function watchLabels(): void {
  const list = document.querySelector<HTMLElement>("[data-labels]");
  if (!list?.querySelector("[data-label-handle]")) return;
  new LabelOrder(list);
  connectMerging(list);
  connectActs(list.dataset.lab ?? "");
}

const READ_MS = 2500; // as long as it takes to read two short sentences

/** Run a request and show its error; true on success. */
async function attempt(run: () => Promise<unknown>): Promise<boolean> {
  try {
    await run();
    return true;
  } catch (error) {
    toast(error instanceof ApiError ? error.message : "That did not work.", "error");
    // The page is out of date: it is reloaded once the message has been read.
    if (error instanceof ApiError && error.status === 412) setTimeout(() => location.reload(), READ_MS);
    return false;
  }
}

const idOf = (row: HTMLElement): string => row.dataset.label ?? "";
const nameOf = (row: HTMLElement): string => row.dataset.name ?? "";
const depthOf = (row: HTMLElement | undefined): number => Number(row?.dataset.depth ?? -1);

class LabelOrder {
  private moving: HTMLElement | null = null;

  constructor(private readonly list: HTMLElement) {
    for (const row of this.rows) {
      const handle = required(row, "[data-label-handle]");
      handle.addEventListener("keydown", (event) => this.handleKey(event, row));
      handle.addEventListener("dragstart", (event) => this.handleDragStart(event, row));
      handle.addEventListener("dragend", () => this.drop());
    }
    list.addEventListener("dragover", (event) => this.handleDragOver(event));
    list.addEventListener("drop", (event) => event.preventDefault());
  }

  private get rows(): HTMLElement[] {
    return [...this.list.querySelectorAll<HTMLElement>("[data-label]")];
  }

  /** A label and those below it. */
  private branch(row: HTMLElement): HTMLElement[] {
    const rows = this.rows;
    const at = rows.indexOf(row);
    const end = rows.findIndex((other, index) => index > at && depthOf(other) <= depthOf(row));
    return rows.slice(at, end < 0 ? undefined : end);
  }

  private handleKey(event: KeyboardEvent, row: HTMLElement): void {
    const moves: Record<string, () => void> = {
      ArrowUp: () => this.step(row, -1),
      ArrowDown: () => this.step(row, 1),
      ArrowRight: () => this.deepen(row, 1),
      ArrowLeft: () => this.deepen(row, -1),
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
    required(row, "[data-label-handle]").focus();
    void this.save(`${nameOf(row)} moved.`);
  }

  private step(row: HTMLElement, by: number): void {
    const branch = this.branch(row);
    const rest = this.rows.filter((other) => !branch.includes(other));
    const before = this.rows.indexOf(row) + by;
    rest.splice(Math.max(0, Math.min(before, rest.length)), 0, ...branch);
    this.list.append(...rest);
    this.settle();
  }

  private deepen(row: HTMLElement, by: number): void {
    const branch = this.branch(row);
    for (const label of branch) label.dataset.depth = String(Math.max(0, depthOf(label) + by));
    this.settle();
  }

  /** Limit each label's depth to one step below the label before it. */
  private settle(): void {
    let before = -1;
    for (const row of this.rows) {
      const depth = Math.max(0, Math.min(depthOf(row), before + 1, MAX_DEPTH));
      row.dataset.depth = String(depth);
      row.style.setProperty("--depth", String(depth));
      before = depth;
    }
  }

  private handleDragStart(event: DragEvent, row: HTMLElement): void {
    this.moving = row;
    event.dataTransfer?.setData("text/plain", nameOf(row));
    event.dataTransfer?.setDragImage(row, 20, 20);
    row.classList.add("is-moving");
  }

  private handleDragOver(event: DragEvent): void {
    const target = (event.target as Element).closest<HTMLElement>("[data-label]");
    if (!this.moving || !target) return;
    event.preventDefault();
    const branch = this.branch(this.moving);
    if (branch.includes(target)) return;
    const { top, height } = target.getBoundingClientRect();
    if (event.clientY < top + height / 2) target.before(...branch);
    else target.after(...branch);
    this.settle();
  }

  private drop(): void {
    const row = this.moving;
    this.moving = null;
    row?.classList.remove("is-moving");
    if (row) void this.save(`${nameOf(row)} moved.`);
  }

  private async save(text: string): Promise<void> {
    const parents: string[] = [];
    const labels = this.rows.map((row) => {
      const depth = depthOf(row);
      parents[depth] = idOf(row);
      return { id: idOf(row), parent: depth > 0 ? (parents[depth - 1] ?? null) : null };
    });
    const isDone = await attempt(() => postJson(`${API_ROOT}/labels/order/`, { lab: this.list.dataset.lab, labels }));
    if (isDone) toast(text, "success");
  }
}

function connectMerging(list: HTMLElement): void {
  const dialog = required<HTMLDialogElement>(document, "[data-label-dialog]");
  const into = required<HTMLSelectElement>(dialog, "[data-merge-into]");
  const preview = required(dialog, "[data-merge-preview]");
  const rows = [...list.querySelectorAll<HTMLElement>("[data-label]")];
  let source: HTMLElement | null = null;
  const url = (): string => `${API_ROOT}/labels/${source ? idOf(source) : ""}/merge/`;
  const show = async (): Promise<void> => {
    preview.textContent = "Counting…";
    await attempt(async () => {
      preview.textContent = mergeText(await postJson<Merged>(url(), { into: into.value, preview: true }));
    });
  };
  for (const row of rows) {
    row.querySelector("[data-label-merge]")?.addEventListener("click", () => {
      source = row;
      required(dialog, "[data-merge-name]").textContent = nameOf(row);
      const others = rows.filter((other) => other !== row);
      into.replaceChildren(...others.map((other) => element("option", { value: idOf(other) }, nameOf(other))));
      dialog.returnValue = "";
      dialog.showModal();
      void show();
    });
  }
  into.addEventListener("change", () => void show());
  dialog.addEventListener("close", () => {
    if (dialog.returnValue !== "merge") return;
    void attempt(() => postJson(url(), { into: into.value })).then((isDone) => isDone && location.reload());
  });
}

function connectActs(lab: string): void {
  const patch = (row: HTMLElement, body: object): void => {
    const options = { method: "PATCH", body, ifMatch: row.dataset.tag ?? "" };
    const run = (): Promise<unknown> => call(`${API_ROOT}/labels/${idOf(row)}/`, options);
    void attempt(run).then((isDone) => isDone && location.reload());
  };
  for (const row of document.querySelectorAll<HTMLElement>("[data-label]")) {
    row.querySelector<HTMLElement>("[data-label-retire]")?.addEventListener("click", (event) => {
      const count = Number((event.currentTarget as HTMLElement).dataset.count);
      const text = `Retire ${nameOf(row)}? ${count} ${count === 1 ? "region keeps" : "regions keep"} it; new regions cannot get it. It can be brought back.`;
      void confirmDialog(text, "Retire").then((isSure) => isSure && patch(row, { retired: true }));
    });
    row.querySelector("[data-label-return]")?.addEventListener("click", () => patch(row, { retired: false }));
  }
  for (const button of document.querySelectorAll<HTMLElement>("[data-merge-undo]")) {
    button.addEventListener("click", () => {
      const run = async (): Promise<void> => {
        const undone = await postJson<Undone>(`${API_ROOT}/label-merges/${button.dataset.mergeUndo ?? ""}/undo/`, {});
        toast(restoredText(undone), "success");
      };
      void attempt(run).then((isDone) => isDone && setTimeout(() => location.reload(), 1500));
    });
  }
  const form = document.querySelector<HTMLFormElement>("[data-label-publish]");
  form?.addEventListener("submit", (event) => {
    event.preventDefault();
    const note = new FormData(form).get("note");
    void attempt(() => postJson(`${API_ROOT}/label-versions/`, { lab, note })).then((isDone) => isDone && location.reload());
  });
}
