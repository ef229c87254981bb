"""Wait until a page has nothing left to load or to animate, on its own clock."""

from __future__ import annotations

from typing import Any

_QUIET = """([quietMs, maxMs]) => new Promise((done) => {
  const began = performance.now();
  let last = began;
  const observer = new PerformanceObserver(() => { last = performance.now(); });
  observer.observe({ type: "resource" });
  const moves = (animation) =>
    animation.playState === "running" && animation.effect.getComputedTiming().endTime !== Infinity;
  const look = () => {
    const now = performance.now();
    const isBusy = document.getAnimations().some(moves)
      || [...document.images].some((image) => image.loading !== "lazy" && !image.complete);
    if (isBusy) last = now;
    if (now - last < quietMs && now - began < maxMs) return requestAnimationFrame(look);
    observer.disconnect();
    done();
  };
  look();
})"""


def wait_until_quiet(page: Any, *, quiet_ms: int = 600, max_ms: int = 15_000) -> None:
    """Wait until no response has arrived and nothing has moved for ``quiet_ms``.

    The map's own animations last 180 ms and its address follows 300 ms later. Endless animations
    are ignored, and a page that never rests is left after ``max_ms``.
    """
    page.evaluate(_QUIET, [quiet_ms, max_ms])
