/** `run`, at most once before the browser paints next, however often it is asked for. */
export function oncePerRedraw(run: () => void): () => void {
  let isQueued = false;
  return () => {
    if (isQueued) return;
    isQueued = true;
    requestAnimationFrame(() => {
      isQueued = false;
      run();
    });
  };
}

/** `run` once it has not been asked for during so many milliseconds. */
export function afterPause(run: () => void, ms: number): () => void {
  let timer: ReturnType<typeof setTimeout> | null = null;
  return () => {
    if (timer) clearTimeout(timer);
    timer = setTimeout(run, ms);
  };
}
