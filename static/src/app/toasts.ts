/** Short messages in the corner: from code, from `HX-Trigger: {"toast": ...}`, from failures. */
import { stopRefusedPoll } from "./polling";

export type ToastKind = "success" | "info" | "warning" | "error";

/** Errors are shown longer than successes. */
const DURATION_MS: Record<ToastKind, number> = { success: 4000, info: 5000, warning: 8000, error: 12000 };
/** Time to read a message and to press its button. */
const WITH_ACTION_MS = 12000;

export interface ToastAction {
  label: string;
  run: () => void;
}

export function toast(text: string, kind: ToastKind = "info", action?: ToastAction): void {
  const region = document.getElementById("toasts");
  if (!region) return;
  const item = document.createElement("div");
  item.className = `toast toast--${kind}`;
  item.setAttribute("role", kind === "error" ? "alert" : "status");
  const body = document.createElement("p");
  body.textContent = text;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "toast__close";
  close.setAttribute("aria-label", "Dismiss");
  close.textContent = "×";
  close.addEventListener("click", () => item.remove());
  item.append(body);
  if (action) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn btn--small";
    button.textContent = action.label;
    button.addEventListener("click", () => {
      item.remove();
      action.run();
    });
    item.append(button);
  }
  item.append(close);
  region.append(item);
  window.setTimeout(() => item.remove(), action ? WITH_ACTION_MS : DURATION_MS[kind]);
}

/** The message of an error response: problem+json or an error page. */
function sentenceOf(xhr: XMLHttpRequest): string {
  const type = xhr.getResponseHeader("Content-Type") ?? "";
  if (type.includes("json")) {
    try {
      const detail = (JSON.parse(xhr.responseText) as { detail?: unknown }).detail;
      if (typeof detail === "string") return detail;
    } catch {
      // not JSON after all
    }
  } else if (type.includes("html")) {
    const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
    const text = page.querySelector("[data-error-message]")?.textContent.trim();
    if (text) return text;
  }
  return "That did not work. Try again, or reload the page.";
}

export function watchRequests(): void {
  document.addEventListener("toast", (event) => {
    const detail = (event as CustomEvent<{ message?: string; value?: string; kind?: ToastKind }>).detail;
    const text = detail.message ?? detail.value;
    if (text) toast(text, detail.kind ?? "success");
  });
  document.addEventListener("htmx:responseError", (event) => {
    const { elt, xhr } = (event as CustomEvent<{ elt: Element; xhr: XMLHttpRequest }>).detail;
    const sentence = sentenceOf(xhr);
    if (!stopRefusedPoll(elt, xhr.status, sentence)) toast(sentence, "error");
  });
  document.addEventListener("htmx:sendError", () => {
    toast("The server cannot be reached. Your work on this page is still here.", "error");
  });
  document.addEventListener("click", (event) => {
    const button = (event.target as Element).closest("[data-dismiss]");
    button?.closest(".message, .toast, .banner")?.remove();
  });
}
