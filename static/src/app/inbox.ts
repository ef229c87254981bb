/** The number of unread notifications in the header, and links of the inbox that mark as read. */
import type { Schemas } from "../api/schemas";
import { API_ROOT, call } from "../dom/http";

const EVERY_MS = 60_000;
const SHOWN_MAX = 99;

/** Show a number in the header; 0 hides the badge. */
export function showUnread(link: Element, count: number): void {
  const badge = link.querySelector<HTMLElement>("[data-inbox-count]");
  const number = link.querySelector("[data-inbox-number]");
  if (!badge || !number) return;
  number.textContent = count > SHOWN_MAX ? `${SHOWN_MAX}+` : String(count);
  badge.hidden = count === 0;
}

/** Refresh the badge while the page is visible, and mark a notification as read when it is opened. */
export function watchInbox(): void {
  const link = document.querySelector("[data-inbox]");
  if (!link) return;
  const refresh = async (): Promise<void> => {
    if (document.hidden) return;
    try {
      const response = await call(`${API_ROOT}/notifications/unread/`, { isUnattended: true });
      showUnread(link, ((await response.json()) as Schemas["Unread"]).count);
    } catch {
      // offline or signed out: the next page or the next minute shows the number
    }
  };
  window.setInterval(() => void refresh(), EVERY_MS);
  document.addEventListener("visibilitychange", () => void refresh());
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) void refresh();
  });
  for (const name of ["click", "auxclick"]) {
    document.addEventListener(name, (event) => {
      const opened = (event.target as Element).closest<HTMLElement>("[data-notification]");
      const id = opened?.dataset["notification"];
      if (!id) return;
      const options = { method: "POST", keepalive: true };
      call(`${API_ROOT}/notifications/${id}/read/`, options).catch(() => undefined);
    });
  }
}
