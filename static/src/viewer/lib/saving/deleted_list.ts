/** The deleted objects of one kind on a canvas, newest deletion first; each can be restored. */

import { dateText } from "../../../dom/dates";
import { element, required } from "../../../dom/elements";
import type { SavedObject } from "./saved_state";

export interface DeletedKind<S> {
  load: () => Promise<S[]>;
  title: (object: S) => string;
  /** Picture that identifies a deleted object: a drawing, or its place. */
  picture: (object: S) => Element;
  restore: (object: S) => void;
  /** Run when the server has confirmed a change. */
  onSaved: (run: () => void) => void;
}

export class DeletedList<S extends SavedObject> {
  private readonly list: HTMLElement;
  private loadCount = 0;

  constructor(
    private readonly host: HTMLElement,
    private readonly kind: DeletedKind<S>,
  ) {
    this.list = required(host, "ol");
    const load = (): void => void this.load();
    host.addEventListener("toggle", load);
    kind.onSaved(load);
  }

  private async load(): Promise<void> {
    if (!this.host.hasAttribute("open")) return;
    this.loadCount += 1;
    const number = this.loadCount;
    try {
      const objects = await this.kind.load();
      if (number !== this.loadCount) return; // a later load knows more
      objects.sort((a, b) => (b.deleted_at ?? "").localeCompare(a.deleted_at ?? ""));
      const rows = objects.map((object) => this.row(object));
      this.list.replaceChildren(...(rows.length ? rows : [element("li", { class: "muted" }, "None.")]));
    } catch (error) {
      if (number !== this.loadCount) return;
      const reason = error instanceof Error ? error.message : "";
      this.list.replaceChildren(element("li", {}, `They could not be read. ${reason}`));
    }
  }

  private row(object: S): HTMLElement {
    const { kind } = this;
    const title = kind.title(object);
    const when = object.deleted_at ?? "";
    const restore = { type: "button", class: "btn btn--small btn--quiet", "aria-label": `Restore ${title}` };
    return element(
      "li",
      {},
      element("span", { class: "revision-number" }),
      kind.picture(object),
      element("span", {}, title),
      element("time", { datetime: when }, dateText(when)),
      element("button", { ...restore, click: () => kind.restore(object) }, "Restore"),
    );
  }
}
