/**
 * Forms: protection against double submission, drop zones for files, progress of uploads, and selects that submit their
 * form on change (`data-autosubmit`).
 */
function markBusy(form: HTMLFormElement, submitter: HTMLElement | null): void {
  form.setAttribute("aria-busy", "true");
  // Not disabled: a disabled submitter would drop its name and value from what is sent.
  submitter?.setAttribute("aria-disabled", "true");
}

function refuseSecondSubmission(event: SubmitEvent): void {
  const form = event.target as HTMLFormElement;
  if (form.method.toLowerCase() === "dialog" || event.defaultPrevented) return;
  if (form.getAttribute("aria-busy") === "true") event.preventDefault();
  else if (form.method.toLowerCase() === "post") markBusy(form, event.submitter);
}

function release(form: HTMLFormElement): void {
  form.removeAttribute("aria-busy");
  for (const button of form.querySelectorAll("[aria-disabled]")) button.removeAttribute("aria-disabled");
}

function showChosen(zone: Element, input: HTMLInputElement): void {
  const label = zone.querySelector("[data-dropzone-files]");
  const names = Array.from(input.files ?? [], (file) => file.name);
  if (label) label.textContent = names.join(", ");
  zone.classList.toggle("has-files", names.length > 0);
}

function watchDropzones(): void {
  for (const kind of ["dragenter", "dragover", "dragleave", "drop"] as const) {
    document.addEventListener(kind, (event) => {
      const zone = event.target instanceof Element ? event.target.closest(".dropzone") : null;
      if (!zone) return;
      event.preventDefault();
      zone.classList.toggle("is-over", kind === "dragenter" || kind === "dragover");
      const input = zone.querySelector<HTMLInputElement>("input[type=file]");
      if (kind !== "drop" || !input || !event.dataTransfer) return;
      input.files = event.dataTransfer.files;
      input.dispatchEvent(new Event("change", { bubbles: true }));
    });
  }
}

export function watchForms(): void {
  document.addEventListener("submit", refuseSecondSubmission);
  document.addEventListener("htmx:afterRequest", (event) => {
    const form = (event.target as Element).closest("form");
    if (form) release(form);
  });
  window.addEventListener("pageshow", () => document.querySelectorAll("form").forEach(release));
  document.addEventListener("change", (event) => {
    const target = event.target as HTMLElement;
    if (target instanceof HTMLInputElement && target.type === "file") {
      const zone = target.closest(".dropzone");
      if (zone) showChosen(zone, target);
    }
    if (target.matches("[data-autosubmit]")) target.closest("form")?.requestSubmit();
  });
  document.addEventListener("htmx:xhr:progress", (event) => {
    const { loaded, total } = (event as CustomEvent<{ loaded: number; total: number }>).detail;
    const bar = (event.target as Element).querySelector<HTMLProgressElement>("[data-upload-progress]");
    if (!bar || !total) return;
    bar.hidden = false;
    bar.max = total;
    bar.value = loaded;
  });
  watchDropzones();
}
