/** Waits between attempts to reach the server; the last one repeats. */
const BACK_OFF_S = [1, 2, 4, 8, 15, 30];

/** Wait before the next attempt, after this number of failures. */
export function backOffS(failures: number): number {
  return BACK_OFF_S[Math.min(failures, BACK_OFF_S.length - 1)] ?? 0;
}
