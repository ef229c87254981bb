/** Drawing, moving and deleting boxes by mouse, touch and keyboard. */
import { element, required } from "../dom/elements";
import { boxBetween, BoxHistory, moveBox, proposeBoxes, resizeBox } from "./boxes";
import type { Box, Finding } from "./boxes";

/** Share of the picture that an arrow key moves a box, and with Alt. */
const STEP = 0.01;
const FINE_STEP = 0.001;
const FRAME_DELAY_MS = 200; // debounce: a dragged slider requests only the frame it stops at

interface Drag {
  start: [number, number];
  /** Index of the box that is moved or resized; -1 draws a new one. */
  index: number;
  isResize: boolean;
  box: Box | null;
}

export class RedactionEditor {
  private readonly stage: HTMLElement;
  private readonly layer: HTMLElement;
  private readonly field: HTMLInputElement;
  private readonly submit: HTMLButtonElement;
  private readonly history: BoxHistory;
  private readonly hadBoxes: boolean;
  private selected = -1;
  private drag: Drag | null = null;

  constructor(private readonly form: HTMLFormElement) {
    this.stage = required(form, "[data-redaction-stage]");
    this.layer = required(form, "[data-redaction-layer]");
    this.field = required<HTMLInputElement>(form, "[name=boxes]");
    this.submit = required<HTMLButtonElement>(form, "[data-redaction-submit]");
    const saved = read<Box[]>("redaction-boxes");
    this.hadBoxes = saved.length > 0;
    const findings = read<Finding[]>("redaction-findings");
    const template = read<Box[]>("redaction-template");
    this.history = new BoxHistory(this.hadBoxes ? saved : proposeBoxes(findings, template));
    this.connectPointer();
    this.connectButtons();
    this.connectFrames();
    document.addEventListener("keydown", (event) => this.handleKey(event));
    this.draw();
  }

  private connectPointer(): void {
    this.layer.addEventListener("pointerdown", (event) => this.handlePointerDown(event));
    this.layer.addEventListener("pointermove", (event) => this.follow(event));
    this.layer.addEventListener("pointerup", () => this.drop());
    this.layer.addEventListener("pointercancel", () => this.cancel());
    this.layer.addEventListener("focusin", (event) => {
      const index = indexOf(event.target);
      if (index >= 0 && index !== this.selected) this.select(index);
    });
  }

  private connectButtons(): void {
    const onClick = (name: string, act: () => void): void =>
      required(this.form, `[data-redaction-${name}]`).addEventListener("click", act);
    onClick("add", () => this.addInMiddle());
    onClick("remove", () => this.remove());
    onClick("undo", () => this.change(() => this.history.undo()));
    onClick("redo", () => this.change(() => this.history.redo()));
    const preview = required<HTMLInputElement>(this.form, "[data-redaction-preview]");
    preview.addEventListener("change", () => this.stage.classList.toggle("is-preview", preview.checked));
  }

  private connectFrames(): void {
    const slider = this.form.querySelector<HTMLInputElement>("[data-redaction-frame]");
    const image = required<HTMLImageElement>(this.stage, "img");
    const problem = required(this.form, "[data-redaction-problem]");
    let timer = 0;
    image.addEventListener("error", () => {
      problem.hidden = false;
      this.stage.removeAttribute("aria-busy");
    });
    const fit = (): void => {
      if (!image.naturalHeight) return;
      this.form.style.setProperty("--picture-ratio", String(image.naturalWidth / image.naturalHeight));
    };
    image.addEventListener("load", () => {
      problem.hidden = true;
      this.stage.removeAttribute("aria-busy");
      fit();
    });
    fit();
    slider?.addEventListener("input", () => {
      clearTimeout(timer);
      timer = window.setTimeout(() => {
        this.stage.setAttribute("aria-busy", "true");
        image.src = `${image.dataset.source ?? ""}?at=${Number(slider.value) / Number(slider.max)}`;
      }, FRAME_DELAY_MS);
    });
  }

  /** Place of an event, as shares of the picture. */
  private at(event: PointerEvent): [number, number] {
    const frame = this.layer.getBoundingClientRect();
    return [(event.clientX - frame.left) / frame.width, (event.clientY - frame.top) / frame.height];
  }

  private handlePointerDown(event: PointerEvent): void {
    if (event.button !== 0 || this.drag) return;
    event.preventDefault();
    this.layer.setPointerCapture(event.pointerId);
    const index = indexOf(event.target);
    const isResize = event.target instanceof HTMLElement && event.target.matches("[data-redaction-corner]");
    this.drag = { start: this.at(event), index, isResize, box: this.history.boxes[index] ?? null };
    this.select(index);
  }

  private follow(event: PointerEvent): void {
    if (!this.drag) return;
    const { start, index, isResize } = this.drag;
    const place = this.at(event);
    const old = this.history.boxes[index];
    if (!old) this.drag.box = boxBetween(start, place);
    else this.drag.box = (isResize ? resizeBox : moveBox)(old, place[0] - start[0], place[1] - start[1]);
    this.draw();
  }

