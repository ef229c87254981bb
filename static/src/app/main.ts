/** Behaviour that every page shares. Pages opt in by data attributes; nothing runs inline. */
import htmx from "htmx.org";
import { watchCaseSelection } from "./case_selection";
import { watchConfirmations } from "./confirmation";
import { watchCopyButtons } from "./copy_buttons";
import { watchDialogs } from "./dialogs";
import { watchForms } from "./forms";
import { foldFilters, restoreHit, watchHits } from "./search_hits";
import { watchInbox } from "./inbox";
import { watchHotkeys } from "./hotkeys";
import { watchJobs } from "./jobs_table";
import { watchLabels } from "./label_editor";
import { watchMenus } from "./menus";
import { watchPasskeys } from "./passkeys";
import { watchReview } from "./review_queue";
import { watchRows } from "./table_rows";
import { watchTheme } from "./theme_toggle";
import { localiseTimes } from "./local_times";
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
watchCaseSelection();
watchConfirmations();
watchCopyButtons();
watchForms();
watchHits();
watchHotkeys();
watchInbox();
watchJobs();
watchLabels();
watchPasskeys();
watchRequests();
watchReview();
watchRows();

function refresh(root: ParentNode): void {
  localiseTimes(root);
  foldFilters(root);
}

document.addEventListener("DOMContentLoaded", () => {
  refresh(document);
  restoreHit();
});
document.addEventListener("htmx:load", (event) => refresh(event.target as HTMLElement));
