/** The thread of an ROI: steps of review and comments, as a list. */

import type { Schemas } from "../api/schemas";
import { dateText } from "./dates";
import { element } from "./elements";
import { API_ROOT, getAll, postJson } from "./http";

/** A comment, or a review step, whose `kind` is the resulting state. */
export type ThreadEntry = Schemas["ThreadEntry"];
/** The result of a review for one ROI of a request. */
export type Verdict = Schemas["Verdict"];

const ACTION_TEXTS: Record<string, string> = {
  comment: "commented",
  submitted: "submitted it",
  accepted: "accepted it",
  rejected: "rejected it",
  draft: "made it a draft again",
};

export function threadGet(roi: string): Promise<ThreadEntry[]> {
  return getAll<ThreadEntry>(`${API_ROOT}/rois/${roi}/thread/?page_size=200`);
}

/** Add a comment; returns it as an entry of the thread. */
export function commentAdd(roi: string, text: string): Promise<ThreadEntry> {
  return postJson<ThreadEntry>(`${API_ROOT}/rois/${roi}/thread/`, { text });
}

/** Set the review state of ROIs in the versions that the user has seen. */
export async function roisReview(
  rois: { id: string; version: number }[],
  state: string,
  comment: string,
): Promise<Verdict[]> {
  const answer = await postJson<Schemas["Reviewed"]>(`${API_ROOT}/rois/review/`, { rois, state, comment });
  return answer.results;
}

export function threadRows(entries: ThreadEntry[]): HTMLElement[] {
  return entries.map(({ kind, text, author, at, mentions }) => {
    const head = `${author ?? "Somebody who left"} ${ACTION_TEXTS[kind] ?? kind}`;
    const when = element("time", { datetime: at, class: "muted" }, dateText(at));
    const line = element("p", { class: "small" }, element("strong", {}, head), " · ", when);
    return element("li", { "data-kind": kind }, line, ...(text ? [element("p", {}, ...textParts(text, mentions))] : []));
  });
}

/** A comment's text with its mentions marked. */
function textParts(text: string, mentions: readonly string[]): (string | HTMLElement)[] {
  const parts: (string | HTMLElement)[] = [];
  let rest = text;
  while (rest) {
    const first = mentions
      .map((mention) => ({ mention, at: rest.indexOf(mention) }))
      .filter(({ at }) => at >= 0)
      .sort((a, b) => a.at - b.at || b.mention.length - a.mention.length)[0];
    if (!first) return [...parts, rest];
    parts.push(rest.slice(0, first.at), element("mark", { class: "mention" }, first.mention));
    rest = rest.slice(first.at + first.mention.length);
  }
  return parts;
}
