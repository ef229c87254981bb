/**
 * `<time data-local datetime="...">` in the reader's zone; `data-local="ago"` as "3 min ago",
 * `"day"` without the time.
 */
const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const AGO = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];
/** Beyond a week a date says more than a number of days. */
const FAR_S = 7 * 86_400;

/** Relative time: "3 min ago", "in 2 hr"; a date beyond a week. */
export function relative(moment: Date, now = Date.now()): string {
  const seconds = (moment.getTime() - now) / 1000;
  if (Math.abs(seconds) > FAR_S) return DATE.format(moment);
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return AGO.format(Math.trunc(seconds / size), unit);
  }
  return seconds > 0 ? "in a moment" : "just now";
}

export function localiseTimes(root: ParentNode): void {
  for (const time of root.querySelectorAll<HTMLTimeElement>("time[data-local]")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    time.title = DATE.format(moment);
    time.textContent = shown(moment, time.dataset["local"]);
  }
}

function shown(moment: Date, style: string | undefined): string {
  if (style === "ago") return relative(moment);
  return (style === "day" ? DAY : DATE).format(moment);
}
