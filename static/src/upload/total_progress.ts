/** Progress of all files together, in one line. */

import { TransferRate, percentText, sizeText, timeText } from "./transfer_rate";
import type { Part } from "./upload_row";

function isCounted({ state }: Part): boolean {
  return state !== "gone" && state !== "refused";
}

/** Summary text; empty for a single file. `left`: remaining seconds, null if unknown. */
export function totalText(parts: readonly Part[], left: number | null): string {
  const counted = parts.filter(isCounted);
  if (counted.length < 2) return "";
  const stored = counted.filter(({ state }) => state === "stored").length;
  const size = counted.reduce((sum, part) => sum + part.size, 0);
  const arrived = counted.reduce((sum, part) => sum + part.arrived, 0);
  const refused = parts.filter(({ state }) => state === "refused").length;
  return [
    `${stored} of ${counted.length} files received`,
    `${percentText(arrived, size)} of ${sizeText(size)}`,
    ...(left !== null && arrived < size ? [`${timeText(left)} left`] : []),
    ...(refused > 0 ? [`${refused} not stored`] : []),
  ].join(" · ");
}

export class TotalProgress {
  private readonly rate = new TransferRate();

  constructor(private readonly line: HTMLElement) {}

  /** Update the progress after a change of any upload. */
  show(parts: readonly Part[]): void {
    const counted = parts.filter(isCounted);
    if (counted.some(({ state }) => state === "sending")) {
      this.rate.add(performance.now() / 1000, counted.reduce((sum, { arrived }) => sum + arrived, 0));
    } else this.rate.reset();
    const left = this.rate.secondsLeft(counted.reduce((sum, { size }) => sum + size, 0));
    this.line.textContent = totalText(parts, left);
    this.line.hidden = this.line.textContent === "";
  }
}
