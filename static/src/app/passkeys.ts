/** Messages about passkeys, whose scripts only raise events. */
import { toast } from "./toasts";

export function watchPasskeys(): void {
  document.addEventListener("submit", (event) => {
    const button = (event.target as HTMLFormElement).querySelector<HTMLButtonElement>("[data-passkey]");
    if (!button) return;
    event.preventDefault(); // Enter in a field does what the button does; a form that a script sends raises no event
    button.click();
  });
  document.addEventListener("allauth.error", (event) => {
    event.preventDefault();
    const { exception } = (event as CustomEvent<{ exception?: unknown }>).detail;
    const name = exception instanceof Error ? exception.name : "";
    if (name === "InvalidStateError") toast("This passkey has already been added.", "warning");
    else if (name === "NotAllowedError") toast("No passkey was used. Try again, or use another way.", "warning");
    else toast("This browser or address cannot use passkeys.", "error");
  });
}
