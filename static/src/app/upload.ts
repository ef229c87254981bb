/**
 * `form[data-upload]`: sends the chosen files one after the other, each with a bar and, where it is
 * refused, the reason. Without this script the form sends all of them at once.
 */
interface Answer {
  case_url?: string;
  is_new?: boolean;
  detail?: string;
}

class Row {
  readonly element = document.createElement("div");
  private readonly note = document.createElement("span");
  private readonly bar = document.createElement("progress");

  constructor(file: File) {
    this.element.className = "stack stack--tight";
    this.element.setAttribute("role", "listitem");
    const line = document.createElement("div");
    line.className = "progress-line";
    const name = document.createElement("span");
    name.className = "truncate";
    name.textContent = file.name;
    this.note.className = "num";
    this.note.textContent = "Waiting";
    this.bar.className = "progress";
    this.bar.max = Math.max(file.size, 1);
    this.bar.value = 0;
    this.bar.setAttribute("aria-label", file.name);
    line.append(name, this.note);
    this.element.append(line, this.bar);
  }

  sent(loaded: number, total: number): void {
    this.bar.max = Math.max(total, 1);
    this.bar.value = loaded;
    this.note.textContent = loaded < total ? `${String(Math.floor((100 * loaded) / total))}%` : "Checking";
  }

  done(isNew: boolean): void {
    this.bar.value = this.bar.max;
    this.bar.classList.add("progress--ok");
    this.note.textContent = isNew ? "Received" : "Already in this case";
  }

  refused(reason: string): void {
    this.bar.classList.add("progress--bad");
    this.note.textContent = "Not stored";
    const text = document.createElement("p");
    text.className = "field__error";
    text.setAttribute("role", "alert");
    text.textContent = reason;
    this.element.append(text);
  }
}

function answerOf(xhr: XMLHttpRequest): Answer {
  try {
    return JSON.parse(xhr.responseText) as Answer;
  } catch {
    return {};
  }
}

function send(form: HTMLFormElement, file: File, row: Row): Promise<Answer | null> {
  return new Promise((resolve) => {
    const xhr = new XMLHttpRequest();
    const body = new FormData();
    body.append("file", file);
    xhr.open("POST", form.action || window.location.href);
    xhr.setRequestHeader("Accept", "application/json");
    const token = form.querySelector<HTMLInputElement>("input[name=csrfmiddlewaretoken]");
    if (token) xhr.setRequestHeader("X-CSRFToken", token.value);
    xhr.upload.addEventListener("progress", (event) => row.sent(event.loaded, event.total));
    xhr.addEventListener("load", () => {
      const answer = answerOf(xhr);
      if (xhr.status >= 200 && xhr.status < 300) {
        row.done(answer.is_new !== false);
        resolve(answer);
      } else {
        row.refused(answer.detail ?? `The server answered ${String(xhr.status)}. Try again.`);
        resolve(null);
      }
    });
    xhr.addEventListener("error", () => {
      row.refused("The connection broke, or the file is larger than the portal accepts.");
      resolve(null);
    });
    xhr.send(body);
  });
}

async function sendAll(form: HTMLFormElement, files: File[]): Promise<void> {
  const list = form.querySelector("[data-upload-list]");
  const rows = files.map((file) => new Row(file));
  list?.replaceChildren(...rows.map((row) => row.element));
  form.setAttribute("aria-busy", "true");
  const answers: (Answer | null)[] = [];
  for (const [index, file] of files.entries()) {
    const row = rows[index];
    if (row) answers.push(await send(form, file, row));
  }
  form.removeAttribute("aria-busy");
  form.reset();
  form.querySelector("input[type=file]")?.dispatchEvent(new Event("change", { bubbles: true }));
  const url = answers.find((answer) => answer?.case_url)?.case_url;
  if (url && answers.every((answer) => answer !== null)) window.location.assign(url);
}

export function watchUploads(): void {
  // Captured, so that it comes before the guard against double submission, which marks the form as busy.
  document.addEventListener(
    "submit",
    (event) => {
      const form = event.target as HTMLFormElement;
      if (!form.matches("[data-upload]")) return;
      event.preventDefault();
      if (form.getAttribute("aria-busy") === "true") return;
      const files = Array.from(form.querySelector<HTMLInputElement>("input[type=file]")?.files ?? []);
      if (files.length > 0) void sendAll(form, files);
    },
    { capture: true },
  );
  window.addEventListener("beforeunload", (event) => {
    if (document.querySelector("form[data-upload][aria-busy=true]")) event.preventDefault();
  });
}
