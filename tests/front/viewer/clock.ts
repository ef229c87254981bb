import { vi } from "vitest";

const realSetTimeout = setTimeout;

/** From now on time stands still for what is tested; `pass` moves it. */
export function stopClock(): void {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
}

/** Lets so much time pass, and everything happen that was waiting for it. */
export async function pass(ms: number): Promise<void> {
  await settle();
  await vi.advanceTimersByTimeAsync(ms);
  await settle();
}

/** Lets answers that are under way arrive; reading a body takes a few turns of the event loop. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => realSetTimeout(resolve, 0));
}
