/** The table of jobs refreshes itself, but not while a row is ticked or a dialog is open. */
export function watchJobs(): void {
  document.addEventListener("htmx:beforeRequest", (event) => {
    const table = event.target;
    if (!(table instanceof HTMLElement) || table.id !== "jobs") return;
    const isTicked = table.querySelector("[data-job-tick]:checked") !== null;
    if (isTicked || document.querySelector("dialog[open]")) event.preventDefault();
  });
}
