/** Building and finding elements; text is always set as text, never as HTML. */

type Attributes = Record<string, string | boolean | ((event: Event) => void)>;

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const created = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") created.addEventListener(name, value);
    else if (typeof value === "boolean") created.toggleAttribute(name, value);
    else created.setAttribute(name, value);
  }
  created.append(...children);
  return created;
}

/** The element that the template promises; an error names the one that is missing. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- what the template promises
export function required<T extends HTMLElement>(root: ParentNode, selector: string): T {
  const match = root.querySelector<T>(selector);
  if (!match) throw new Error(`the page lacks ${selector}`);
  return match;
}

/** Replace the children of a host unless they are equal: a row exchanged between mouse down and mouse up would lose its click. */
export function replaceChanged(host: HTMLElement, children: HTMLElement[]): void {
  const { children: present } = host;
  const isEqual = present.length === children.length && children.every((child, index) => child.isEqualNode(present.item(index)));
  if (!isEqual) host.replaceChildren(...children);
}

/** A coloured dot, explained by the text next to it. */
export function swatch(color: string): HTMLSpanElement {
  const dot = element("span", { class: "roi-swatch", "aria-hidden": "true" });
  dot.style.backgroundColor = color;
  return dot;
}
