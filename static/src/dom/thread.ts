/** The thread of an ROI: steps of review and comments, as a list. */

import { element } from "./elements";
import { API_ROOT, getAll, postJson } from "./http";

export interface ThreadEntry {
  id: string;
  /** `comment`, or the state that the step led to. */
  kind: string;
  text: string;
  version: number;
  author: string | null;
  at: string;
}

/** What became of one ROI of a request. */
export interface Verdict {
  id: string;
  outcome: string;
  detail: string;
  version: number | null;
}

const SAID: Record<string, string> = {
  comment: "said",
  submitted: "submitted it",
  accepted: "accepted it",
  rejected: "rejected it",
  draft: "made it a draft again",
};

export function threadGet(roi: string): Promise<ThreadEntry[]> {
  return getAll<ThreadEntry>(`${API_ROOT}/rois/${roi}/thread/?page_size=200`);
}

/** Adds a comment; returns it as the thread has it. */
export function commentAdd(roi: string, text: string): Promise<ThreadEntry> {
  return postJson<ThreadEntry>(`${API_ROOT}/rois/${roi}/thread/`, { text });
}

/** Bring ROIs, in the versions that were looked at, to a state of review. */
export async function roisReview(
  rois: { id: string; version: number }[],
  state: string,
  comment: string,
): Promise<Verdict[]> {
  const answer = await postJson<{ results: Verdict[] }>(`${API_ROOT}/rois/review/`, { rois, state, comment });
  return answer.results;
}

export function threadRows(entries: ThreadEntry[]): HTMLElement[] {
  return entries.map(({ kind, text, author, at }) => {
    const head = `${author ?? "Somebody who left"} ${SAID[kind] ?? kind}`;
    const when = element("time", { datetime: at, class: "muted" }, new Date(at).toLocaleString());
    const line = element("p", { class: "small" }, element("strong", {}, head), " · ", when);
    return element("li", { "data-kind": kind }, line, ...(text ? [element("p", {}, text)] : []));
  });
}
