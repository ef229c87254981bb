/** Inputs that take neither text nor letters. */
const NO_TEXT = "[type=checkbox], [type=radio], [type=range]";

/** True if keys belong to a field that takes text or a choice, not to the page's shortcuts. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.matches(`input:not(${NO_TEXT}), textarea, select`);
}
