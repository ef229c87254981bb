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
