/** Opens the images that the address names beside each other, and keeps the address up to date. */

import { required } from "../../dom/elements";
import { API_ROOT, getJson } from "../lib/http";
import { keySheet, listenToKeys } from "../lib/keys";
import { roving } from "../lib/roving";
import type { CanvasData } from "../lib/types";
import { addressKeeper } from "../map/deep_link";
import { MOST, NOWHERE, readBeside, writeBeside } from "./address";
import type { BesideLink } from "./address";
import { showAsked } from "./asked";
import { besideKeys } from "./keys";
import { Pane } from "./pane";
import { TiedPanes } from "./tied_panes";
import { connectMosaics } from "./video_and_mosaic";

export async function startBeside(root: HTMLElement): Promise<void> {
  const first = JSON.parse(required(document, "#canvas-data").textContent) as CanvasData;
  const link = readBeside(first.id, location.search);
  const [, ...others] = link.canvases;
  const canvases = [first, ...(await Promise.all(others.map((id) => getJson<CanvasData>(`${API_ROOT}/canvases/${id}/`))))];
  const panes = await Promise.all(canvases.map((canvas, at) => Pane.open(hostOf(root, at), canvas)));
  const tied = new TiedPanes(panes);
  const isPlaced = await Promise.all(panes.map((pane, at) => pane.place(link.views[at] ?? { ...pane.link(), x: null })));
  if (link.asked && panes[0]) await showAsked(panes[0], link.asked, isPlaced[0] ?? false);
  if (!isPlaced.some(Boolean)) tied.scaleAlike();
  const isTied = link.isTied ?? !panes.some(({ player }) => player); // a frame and a mosaic have no common place
  tied.tie(isTied && panes.length > 1);
  connect(root, panes, tied);
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

function connect(root: HTMLElement, panes: Pane[], tied: TiedPanes): void {
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
    tie: () => tied.tie(!tied.isTied),
    scaleAlike: () => {
      if (!tied.scaleAlike()) active.notice.show("This needs two images whose pixel size is known.");
    },
    fit: () => active.mapView.fit(),
    toggle: (what: "visible" | "names") => {
      for (const { layer } of panes) layer.toggle(what);
    },
    add: () => openChoices(root),
    openSheet: () => openSheet(),
  };
  const groups = besideKeys(actions);
  const openSheet = keySheet(root, groups);
  listenToKeys(groups);
  connectButtons(root, actions, tied);
  panes[0]?.layer.on("display", ({ visible, names }) => {
    for (const [what, isOn] of Object.entries({ visible, names })) {
      root.querySelector(`[data-beside-toggle=${what}]`)?.setAttribute("aria-pressed", String(isOn));
    }
  });
  keepAddress(panes, tied);
  connectChoices(root, panes, tied);
}

type Actions = Parameters<typeof besideKeys>[0];

function connectButtons(root: HTMLElement, actions: Actions, tied: TiedPanes): void {
  const press = (name: string, run: () => void): HTMLElement | null => {
    const button = root.querySelector<HTMLElement>(`[data-beside=${name}]`);
    button?.addEventListener("click", run);
    return button;
  };
  const tie = press("tie", actions.tie);
  const showTied = (isTied: boolean): void => tie?.setAttribute("aria-pressed", String(isTied));
  tied.on("tied", showTied);
  showTied(tied.isTied);
  press("scale", actions.scaleAlike);
  press("fit", actions.fit);
  press("add", actions.add);
  press("keys", actions.openSheet);
  for (const button of root.querySelectorAll<HTMLElement>("[data-beside-toggle]")) {
    button.addEventListener("click", () => actions.toggle(button.dataset.besideToggle as "visible" | "names"));
  }
  roving(required(root, "[role=toolbar]"));
}

const linkOf = (panes: Pane[], tied: TiedPanes): BesideLink => ({
  canvases: panes.map(({ canvas }) => canvas.id),
  views: panes.map((pane) => pane.link()),
  isTied: panes.length > 1 ? tied.isTied : null,
  asked: readBeside("", location.search).asked,
});

function keepAddress(panes: Pane[], tied: TiedPanes): void {
  const update = addressKeeper(() => writeBeside(linkOf(panes, tied)));
  tied.on("tied", update);
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
  dialog.dataset.place = String(Math.min(at, MOST - 1));
  dialog.showModal();
  required(dialog, "input").focus();
}

/** Another image is another address, so that the browser's Back button works. */
function connectChoices(root: HTMLElement, panes: Pane[], tied: TiedPanes): void {
  const dialog = required<HTMLDialogElement>(root, "[data-dialog=choose]");
  const go = (change: (link: BesideLink) => void): void => {
    const link = linkOf(panes, tied);
    change(link);
    location.assign(writeBeside(link));
  };
  dialog.addEventListener("click", ({ target }) => {
    const chosen = target instanceof Element ? target.closest<HTMLElement>("[data-choice]")?.dataset.choice : undefined;
    if (!chosen) return;
    const at = Number(dialog.dataset.place);
    go((link) => {
      link.canvases[at] = chosen;
      link.views[at] = NOWHERE;
      if (at === 0) link.asked = null; // it was taken from the image that is replaced
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
        if (at === 0) link.asked = null;
      }));
  }
  for (const button of root.querySelectorAll<HTMLButtonElement>("[data-beside=add]")) {
    button.disabled = panes.length >= MOST;
  }
}
