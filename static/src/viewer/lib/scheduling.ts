/** Wrap `run` so that it runs at most once per animation frame. */
export function oncePerFrame(run: () => void): () => void {
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

/** Wrap `run` so that it runs after a pause of `ms` without further calls. */
export function debounced(run: () => void, ms: number): () => void {
  let timer: ReturnType<typeof setTimeout> | null = null;
  return () => {
    if (timer) clearTimeout(timer);
    timer = setTimeout(run, ms);
  };
}
