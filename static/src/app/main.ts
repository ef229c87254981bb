/** Behaviour that every page shares. Pages opt in by data attributes; nothing runs inline. */
import htmx from "htmx.org";
import { watchConfirmations } from "./confirm";
import { watchCopyButtons } from "./copy";
import { watchDialogs } from "./dialogs";
import { watchForms } from "./forms";
import { restoreHit, watchHits } from "./hits";
import { watchHotkeys } from "./hotkeys";
import { watchJobs } from "./jobs";
import { watchLabels } from "./work/labels";
import { watchMenus } from "./menus";
import { watchPasskeys } from "./passkeys";
import { watchReview } from "./work/review";
import { watchRows } from "./rows";
import { watchTheme } from "./theme_toggle";
import { localiseTimes } from "./times";
import { watchRequests } from "./toasts";

declare global {
  interface Window {
    htmx: typeof htmx;
  }
}

window.htmx = htmx;

watchTheme();
watchMenus();
watchDialogs();
watchConfirmations();
watchCopyButtons();
watchForms();
watchHits();
watchHotkeys();
watchJobs();
watchLabels();
watchPasskeys();
watchRequests();
watchReview();
watchRows();

function refresh(root: ParentNode): void {
  localiseTimes(root);
}

document.addEventListener("DOMContentLoaded", () => {
  refresh(document);
  restoreHit();
});
document.addEventListener("htmx:load", (event) => refresh(event.target as HTMLElement));
