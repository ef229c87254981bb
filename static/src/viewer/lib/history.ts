/** Undo and redo of all that was done since the page was opened. */

import { Emitter } from "./events";

export interface Command {
  label: string;
  undo: () => void;
  redo: () => void;
}

export class History extends Emitter<{ change: null }> {
  private past: Command[] = [];
  private future: Command[] = [];
  private group: Command[] | null = null;

  get undoLabel(): string | null {
    return this.past.at(-1)?.label ?? null;
  }

  get redoLabel(): string | null {
    return this.future.at(-1)?.label ?? null;
  }

  /** Remember a command that has been carried out already. */
  record(command: Command): void {
    if (this.group) {
      this.group.push(command);
      return;
    }
    this.past.push(command);
    this.future = [];
    this.emit("change", null);
  }

  /** Record all changes of `run` as one step. */
  recordGroup(label: string, run: () => void): void {
    const outer = this.group;
    const steps: Command[] = [];
    this.group = steps;
    try {
      run();
    } finally {
      this.group = outer;
      const undo = (): void => [...steps].reverse().forEach((step) => step.undo());
      const redo = (): void => steps.forEach((step) => step.redo());
      if (steps.length) this.record({ label, undo, redo });
    }
  }

  undo(): string | null {
    const command = this.past.pop();
    if (!command) return null;
    command.undo();
    this.future.push(command);
    this.emit("change", null);
    return command.label;
  }

  redo(): string | null {
    const command = this.future.pop();
    if (!command) return null;
    command.redo();
    this.past.push(command);
    this.emit("change", null);
    return command.label;
  }
}
