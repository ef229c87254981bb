/** Dates and times in the reader's language and time zone. */

export type DateStyle = "date" | "day" | "ago";

const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
/** A date without a time is the same day in every zone. */
const CALENDAR_DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" });
const AGO = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];
/** Beyond a week a date says more than a number of days. */
const FAR_S = 7 * 86_400;
const ISO_DAY = /^\d{4}-\d{2}-\d{2}$/;

/** Text of an ISO 8601 date or time; the text itself if it is neither. */
export function dateText(iso: string, style: DateStyle = "date", now = Date.now()): string {
  const moment = new Date(iso);
  if (Number.isNaN(moment.getTime())) return iso;
  if (ISO_DAY.test(iso)) return CALENDAR_DAY.format(moment);
  if (style === "ago") return relativeText(moment, now);
  return (style === "day" ? DAY : DATE).format(moment);
}

/** Relative time: "3 min ago", "in 2 hr"; a date beyond a week. */
function relativeText(moment: Date, now: number): string {
  const seconds = (moment.getTime() - now) / 1000;
  if (Math.abs(seconds) > FAR_S) return DATE.format(moment);
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return AGO.format(Math.trunc(seconds / size), unit);
  }
  return seconds > 0 ? "in a moment" : "just now";
}
