/** The compare page: opens the images that the URL names, and keeps the URL up to date. */

import { required } from "../../dom/elements";
import { API_ROOT, getJson } from "../lib/http";
import { keySheet, listenToKeys } from "../lib/key_bindings";
import { rovingTabindex } from "../lib/roving_tabindex";
import type { CanvasData } from "../lib/types";
import { addressKeeper } from "../map/deep_link";
import { MAX_IMAGES, EMPTY_VIEW, readCompareLink, writeCompareLink } from "./address";
import type { CompareLink } from "./address";
import { showQueryOutline } from "./query_outline";
import { compareKeyBindings } from "./key_bindings";
import { Pane } from "./pane";
import { SyncedPanes } from "./synced_panes";
import { connectMosaics } from "./mosaic_link";

export async function startCompare(root: HTMLElement): Promise<void> {
  const first = JSON.parse(required(document, "#canvas-data").textContent) as CanvasData;
  const link = readCompareLink(first.id, location.search);
  const [, ...others] = link.canvases;
  const canvases = [first, ...(await Promise.all(others.map((id) => getJson<CanvasData>(`${API_ROOT}/canvases/${id}/`))))];
  const panes = await Promise.all(canvases.map((canvas, at) => Pane.open(hostOf(root, at), canvas)));
  const synced = new SyncedPanes(panes);
  const isPlaced = await Promise.all(panes.map((pane, at) => pane.place(link.views[at] ?? { ...pane.link(), x: null })));
  if (link.query && panes[0]) await showQueryOutline(panes[0], link.query, isPlaced[0] ?? false);
  if (!isPlaced.some(Boolean)) synced.matchScale();
  const isSynced = link.isSynced ?? !panes.some(({ player }) => player); // a video frame and a mosaic share no coordinates
  synced.setSynced(isSynced && panes.length > 1);
  connect(root, panes, synced);
  await connectMosaics(panes);
  panes[0]?.target.toggleAttribute("data-pointed", true); // no focus ring before the keyboard is used
  panes[0]?.target.focus({ preventScroll: true });
  if (panes.length === 1) openChoices(root);
  root.dataset.ready = "true";
}

/** The element of a pane, shown from now on. */
function hostOf(root: HTMLElement, at: number): HTMLElement {
  const host = required(root, `[data-pane="${at + 1}"]`);
  host.hidden = false;
  root.dataset.panes = String(Math.max(Number(root.dataset.panes), at + 1));
  return host;
}

function connect(root: HTMLElement, panes: Pane[], synced: SyncedPanes): void {
  let active = panes[0] as Pane;
  for (const pane of panes) {
    const take = (): void => {
      active = pane;
      for (const { host } of panes) host.toggleAttribute("data-active", host === pane.host);
    };
    pane.host.addEventListener("focusin", take);
    pane.host.addEventListener("pointerdown", take);
  }
  const actions = {
    panes,
    active: () => active,
    toggleSync: () => synced.setSynced(!synced.isSynced),
    matchScale: () => {
      if (!synced.matchScale()) active.notice.show("This needs two images whose pixel size is known.");
    },
    fit: () => active.mapView.fit(),
    toggle: (option: "visible" | "names") => {
      for (const { layer } of panes) layer.toggle(option);
    },
    add: () => openChoices(root),
    openSheet: () => openSheet(),
  };
  const groups = compareKeyBindings(actions);
  const openSheet = keySheet(root, groups);
  listenToKeys(groups);
  connectButtons(root, actions, synced);
  panes[0]?.layer.on("display", ({ visible, names }) => {
    for (const [what, isOn] of Object.entries({ visible, names })) {
      root.querySelector(`[data-compare-toggle=${what}]`)?.setAttribute("aria-pressed", String(isOn));
    }
  });
  keepAddress(panes, synced);
  connectChoices(root, panes, synced);
}

type Actions = Parameters<typeof compareKeyBindings>[0];

function connectButtons(root: HTMLElement, actions: Actions, synced: SyncedPanes): void {
  const onClick = (name: string, run: () => void): HTMLElement | null => {
    const button = root.querySelector<HTMLElement>(`[data-compare-action=${name}]`);
    button?.addEventListener("click", run);
    return button;
  };
  const sync = onClick("sync", actions.toggleSync);
  const showSynced = (isSynced: boolean): void => sync?.setAttribute("aria-pressed", String(isSynced));
  synced.on("synced", showSynced);
  showSynced(synced.isSynced);
  onClick("scale", actions.matchScale);
  onClick("fit", actions.fit);
  onClick("add", actions.add);
  onClick("keys", actions.openSheet);
  for (const button of root.querySelectorAll<HTMLElement>("[data-compare-toggle]")) {
    button.addEventListener("click", () => actions.toggle(button.dataset.compareToggle as "visible" | "names"));
  }
  rovingTabindex(required(root, "[role=toolbar]"));
}

const linkOf = (panes: Pane[], synced: SyncedPanes): CompareLink => ({
  canvases: panes.map(({ canvas }) => canvas.id),
  views: panes.map((pane) => pane.link()),
  isSynced: panes.length > 1 ? synced.isSynced : null,
  query: readCompareLink("", location.search).query,
});

function keepAddress(panes: Pane[], synced: SyncedPanes): void {
  const update = addressKeeper(() => writeCompareLink(linkOf(panes, synced)));
  synced.on("synced", update);
  for (const { mapView, layer, player } of panes) {
    mapView.map.on("moveend", update);
    layer.on("select", update);
    player?.on("frame", ({ exact }) => {
      if (exact) update();
    });
  }
}

function openChoices(root: HTMLElement, at = Number(root.dataset.panes)): void {
  const dialog = required<HTMLDialogElement>(root, "[data-dialog=choose]");
  dialog.dataset.place = String(Math.min(at, MAX_IMAGES - 1));
  dialog.showModal();
  required(dialog, "input").focus();
}

/** Update the address with each chosen image, so that the browser's Back button works. */
function connectChoices(root: HTMLElement, panes: Pane[], synced: SyncedPanes): void {
  const dialog = required<HTMLDialogElement>(root, "[data-dialog=choose]");
  const go = (change: (link: CompareLink) => void): void => {
    const link = linkOf(panes, synced);
    change(link);
    location.assign(writeCompareLink(link));
  };
  dialog.addEventListener("click", ({ target }) => {
    const chosen = target instanceof Element ? target.closest<HTMLElement>("[data-choice]")?.dataset.choice : undefined;
    if (!chosen) return;
    const at = Number(dialog.dataset.place);
    go((link) => {
      link.canvases[at] = chosen;
      link.views[at] = EMPTY_VIEW;
      if (at === 0) link.query = null; // the query belongs to the image that is replaced
    });
  });
  for (const [at, { host }] of panes.entries()) {
    required(host, "[data-pane-change]").addEventListener("click", () => openChoices(root, at));
    const close = required(host, "[data-pane-close]");
    close.hidden = panes.length === 1;
    close.addEventListener("click", () =>
      go((link) => {
        link.canvases.splice(at, 1);
        link.views.splice(at, 1);
        if (at === 0) link.query = null;
      }));
  }
  for (const button of root.querySelectorAll<HTMLButtonElement>("[data-compare-action=add]")) {
    button.disabled = panes.length >= MAX_IMAGES;
  }
}
