/**
 * Confirmation before an action that cannot be undone: `data-confirm="..."` on a form or a link, and `hx-confirm` on
 * any element of htmx. `data-confirm-action` labels the action ("Revoke"), `data-confirm-cancel` the other button
 * ("Keep building"; by default "Cancel").
 */
interface HtmxConfirmDetail {
  question: string | null;
  elt: HTMLElement;
  issueRequest: (skipConfirmation: boolean) => void;
}

export function confirmDialog(question: string, action: string, cancelLabel = "Cancel"): Promise<boolean> {
  const dialog = document.getElementById("confirm");
  if (!(dialog instanceof HTMLDialogElement)) return Promise.resolve(window.confirm(question));
  const text = dialog.querySelector("[data-confirm-question]");
  const button = dialog.querySelector<HTMLButtonElement>("[data-confirm-yes]");
  if (text) text.textContent = question;
  const other = dialog.querySelector<HTMLButtonElement>("[data-confirm-no]");
  if (button) button.textContent = action;
  if (other) other.textContent = cancelLabel;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

function askFor(question: string, element: HTMLElement): Promise<boolean> {
  const { confirmAction, confirmCancel } = element.dataset;
  if (!confirmAction) throw new Error(`"${question}" does not say what its button does`);
  return confirmDialog(question, confirmAction, confirmCancel);
}

export function watchConfirmations(): void {
  document.addEventListener("submit", (event) => {
    const form = event.target as HTMLFormElement;
    const question = form.dataset["confirm"];
    if (!question || form.dataset["confirmed"] === "yes") return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const { submitter } = event;
    void askFor(question, form).then((yes) => {
      if (!yes) return;
      form.dataset["confirmed"] = "yes";
      form.requestSubmit(submitter instanceof HTMLElement ? submitter : null);
      delete form.dataset["confirmed"];
    });
  }, true);
  document.addEventListener("htmx:confirm", (event) => {
    const detail = (event as CustomEvent<HtmxConfirmDetail>).detail;
    if (!detail.question) return;
    event.preventDefault();
    void askFor(detail.question, detail.elt).then((yes) => {
      if (yes) detail.issueRequest(true);
    });
  });
}
