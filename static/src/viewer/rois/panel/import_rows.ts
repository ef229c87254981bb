/** The tables of an import's preview: classes with what they become, and reasons. */

import { element, swatch } from "../../../dom/elements";
import { outcomeText, placesText, reasonText } from "../store/import_texts";
import type { ImportClass, ImportGroup, ImportLabels } from "../store/imports";
import { UNLABELLED_COLOR } from "../store/labels";
import type { Labels } from "../store/labels";

const NONE = "none";
const NO_LABEL = "No label";
const RULE = "";

/** `choose` gets a label's id, null for no label, undefined for what the server does by itself. */
export function classRows(
  classes: ImportClass[],
  labels: Labels,
  chosen: ImportLabels,
  choose: (name: string, label: string | null | undefined) => void,
): HTMLElement[] {
  return classes.map((one) => {
    const color = one.label ? labels.colorOf(one.label) : (one.color ?? UNLABELLED_COLOR);
    const select = element("select", { class: "input", "aria-label": `What ${one.name} becomes` });
    const isChosen = one.name in chosen;
    const rule = isChosen ? "As it was" : outcomeText(one);
    const ownLabel = isChosen ? null : one.label;
    select.append(
      element("option", { value: RULE }, rule),
      ...labels.all.filter(({ id }) => id !== ownLabel).map(({ id, name }) => element("option", { value: id }, name)),
      ...(rule === NO_LABEL ? [] : [element("option", { value: NONE }, NO_LABEL)]),
    );
    select.value = isChosen ? (chosen[one.name] ?? NONE) : RULE;
    select.addEventListener("change", () => {
      choose(one.name, select.value === RULE ? undefined : select.value === NONE ? null : select.value);
    });
    const becomes = element("td", {}, select);
    if (one.problem) becomes.append(element("p", { class: "field__error" }, one.problem));
    return element(
      "tr",
      {},
      element("th", { scope: "row" }, swatch(color), ` ${one.name}`),
      element("td", { class: "num" }, one.count.toLocaleString("en-US")),
      becomes,
    );
  });
}

export function reasonRows(groups: ImportGroup[]): HTMLElement[] {
  return groups.map((group) =>
    element(
      "tr",
      {},
      element(
        "td",
        {},
        element("span", { class: `pill pill--${group.status === "refused" ? "bad" : "warn"}` }, group.status),
      ),
      element("td", { class: "num" }, group.count.toLocaleString("en-US")),
      element("td", {}, reasonText(group), element("span", { class: "import-places" }, placesText(group))),
    ),
  );
}
