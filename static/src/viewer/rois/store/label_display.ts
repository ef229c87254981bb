/** Display of labels on this computer: own colours and opacity until they are reset, hidden ones while the tab is open. */

export interface LabelDisplay {
  /** Colour #rrggbb by id of a label, where it is not that of the lab. */
  colors: Readonly<Record<string, string>>;
  /** Ids of hidden labels. */
  hidden: readonly string[];
  /** Opacity of all ROIs that are not selected, 0 to 1. */
  opacity: number;
}

export const NO_CHANGES: LabelDisplay = { colors: {}, hidden: [], opacity: 1 };

const COLOR = /^#[0-9a-f]{6}$/i;

const keyOf = (user: string): string => `tessera-labels-${user}`;

export function readLabelDisplay(user: string): LabelDisplay {
  const lasting = read("localStorage", user);
  const { hidden } = read("sessionStorage", user);
  const colors = Object.entries(Object(lasting.colors) as Record<string, string>).filter(([, color]) => COLOR.test(color));
  const opacity = Number(lasting.opacity);
  return {
    colors: Object.fromEntries(colors),
    hidden: Array.isArray(hidden) ? hidden.map(String) : [],
    opacity: opacity > 0 && opacity <= 1 ? opacity : 1,
  };
}

export function writeLabelDisplay(user: string, { colors, hidden, opacity }: LabelDisplay): void {
  write("localStorage", user, { colors, opacity });
  write("sessionStorage", user, { hidden });
}

type StorageName = "localStorage" | "sessionStorage";

function read(name: StorageName, user: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(globalThis[name].getItem(keyOf(user)) ?? "{}")) as Record<string, unknown>;
  } catch {
    return {}; // nothing can be stored, or something else wrote there
  }
}

function write(name: StorageName, user: string, value: object): void {
  try {
    globalThis[name].setItem(keyOf(user), JSON.stringify(value));
  } catch {
    // the browser stores nothing: it holds while the page is open
  }
}