  private drop(): void {
    const drag = this.drag;
    this.drag = null;
    if (drag?.box) {
      const old = this.history.boxes[drag.index];
      if (!old) this.selected = this.history.add(drag.box);
      else if (!isSame(old, drag.box)) this.history.replace(drag.index, drag.box);
    }
    this.draw();
    this.focus();
  }

  private cancel(): void {
    this.drag = null;
    this.select(-1);
  }

  private addInMiddle(): void {
    this.selected = this.history.add({ x: 0.4, y: 0.45, width: 0.2, height: 0.1 });
    this.draw();
    this.focus();
  }

  private remove(): void {
    if (this.selected < 0) return;
    const next = Math.min(this.selected, this.history.boxes.length - 2);
    this.history.remove(this.selected);
    this.selected = next;
    this.draw();
    if (next >= 0) this.focus();
    else required(this.form, "[data-redaction-add]").focus();
  }

  private change(act: () => void): void {
    act();
    this.selected = -1;
    this.draw();
  }

  private handleKey(event: KeyboardEvent): void {
    if (event.target instanceof HTMLInputElement && event.target.type !== "checkbox") return;
    const isControl = event.ctrlKey || event.metaKey;
    const name = event.key.toLowerCase();
    if (isControl && name === "z") this.change(() => (event.shiftKey ? this.history.redo() : this.history.undo()));
    else if (isControl && name === "y") this.change(() => this.history.redo());
    else if (event.key === "Escape" && (this.drag ?? this.selected >= 0)) this.cancel();
    else if ((event.key === "Delete" || event.key === "Backspace") && this.selected >= 0) this.remove();
    else if (!this.step(event)) return;
    event.preventDefault();
  }

  /** Arrow keys move the selected box; with Shift they resize it. */
  private step(event: KeyboardEvent): boolean {
    const steps: Record<string, [number, number]> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, -1],
      ArrowDown: [0, 1],
    };
    const step = steps[event.key];
    const box = this.history.boxes[this.selected];
    if (!step || !box) return false;
    const size = event.altKey ? FINE_STEP : STEP;
    this.history.replace(this.selected, (event.shiftKey ? resizeBox : moveBox)(box, step[0] * size, step[1] * size));
    this.draw();
    this.focus();
    return true;
  }

  private select(index: number): void {
    this.selected = index;
    this.draw();
  }

  private focus(): void {
    this.layer.querySelector<HTMLElement>(`[data-redaction-box="${this.selected}"]`)?.focus();
  }

  private draw(): void {
    const drag = this.drag;
    const boxes = this.history.boxes.map((box, index) => (drag?.index === index && drag.box ? drag.box : box));
    const isFocused = this.layer.contains(document.activeElement);
    this.layer.replaceChildren(...boxes.map((box, index) => this.boxElement(box, index, boxes.length)));
    if (drag && drag.index < 0 && drag.box) this.layer.append(this.boxElement(drag.box, -1, boxes.length));
    if (isFocused && !drag) this.focus();
    const count = boxes.length;
    this.field.value = JSON.stringify(boxes);
    this.submit.disabled = count === 0 && !this.hadBoxes;
    required(this.form, "[data-redaction-count]").textContent =
      count === 0 ? "No box yet" : count === 1 ? "1 box" : `${count} boxes`;
    const enable = (name: string, is: boolean): void => {
      required<HTMLButtonElement>(this.form, `[data-redaction-${name}]`).disabled = !is;
    };
    enable("remove", this.selected >= 0);
    enable("undo", this.history.canUndo);
    enable("redo", this.history.canRedo);
  }

  private boxElement(box: Box, index: number, count: number): HTMLElement {
    const frame = element(
      "div",
      {
        class: index === this.selected ? "redaction__box is-selected" : "redaction__box",
        tabindex: "0",
        role: "group",
        "aria-label": `Box ${index + 1} of ${count}`,
        "data-redaction-box": String(index),
      },
      element("span", { class: "redaction__corner", "data-redaction-corner": "" }),
    );
    frame.style.left = `${100 * box.x}%`;
    frame.style.top = `${100 * box.y}%`;
    frame.style.width = `${100 * box.width}%`;
    frame.style.height = `${100 * box.height}%`;
    return frame;
  }
}

function indexOf(target: EventTarget | null): number {
  const box = target instanceof HTMLElement ? target.closest<HTMLElement>("[data-redaction-box]") : null;
  return box ? Number(box.dataset.redactionBox) : -1;
}

function isSame(one: Box, other: Box): boolean {
  return one.x === other.x && one.y === other.y && one.width === other.width && one.height === other.height;
}

// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- what the template promises
function read<T>(id: string): T {
  return JSON.parse(required(document, `#${id}`).textContent) as T;
}
