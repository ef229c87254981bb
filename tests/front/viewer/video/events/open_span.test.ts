import { expect, it } from "vitest";

import { OpenSpan } from "@/viewer/video/events/open_span";

it("ends where it is told to, once", () => {
  const span = new OpenSpan();
  expect([span.isOpen, span.upTo(5), span.end(5)]).toEqual([false, null, null]);
  span.begin(3);
  expect([span.isOpen, span.upTo(5), span.end(9), span.end(9)]).toEqual([true, [3, 5], [3, 9], null]);
});

it("is in the order of the video where its end was set before its beginning", () => {
  const span = new OpenSpan();
  span.begin(8);
  expect(span.end(2)).toEqual([2, 8]);
});

it("is gone when it is cancelled, and restarts when it is begun again", () => {
  const span = new OpenSpan();
  span.begin(3);
  span.begin(4);
  expect(span.upTo(4)).toEqual([4, 4]);
  span.cancel();
  expect(span.end(9)).toBeNull();
});
