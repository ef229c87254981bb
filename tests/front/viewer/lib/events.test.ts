import { expect, it } from "vitest";

import { Emitter } from "@/viewer/lib/events";

it("tells each listener of its own event, in the order they came", () => {
  const emitter = new Emitter<{ a: number; b: string }>();
  const heard: string[] = [];
  emitter.on("a", (value) => heard.push(`first ${value}`));
  emitter.on("a", (value) => heard.push(`second ${value}`));
  emitter.on("b", (value) => heard.push(value));
  emitter.emit("a", 7);
  expect(heard).toEqual(["first 7", "second 7"]);
});

it("no longer tells one that was taken off", () => {
  const emitter = new Emitter<{ a: number }>();
  const heard: number[] = [];
  const off = emitter.on("a", (value) => heard.push(value));
  emitter.emit("a", 1);
  off();
  emitter.emit("a", 2);
  expect(heard).toEqual([1]);
});
