/**
 * A question before something that cannot be undone: `data-confirm="..."` on a form or a link, and
 * `hx-confirm` on anything htmx sends. `data-confirm-action` names what is done ("Revoke"),
 * `data-confirm-keep` what is kept ("Keep building"; by default "Keep").
 */
interface HtmxConfirmDetail {
  question: string | null;
  elt: HTMLElement;
  issueRequest: (skipConfirmation: boolean) => void;
}

export function ask(question: string, action: string, keep = "Keep"): Promise<boolean> {
  const dialog = document.getElementById("confirm");
  if (!(dialog instanceof HTMLDialogElement)) return Promise.resolve(window.confirm(question));
  const text = dialog.querySelector("[data-confirm-question]");
  const button = dialog.querySelector<HTMLButtonElement>("[data-confirm-yes]");
  if (text) text.textContent = question;
  const other = dialog.querySelector<HTMLButtonElement>("[data-confirm-no]");
  if (button) button.textContent = action;
  if (other) other.textContent = keep;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

function asked(question: string, element: HTMLElement): Promise<boolean> {
  const { confirmAction, confirmKeep } = element.dataset;
  if (!confirmAction) throw new Error(`"${question}" does not say what its button does`);
  return ask(question, confirmAction, confirmKeep);
}

export function watchConfirmations(): void {
  document.addEventListener("submit", (event) => {
    const form = event.target as HTMLFormElement;
    const question = form.dataset["confirm"];
    if (!question || form.dataset["confirmed"] === "yes") return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const { submitter } = event;
    void asked(question, form).then((yes) => {
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
    void asked(detail.question, detail.elt).then((yes) => {
      if (yes) detail.issueRequest(true);
    });
  });
}
