/** The table of jobs renews itself every second, but not under a hand: ticks and questions stay. */
export function watchJobs(): void {
  document.addEventListener("htmx:beforeRequest", (event) => {
    const table = event.target;
    if (!(table instanceof HTMLElement) || table.id !== "jobs") return;
    const isTicked = table.querySelector("[data-job-tick]:checked") !== null;
    if (isTicked || document.querySelector("dialog[open]")) event.preventDefault();
  });
}
