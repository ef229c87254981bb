import { type DateStyle, dateText } from "../dom/dates";

/** Write each `<time data-local="STYLE" datetime="ISO">` in the reader's language and time zone. */
export function localiseTimes(root: ParentNode): void {
  for (const time of root.querySelectorAll<HTMLTimeElement>("time[data-local]")) {
    time.title = dateText(time.dateTime);
    time.textContent = dateText(time.dateTime, time.dataset["local"] as DateStyle);
  }
}
