/** Undo and redo within this session. */

import { Emitter } from "./events";

export interface Command {
  label: string;
  undo: () => void;
  redo: () => void;
}

/** More than anybody takes back; each command may hold an outline. */
const DEPTH = 200;

export class History extends Emitter<{ change: null }> {
  private past: Command[] = [];
  private future: Command[] = [];

  get undoLabel(): string | null {
    return this.past.at(-1)?.label ?? null;
  }

  get redoLabel(): string | null {
    return this.future.at(-1)?.label ?? null;
  }

  /** Remember a command that has been carried out already. */
  record(command: Command): void {
    this.past.push(command);
    if (this.past.length > DEPTH) this.past.shift();
    this.future = [];
    this.emit("change", null);
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
